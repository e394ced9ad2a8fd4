use super::product::Priced;
use super::shape::PriceOut;
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query};
use axum::extract::State;
use souk_store::prices;

pub const OPERATION: Operation = Operation::get(
    "list_prices",
    "/companies/{company_id}/assets/{asset_id}/prices",
)
.alias(
    "/companies/{company_id}/endpoints/{endpoint_id}/prices",
    "list_endpoint_prices",
)
.about("Prices", "List a product's prices, newest first");

/// Lists past, present and planned prices.
pub async fn list_prices(
    State(api): State<ApiState>,
    caller: Caller,
    priced: Priced,
    Query(paging): Query<Paging>,
) -> Result<List<PriceOut>, Problem> {
    let page = paging.page();
    let mut read = api.db().read().await?;
    priced.check_own(&mut read, &caller).await?;
    let listed = prices::list(
        &mut read,
        caller.company(),
        priced.product.id(),
        page.part(),
    )
    .await?;
    Ok(List::of(page, listed, |price| {
        PriceOut::at(price, caller.now())
    }))
}
