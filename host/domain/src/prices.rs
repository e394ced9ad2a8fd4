//! Prices: what a product costs at an instant, discounts, and what may still be changed. Refuses to know where prices are kept.

use crate::money::{CREDITS_MAX, Credits, CreditsError, UsdCents, credits_for};
use crate::time::Timestamp;

/// What conversion of a price in dollars gives, without storing anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    pub credits: Credits,
    /// What the buyer really pays: `credits` at 0.50 USD.
    pub effective: UsdCents,
    pub seller_earnings: UsdCents,
}

/// Converts dollars to credits: `ceil(price / 0.50)`.
pub fn convert(price: UsdCents) -> Result<Conversion, CreditsError> {
    let credits = credits_for(price)?;
    Ok(Conversion {
        credits,
        effective: credits.cents(),
        seller_earnings: crate::money::split(credits).seller,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("discount_percent is a whole number from 1 to 100")]
pub struct DiscountError;

/// The price after a discount, rounded up to whole credits; 100 percent is free.
pub fn discounted(price: Credits, percent: i64) -> Result<Credits, DiscountError> {
    if !(1..=100).contains(&percent) {
        return Err(DiscountError);
    }
    const _: () = assert!(CREDITS_MAX < i64::MAX / 100);
    Credits::new((price.get() * (100 - percent) + 99) / 100).map_err(|_| DiscountError)
}

/// When a price holds: from `from`, up to but not including `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    pub from: Timestamp,
    pub to: Option<Timestamp>,
}

impl Validity {
    pub fn contains(&self, instant: Timestamp) -> bool {
        self.from <= instant && self.to.is_none_or(|to| instant < to)
    }

    /// Only a price that has not begun may be changed or deleted: history is immutable.
    pub fn is_future(&self, now: Timestamp) -> bool {
        now < self.from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounded up to whole credits; a full discount is free.
    #[test]
    fn discounts_round_up() {
        let price = Credits::new(10).unwrap();
        assert_eq!(discounted(price, 15).unwrap().get(), 9);
        assert_eq!(discounted(price, 100).unwrap(), Credits::ZERO);
        assert_eq!(discounted(Credits::new(1).unwrap(), 99).unwrap().get(), 1);
        assert_eq!(discounted(price, 0), Err(DiscountError));
        assert_eq!(discounted(price, 101), Err(DiscountError));
    }

    /// At most one price holds at an instant: ends are exclusive.
    #[test]
    fn validity_ends_are_exclusive() {
        let at = Timestamp::from_micros;
        let first = Validity {
            from: at(0),
            to: Some(at(10)),
        };
        let second = Validity {
            from: at(10),
            to: None,
        };
        assert!(first.contains(at(9)) && !first.contains(at(10)) && second.contains(at(10)));
    }
}
