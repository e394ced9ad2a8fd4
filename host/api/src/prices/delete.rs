use super::product::Priced;
use super::timeline;
use crate::refusals::{INVALID_STATE, PRICE_NOT_FOUND};
use crate::{ApiState, Caller, Deleted, Operation, Problem};
use axum::extract::State;
use souk_domain::roles::{Permission, Role};
use souk_store::prices;

pub const OPERATION: Operation = Operation::delete(
    "delete_price",
    "/companies/{company_id}/assets/{asset_id}/prices/{price_id}",
)
.alias(
    "/companies/{company_id}/endpoints/{endpoint_id}/prices/{price_id}",
    "delete_endpoint_price",
)
.about("Prices", "Remove a price that has not begun")
.notes(
    "The price before it goes on instead: for good where this one is the former price, which holds again after a discount. A price that has begun \
     is history, and one stays that another one gives way to where there is none beside it: 409 `INVALID_STATE`.",
)
.needs(Role::DataEngineer, Permission::Write)
.refuses(&[PRICE_NOT_FOUND, INVALID_STATE]);

/// Removes a planned price.
pub async fn delete_price(
    State(api): State<ApiState>,
    caller: Caller,
    priced: Priced,
) -> Result<Deleted, Problem> {
    let id = priced.price()?;
    api.db()
        .write(async |write| {
            priced.lock_own(write, &caller).await?;
            let clock = api.app().clock.now();
            let now = timeline::now(write, priced.product.id(), clock).await?;
            let price = prices::get(write, caller.company(), priced.product.id(), &id).await?;
            let price = price.ok_or_else(|| priced.no_price(id.as_str()))?;
            if !price.validity.is_future(now) {
                return Err(Problem::state(
                    "begun",
                    "a price that has begun cannot be removed; set another one",
                ));
            }
            timeline::remove(write, &price, now).await?;
            Ok(Deleted)
        })
        .await
}
