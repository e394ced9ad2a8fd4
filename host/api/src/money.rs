//! Dollars in JSON: numbers with at most two decimals. They are read from and written as decimal text, never computed as floats.

use crate::problem::Problem;
use serde_json::Number;
use souk_domain::money::{CREDITS_MAX, UsdCents};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{Number as Bound, PartialSchema, ToSchema};

macro_rules! amounts {
    ($($(#[doc = $about:literal])+ $name:ident: $min:expr, $max:expr;)+) => {
        $($(#[doc = $about])+
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::Number)
                    .format(Some(SchemaFormat::Custom("decimal".to_owned())))
                    .description(Some([$($about.trim()),+].join(" ")))
                    .minimum($min)
                    .maximum($max)
                    .examples([serde_json::json!(12.5)])
                    .into()
            }
        }

        impl ToSchema for $name {})+
    };
}

/// The dearest that anything may be: as many credits at half a dollar.
const PRICE_USD_MAX: f64 = (CREDITS_MAX / 2) as f64;

amounts! {
    /// US dollars with at most two decimals. Exact as written: read them into a decimal, not into a binary fraction.
    Usd: None::<Bound>, None::<Bound>;
    /// US dollars with at most two decimals, not negative.
    PriceUsd: Some(0.0), Some(PRICE_USD_MAX);
    /// US dollars with at most two decimals: what a top-up may cost.
    TopUpUsd: Some(0.5), Some(50_000.0);
    /// US dollars with at most two decimals: at least 10.
    PayoutUsd: Some(10.0), Some(PRICE_USD_MAX);
}

/// A JSON number of dollars: `12`, `12.5`, `12.25`.
pub fn usd(amount: UsdCents) -> Number {
    match amount.get() % 100 {
        0 => Number::from(amount.get() / 100),
        _ => amount
            .to_string()
            .parse()
            .unwrap_or_else(|_| Number::from(0)),
    }
}

/// Reads a member such as `price_usd`: not negative.
pub fn read_usd(field: &str, number: &Number) -> Result<UsdCents, Problem> {
    let amount = UsdCents::parse(&number.to_string())
        .map_err(|error| Problem::invalid(field, error.to_string()))?;
    if amount.get() < 0 {
        Err(Problem::invalid(field, "must not be negative"))
    } else {
        Ok(amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read is what is written.
    #[test]
    fn dollars_survive_the_round_trip() {
        for text in ["0", "12", "12.5", "0.01", "19.99", "1000000.25"] {
            let number: Number = text.parse().unwrap();
            assert_eq!(
                usd(read_usd("price_usd", &number).unwrap()).to_string(),
                text
            );
        }
        assert!(read_usd("price_usd", &"1.005".parse().unwrap()).is_err());
        assert!(read_usd("price_usd", &"-1".parse().unwrap()).is_err());
    }
}
