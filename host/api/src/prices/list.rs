use super::product::Priced;
use super::shape::PriceOut;
use crate::{ApiState, Caller, List, Operation, PAGING, Page, Problem, Query, Shape, schema};
use axum::extract::State;
use souk_store::prices;

pub const OPERATION: Operation = Operation::get(
    "list_prices",
    "/companies/{company_id}/assets/{asset_id}/prices",
)
.aliases(&["/companies/{company_id}/endpoints/{endpoint_id}/prices"])
.about("Prices", "List a product's prices, newest first")
.query(PAGING)
.returns(200, Shape::List(schema::<PriceOut>));

/// Lists past, present and planned prices.
pub async fn list_prices(
    State(api): State<ApiState>,
    caller: Caller,
    priced: Priced,
    query: Query,
) -> Result<List<PriceOut>, Problem> {
    let page = Page::of(&query);
    let mut read = api.db().read().await?;
    priced.check_own(&mut read, &caller).await?;
    let (prices, total) = prices::list(
        &mut read,
        caller.company(),
        priced.product.id(),
        page.offset(),
        page.limit(),
    )
    .await?;
    Ok(List {
        data: prices
            .into_iter()
            .map(|price| PriceOut::at(price, caller.now()))
            .collect(),
        total,
        page,
    })
}
