use super::product::Priced;
use crate::money::{PriceUsd, Usd, read_usd, usd};
use crate::{ApiState, Body, Caller, Data, Operation, Problem};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use souk_domain::money::{CENTS_PER_CREDIT, UsdCents};
use souk_domain::prices::convert;
use souk_domain::roles::{Permission, Role};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post(
    "convert_price",
    "/companies/{company_id}/assets/{asset_id}/prices/convert",
)
.alias(
    "/companies/{company_id}/endpoints/{endpoint_id}/prices/convert",
    "convert_endpoint_price",
)
.about("Prices", "Convert dollars to credits")
.notes("Nothing is stored.")
.needs(Role::Analyst, Permission::Read);

#[derive(Deserialize, ToSchema)]
pub struct ConvertIn {
    #[schema(value_type = PriceUsd)]
    price_usd: Number,
}

#[derive(Serialize, ToSchema)]
pub struct Converted {
    #[schema(value_type = Usd)]
    price_usd: Number,
    #[schema(minimum = 0)]
    price_credits: i64,
    #[schema(value_type = Usd)]
    credit_value_usd: Number,
    /// What the buyer pays: whole credits.
    #[schema(value_type = Usd)]
    effective_price_usd: Number,
    #[schema(value_type = Usd)]
    seller_earnings_usd: Number,
}

/// Converts a price without saving it.
pub async fn convert_price(
    State(api): State<ApiState>,
    caller: Caller,
    priced: Priced,
    Body(body): Body<ConvertIn>,
) -> Result<Data<Converted>, Problem> {
    let dollars = read_usd("price_usd", &body.price_usd)?;
    let conversion =
        convert(dollars).map_err(|error| Problem::invalid("price_usd", error.to_string()))?;
    let mut read = api.db().read().await?;
    priced.check_own(&mut read, &caller).await?;
    Ok(Data(Converted {
        price_usd: usd(dollars),
        price_credits: conversion.credits.get(),
        credit_value_usd: usd(UsdCents::new(CENTS_PER_CREDIT)),
        effective_price_usd: usd(conversion.effective),
        seller_earnings_usd: usd(conversion.seller_earnings),
    }))
}
