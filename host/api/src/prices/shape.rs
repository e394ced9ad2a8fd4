//! A price as clients see it, and amounts as they are given.

use crate::Problem;
use crate::money::Usd;
use crate::money::{read_usd, usd};
use serde::Serialize;
use serde_json::Number;
use souk_domain::ids::PriceId;
use souk_domain::money::{Credits, UsdCents, credits_for};
use souk_domain::time::Timestamp;
use souk_store::prices::Price;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = Price)]
pub struct PriceOut {
    #[schema(value_type = String)]
    pub id: PriceId,
    /// The asset, for prices of assets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asset_id: Option<String>,
    /// The endpoint, for prices of endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_id: Option<String>,
    #[schema(value_type = Usd)]
    pub price_usd: Number,
    /// What a call costs: `ceil(price_usd / 0.50)`.
    #[schema(minimum = 0)]
    pub price_credits: i64,
    #[schema(minimum = 1, maximum = 100)]
    pub discount_percent: Option<i64>,
    #[schema(minimum = 0)]
    pub original_price_credits: Option<i64>,
    pub is_active: bool,
    #[schema(value_type = String, format = DateTime)]
    pub effective_from: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub effective_to: Option<Timestamp>,
    /// The key or user that set it, or `staff`: of the platform; absent for other companies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl PriceOut {
    pub fn at(price: Price, now: Timestamp) -> PriceOut {
        let is_endpoint = price
            .product_id
            .starts_with(souk_domain::ids::EndpointId::PREFIX);
        let (asset_id, endpoint_id) = if is_endpoint {
            (None, Some(price.product_id))
        } else {
            (Some(price.product_id), None)
        };
        PriceOut {
            id: price.id,
            asset_id,
            endpoint_id,
            price_usd: usd(price.usd),
            price_credits: price.credits.get(),
            discount_percent: price.discount_percent,
            original_price_credits: price.original_credits.map(Credits::get),
            is_active: price.validity.contains(now),
            effective_from: price.validity.from,
            effective_to: price.validity.to,
            created_by: Some(price.created_by),
            created_at: price.created_at,
            updated_at: price.updated_at,
        }
    }

    /// For a company that may buy it.
    pub fn public(self) -> PriceOut {
        PriceOut {
            created_by: None,
            ..self
        }
    }
}

/// An amount given in exactly one of the two units.
pub fn amount(
    price_usd: Option<&Number>,
    price_credits: Option<i64>,
) -> Result<(Credits, UsdCents), Problem> {
    let too_much = |field: &'static str| {
        move |error: souk_domain::money::CreditsError| Problem::invalid(field, error.to_string())
    };
    match (price_usd, price_credits) {
        (Some(_), Some(_)) => Err(Problem::invalid(
            "price_credits",
            "send either price_usd or price_credits, not both",
        )),
        (None, None) => Err(Problem::invalid(
            "price_credits",
            "price_usd or price_credits is required",
        )),
        (Some(dollars), None) => {
            let dollars = read_usd("price_usd", dollars)?;
            Ok((
                credits_for(dollars).map_err(too_much("price_usd"))?,
                dollars,
            ))
        }
        (None, Some(credits)) => {
            let credits = Credits::new(credits).map_err(too_much("price_credits"))?;
            Ok((credits, credits.cents()))
        }
    }
}
