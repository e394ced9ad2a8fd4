use super::product::Priced;
use super::shape::{PriceOut, amount};
use super::timeline;
use crate::money::PriceUsd;
use crate::problem::both;
use crate::refusals::{INVALID_STATE, PRICE_NOT_FOUND, PRICE_OVERLAP};
use crate::{ApiState, Body, Caller, Data, Operation, Patch, Problem};
use axum::extract::State;
use serde::Deserialize;
use serde_json::Number;
use souk_domain::prices::Validity;
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::prices;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::patch("update_price", "/companies/{company_id}/assets/{asset_id}/prices/{price_id}")
    .alias("/companies/{company_id}/endpoints/{endpoint_id}/prices/{price_id}", "update_endpoint_price")
    .about("Prices", "Change a price that has not begun")
    .notes(
        "The price before it ends where this one begins. A discount that gets another amount is a price like any other: `discount_percent` and \
         `original_price_credits` are `null` then. A price that has begun is history: 409 `INVALID_STATE`.",
    )
    .needs(Role::DataEngineer, Permission::Write)
    .refuses(&[PRICE_NOT_FOUND, INVALID_STATE, PRICE_OVERLAP]);

#[derive(Deserialize, ToSchema)]
pub struct PricePatch {
    /// Either this or `price_credits`, or neither.
    #[schema(value_type = Option<PriceUsd>)]
    price_usd: Option<Number>,
    #[schema(minimum = 0, maximum = 100000000000_i64)]
    price_credits: Option<i64>,
    #[schema(value_type = Option<String>, format = DateTime)]
    effective_from: Option<Timestamp>,
    /// `null` clears it: then the price holds until the next one.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    effective_to: Patch<Timestamp>,
}

/// Changes amount or time of a planned price.
pub async fn update_price(
    State(api): State<ApiState>,
    caller: Caller,
    priced: Priced,
    Body(body): Body<PricePatch>,
) -> Result<Data<PriceOut>, Problem> {
    let id = priced.price()?;
    let amount = match (&body.price_usd, body.price_credits) {
        (None, None) => Ok(None),
        (dollars, credits) => amount(dollars.as_ref(), credits).map(Some),
    };
    let from = body
        .effective_from
        .map(|at| timeline::begin(Some(at), caller.now()))
        .transpose();
    let (amount, from) = both(amount, from)?;

    api.db()
        .write(async |write| {
            priced.lock_own(write, &caller).await?;
            let now = api.app().clock.now();
            let price = prices::get(write, caller.company(), priced.product.id(), &id).await?;
            let mut price = price.ok_or_else(|| priced.no_price(id.as_str()))?;
            if !price.validity.is_future(now) {
                return Err(Problem::state(
                    "begun",
                    "a price that has begun cannot be changed; set another one",
                ));
            }
            if let Some((credits, usd)) = amount {
                // The discount was another amount's.
                if credits != price.credits {
                    (price.discount_percent, price.original_credits) = (None, None);
                }
                (price.credits, price.usd) = (credits, usd);
            }
            let to = match body.effective_to {
                Patch::Absent => price.validity.to,
                Patch::Null => None,
                Patch::Value(at) => Some(at),
            };
            let asked = Validity {
                from: from.map_or(price.validity.from, |at| at.max(now)),
                to,
            };
            price.validity = timeline::shift(write, &price, asked, now).await?;
            prices::update(write, &price, now).await?;
            price.updated_at = now;
            Ok(Data(PriceOut::at(price, now)))
        })
        .await
}
