use super::product::Priced;
use super::shape::PriceOut;
use crate::refusals::PRICE_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;
use souk_store::prices;

pub const OPERATION: Operation = Operation::get(
    "get_price",
    "/companies/{company_id}/assets/{asset_id}/prices/{price_id}",
)
.alias(
    "/companies/{company_id}/endpoints/{endpoint_id}/prices/{price_id}",
    "get_endpoint_price",
)
.about("Prices", "Show a price")
.refuses(&[PRICE_NOT_FOUND]);

/// Shows one price of the history.
pub async fn get_price(
    State(api): State<ApiState>,
    caller: Caller,
    priced: Priced,
) -> Result<Data<PriceOut>, Problem> {
    let id = priced.price()?;
    let mut read = api.db().read().await?;
    priced.check_own(&mut read, &caller).await?;
    let price = prices::get(&mut read, caller.company(), priced.product.id(), &id).await?;
    let price = price.ok_or_else(|| priced.no_price(id.as_str()))?;
    Ok(Data(PriceOut::at(price, caller.now())))
}
