use super::product::Priced;
use super::shape::{PriceOut, amount};
use super::timeline::{self, Entry};
use crate::idempotency::Once;
use crate::money::PriceUsd;
use crate::problem::both;
use crate::refusals::PRICE_OVERLAP;
use crate::{ApiState, Body, Caller, Created, Operation, Problem};
use axum::extract::State;
use serde::Deserialize;
use serde_json::Number;
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("create_price", "/companies/{company_id}/assets/{asset_id}/prices")
    .alias("/companies/{company_id}/endpoints/{endpoint_id}/prices", "create_endpoint_price")
    .about("Prices", "Set the price of a product")
    .notes("Ends the price that held. 0 credits make the product free. A price in the future begins by itself.")
    .needs(Role::DataEngineer, Permission::Write)
    .refuses(&[PRICE_OVERLAP]);

#[derive(Deserialize, ToSchema)]
pub struct PriceIn {
    /// Either this or `price_credits`. At most two decimals.
    #[schema(value_type = Option<PriceUsd>)]
    price_usd: Option<Number>,
    #[schema(minimum = 0, maximum = 100000000000_i64)]
    price_credits: Option<i64>,
    /// Default now.
    #[schema(value_type = Option<String>, format = DateTime)]
    effective_from: Option<Timestamp>,
}

/// Sets a price; the former one ends where it begins.
pub async fn create_price(
    State(api): State<ApiState>,
    caller: Caller,
    priced: Priced,
    once: Once,
    Body(body): Body<PriceIn>,
) -> Result<Created<PriceOut>, Problem> {
    let ((credits, usd), from) = both(
        amount(body.price_usd.as_ref(), body.price_credits),
        timeline::begin(body.effective_from, caller.now()),
    )?;
    api.db()
        .write(async |write| {
            priced.lock_own(write, &caller).await?;
            let now = api.app().clock.now();
            let entry = Entry {
                credits,
                usd,
                discount: None,
                from: from.max(now),
                to: None,
            };
            let price = timeline::place(write, &caller, &priced.product, entry, now).await?;
            let created = Created {
                location: format!("{}/{}", priced.location(&caller), price.id),
                data: PriceOut::at(price, now),
            };
            once.keep(write, &created).await?;
            Ok(created)
        })
        .await
}
