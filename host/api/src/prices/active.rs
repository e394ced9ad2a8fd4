use super::product::Priced;
use super::shape::PriceOut;
use crate::refusals::PRICE_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;
use souk_store::prices;

pub const OPERATION: Operation = Operation::get(
    "active_price",
    "/companies/{company_id}/assets/{asset_id}/prices/active",
)
.alias(
    "/companies/{company_id}/endpoints/{endpoint_id}/prices/active",
    "active_endpoint_price",
)
.about("Prices", "Show the price that holds now")
.notes("Also of published products of other companies. 404 `PRICE_NOT_FOUND` when there is none.")
.refuses(&[PRICE_NOT_FOUND]);

/// Shows the price that holds now.
pub async fn active_price(
    State(api): State<ApiState>,
    caller: Caller,
    priced: Priced,
) -> Result<Data<PriceOut>, Problem> {
    let mut read = api.db().read().await?;
    let is_owner = priced.check_visible(&mut read, &caller).await?;
    let price = prices::active(&mut read, priced.product.id(), caller.now()).await?;
    let price = price.ok_or_else(|| priced.no_price("active"))?;
    let price = PriceOut::at(price, caller.now());
    Ok(Data(match is_owner {
        true => price,
        false => price.public(),
    }))
}
