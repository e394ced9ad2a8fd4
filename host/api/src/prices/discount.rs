use super::product::Priced;
use super::shape::PriceOut;
use super::timeline::{self, Entry};
use crate::refusals::{PATH_BODY_MISMATCH, PRICE_NOT_FOUND, PRICE_OVERLAP};
use crate::{ApiState, Body, Caller, Created, Operation, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::prices::discounted;
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::prices;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("discount_price", "/companies/{company_id}/assets/{asset_id}/prices/discount")
    .alias("/companies/{company_id}/endpoints/{endpoint_id}/prices/discount", "discount_endpoint_price")
    .about("Prices", "Discount the price of a product")
    .notes("Rounded up to whole credits; 100 percent is free. After `effective_to` the former price holds again.")
    .needs(Role::DataEngineer, Permission::Write)
    .refuses(&[PATH_BODY_MISMATCH, PRICE_NOT_FOUND, PRICE_OVERLAP]);

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
    company_id: Option<String>,
}

/// Puts a discounted price in the place of the one that holds.
pub async fn discount_price(
    State(api): State<ApiState>,
    caller: Caller,
    priced: Priced,
    Body(body): Body<DiscountIn>,
) -> Result<Created<PriceOut>, Problem> {
    caller.agree_company(body.company_id.as_deref())?;
    let from = timeline::begin(body.effective_from, caller.now())?;
    if body.effective_to.is_some_and(|to| to <= from) {
        return Err(Problem::invalid(
            "effective_to",
            "must be after effective_from",
        ));
    }
    if !(1..=100).contains(&body.discount_percent) {
        return Err(Problem::invalid("discount_percent", "must be 1 to 100"));
    }
    api.db()
        .write(async |write| {
            priced.lock_own(write, &caller).await?;
            let base = prices::active(write, priced.product.id(), from)
                .await?
                .ok_or_else(|| priced.no_price("active"))?;
            let credits = discounted(base.credits, body.discount_percent)
                .map_err(|error| Problem::invalid("discount_percent", error.to_string()))?;
            let discount = Some((body.discount_percent, base.credits));
            let entry = Entry {
                credits,
                usd: credits.cents(),
                discount,
                from,
                to: body.effective_to,
            };
            let price = timeline::place(write, &caller, &priced.product, entry).await?;
            Ok(Created {
                location: format!("{}/{}", priced.location(&caller), price.id),
                data: PriceOut::at(price, caller.now()),
            })
        })
        .await
}
