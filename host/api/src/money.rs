//! Dollars in JSON: numbers with at most two decimals. They are read from and written as decimal text, never computed as floats.

use crate::problem::Problem;
use serde_json::Number;
use souk_domain::money::UsdCents;

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
