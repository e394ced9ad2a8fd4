use super::product::Priced;
use super::shape::PriceOut;
use super::timeline;
use crate::idempotency::Once;
use crate::problem::both;
use crate::refusals::{PRICE_NOT_FOUND, PRICE_OVERLAP};
use crate::{ApiState, Body, Caller, Created, Operation, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::prices::{Validity, discounted};
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::prices::{self, NewPrice};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("discount_price", "/companies/{company_id}/assets/{asset_id}/prices/discount")
    .alias("/companies/{company_id}/endpoints/{endpoint_id}/prices/discount", "discount_endpoint_price")
    .about("Prices", "Discount the price of a product")
    .notes(
        "Of the price that holds where it begins, rounded up to whole credits; 100 percent is free. After `effective_to` the former price holds again: \
         of those that have not ended, the one that began last. That is a planned price of the list, too: moved it ends the discount at another time, \
         and without it the discount does not end.",
    )
    .needs(Role::DataEngineer, Permission::Write)
    .refuses(&[PRICE_NOT_FOUND, PRICE_OVERLAP]);

#[derive(Deserialize, ToSchema)]
pub struct DiscountIn {
    #[schema(minimum = 1, maximum = 100)]
    discount_percent: i64,
    /// Default now.
    #[schema(value_type = Option<String>, format = DateTime)]
    effective_from: Option<Timestamp>,
    /// Without it the discount does not end.
    #[schema(value_type = Option<String>, format = DateTime)]
    effective_to: Option<Timestamp>,
}

/// Puts a discounted price in the place of the one that holds.
pub async fn discount_price(
    State(api): State<ApiState>,
    caller: Caller,
    priced: Priced,
    once: Once,
    Body(body): Body<DiscountIn>,
) -> Result<Created<PriceOut>, Problem> {
    let begins = timeline::begin(body.effective_from, caller.now());
    let ends = match &begins {
        Ok(from) => check_end(*from, body.effective_to),
        Err(_) => Ok(()),
    };
    let percent = match body.discount_percent {
        1..=100 => Ok(()),
        _ => Err(Problem::invalid("discount_percent", "must be 1 to 100")),
    };
    let ((from, ()), ()) = both(both(begins, ends), percent)?;
    api.db()
        .write(async |write| {
            priced.lock_own(write, &caller).await?;
            let clock = api.app().clock.now();
            let now = timeline::now(write, priced.product.id(), clock).await?;
            let from = from.max(now);
            check_end(from, body.effective_to)?;
            let base = prices::active(write, priced.product.id(), from)
                .await?
                .ok_or_else(|| {
                    let message = "no price holds when the discount would begin: set one first, or give effective_from";
                    Problem::of(PRICE_NOT_FOUND, message)
                })?;
            let credits = discounted(base.credits, body.discount_percent)
                .map_err(|error| Problem::invalid("discount_percent", error.to_string()))?;
            let new = NewPrice {
                company: caller.company(),
                product: priced.product.id(),
                credits,
                usd: credits.cents(),
                discount_percent: Some(body.discount_percent),
                original_credits: Some(base.credits),
                validity: Validity {
                    from,
                    to: body.effective_to,
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

fn check_end(from: Timestamp, to: Option<Timestamp>) -> Result<(), Problem> {
    match to {
        Some(to) if to <= from => Err(Problem::invalid(
            "effective_to",
            "must be after effective_from",
        )),
        _ => Ok(()),
    }
}
