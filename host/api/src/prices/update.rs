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
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::prices;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::patch("update_price", "/companies/{company_id}/assets/{asset_id}/prices/{price_id}")
    .alias("/companies/{company_id}/endpoints/{endpoint_id}/prices/{price_id}", "update_endpoint_price")
    .about("Prices", "Change a price that has not begun")
    .notes(
        "The price before it ends where this one begins, and holds again after `effective_to`, as after a discount: 400 where there is none before. \
         It passes no other price that was planned, and none begins before an end that it gets: 409 `PRICE_OVERLAP`. A discount that gets another \
         amount is a price like any other: `discount_percent` and `original_price_credits` are `null` then. A price that has begun is history: 409 \
         `INVALID_STATE`.",
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
    /// Then the price before holds again. `null` clears it: then the price holds until the next one.
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
            let clock = api.app().clock.now();
            let now = timeline::now(write, priced.product.id(), clock).await?;
            let price = prices::get(write, caller.company(), priced.product.id(), &id).await?;
            let before = price.ok_or_else(|| priced.no_price(id.as_str()))?;
            if !before.validity.is_future(now) {
                return Err(Problem::state(
                    "begun",
                    "a price that has begun cannot be changed; set another one",
                ));
            }
            let mut after = before.clone();
            if let Some((credits, usd)) = amount {
                // The discount was another amount's.
                if credits != after.credits {
                    (after.discount_percent, after.original_credits) = (None, None);
                }
                (after.credits, after.usd) = (credits, usd);
            }
            if let Some(from) = from {
                after.validity.from = from.max(now);
            }
            match body.effective_to {
                Patch::Absent => {}
                Patch::Null => after.ends_at = None,
                Patch::Value(at) => after.ends_at = Some(at),
            }
            // The former price that holds again is a wish of its own, once more is said of it than when.
            if amount.is_some() || body.effective_to != Patch::Absent {
                after.resumes = None;
            }
            let price = timeline::change(write, &before, after, now).await?;
            Ok(Data(PriceOut::at(price, now)))
        })
        .await
}
