use super::product::Priced;
use super::shape::{PriceOut, amount};
use super::timeline;
use crate::idempotency::Once;
use crate::money::PriceUsd;
use crate::problem::both;
use crate::refusals::PRICE_OVERLAP;
use crate::{ApiState, Body, Caller, Created, Operation, Problem};
use axum::extract::State;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Number;
use souk_domain::prices::Validity;
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::prices::NewPrice;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("create_price", "/companies/{company_id}/assets/{asset_id}/prices")
    .alias("/companies/{company_id}/endpoints/{endpoint_id}/prices", "create_endpoint_price")
    .about("Prices", "Set the price of a product")
    .notes(
        "Ends the price that held, and takes the place of the one that a running discount would give way to: it holds until a price begins that is \
         planned already, and again where such a one ends. 0 credits make the product free. A price in the future begins by itself.",
    )
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
    /// What other shapes of a price have, and this one would otherwise ignore.
    #[schema(ignore)]
    effective_to: Option<IgnoredAny>,
}

impl PriceIn {
    fn without_end(&self) -> Result<(), Problem> {
        match self.effective_to {
            None => Ok(()),
            Some(_) => Err(Problem::invalid(
                "effective_to",
                "a price holds until another one begins: what ends is a discount (POST …/prices/discount), or a planned price that is given an end (PATCH)",
            )),
        }
    }
}

/// Sets a price; the former one ends where it begins, and does not come again.
pub async fn create_price(
    State(api): State<ApiState>,
    caller: Caller,
    priced: Priced,
    once: Once,
    Body(body): Body<PriceIn>,
) -> Result<Created<PriceOut>, Problem> {
    let times = both(
        timeline::begin(body.effective_from, caller.now()),
        body.without_end(),
    );
    let ((credits, usd), (from, ())) =
        both(amount(body.price_usd.as_ref(), body.price_credits), times)?;
    api.db()
        .write(async |write| {
            priced.lock_own(write, &caller).await?;
            let clock = api.app().clock.now();
            let now = timeline::now(write, priced.product.id(), clock).await?;
            let new = NewPrice {
                company: caller.company(),
                product: priced.product.id(),
                credits,
                usd,
                discount_percent: None,
                original_credits: None,
                validity: Validity {
                    from: from.max(now),
                    to: None,
                },
                created_by: caller.named(),
            };
            let price = timeline::place(write, &new, now, PRICE_OVERLAP).await?;
            let created = Created {
                location: format!("{}/{}", priced.location(&caller), price.id),
                data: PriceOut::at(price, now),
            };
            once.keep(write, &created).await?;
            Ok(created)
        })
        .await
}
