//! Money without floating point: whole credits and whole cents, every operation checked.
//!
//! One credit is 50 cents: 40 to the seller, 10 to the platform. Because both shares are whole cents for one credit, a split is exact for
//! every whole number of credits, and nothing is ever rounded inside the ledger. Refuses to know prices in other currencies.

use std::fmt;

/// What one credit is worth.
pub const CENTS_PER_CREDIT: i64 = 50;
pub const SELLER_CENTS_PER_CREDIT: i64 = 40;
pub const PLATFORM_CENTS_PER_CREDIT: i64 = 10;
const _: () = assert!(SELLER_CENTS_PER_CREDIT + PLATFORM_CENTS_PER_CREDIT == CENTS_PER_CREDIT);

/// Large enough for any market, small enough that cents, and sums over a million companies, stay inside 64 bits.
pub const CREDITS_MAX: i64 = 100_000_000_000;

/// A whole, non-negative number of credits, at most [`CREDITS_MAX`].
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(try_from = "i64", into = "i64")]
pub struct Credits(i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("credits are a whole number from 0 to 100000000000")]
pub struct CreditsError;

impl TryFrom<i64> for Credits {
    type Error = CreditsError;
    fn try_from(credits: i64) -> Result<Self, CreditsError> {
        Self::new(credits)
    }
}

impl From<Credits> for i64 {
    fn from(credits: Credits) -> i64 {
        credits.0
    }
}

impl Credits {
    pub const ZERO: Credits = Credits(0);

    pub const fn new(credits: i64) -> Result<Self, CreditsError> {
        if credits >= 0 && credits <= CREDITS_MAX {
            Ok(Self(credits))
        } else {
            Err(CreditsError)
        }
    }

    pub const fn get(self) -> i64 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub const fn cents(self) -> UsdCents {
        UsdCents(self.0 * CENTS_PER_CREDIT)
    }

    pub fn checked_add(self, other: Credits) -> Result<Credits, CreditsError> {
        Self::new(self.0 + other.0)
    }

    pub fn checked_sub(self, other: Credits) -> Result<Credits, CreditsError> {
        Self::new(self.0 - other.0)
    }
}

impl fmt::Display for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Signed US cents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UsdCents(i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UsdError {
    #[error("expected a plain decimal number of US dollars")]
    NotANumber,
    #[error("US dollars have at most two decimals")]
    TooManyDecimals,
    #[error("US dollars are at most 50000000000.00")]
    TooLarge,
}

impl UsdCents {
    pub const ZERO: UsdCents = UsdCents(0);

    pub const fn new(cents: i64) -> Self {
        Self(cents)
    }

    pub const fn get(self) -> i64 {
        self.0
    }

    /// Reads `12`, `12.5`, `12.50`, `-3.00`, and the exponent forms that JSON allows (`1e2`), exactly and without passing through a float.
    pub fn parse(text: &str) -> Result<Self, UsdError> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (
                mantissa,
                exponent.parse::<i32>().map_err(|_| UsdError::NotANumber)?,
            ),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_number = !whole.is_empty()
            && whole
                .bytes()
                .chain(fraction.bytes())
                .all(|byte| byte.is_ascii_digit());
        if !is_number || (mantissa.contains('.') && fraction.is_empty()) {
            return Err(UsdError::NotANumber);
        }
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_start_matches('0');
        let trimmed = significant.trim_end_matches('0');
        if trimmed.is_empty() {
            return Ok(Self::ZERO);
        }
        // value = trimmed * 10^power dollars
        let dropped = (significant.len() - trimmed.len()) as i64;
        let power = i64::from(exponent) - fraction.len() as i64 + dropped;
        if power < -2 {
            return Err(UsdError::TooManyDecimals);
        }
        // 13 digits of cents are more than the bound below needs.
        if trimmed.len() as i64 + power + 2 > 13 {
            return Err(UsdError::TooLarge);
        }
        let number: i64 = trimmed.parse().map_err(|_| UsdError::TooLarge)?;
        let cents = number * 10_i64.pow((power + 2) as u32);
        if cents > CREDITS_MAX * CENTS_PER_CREDIT {
            return Err(UsdError::TooLarge);
        }
        Ok(Self(if negative { -cents } else { cents }))
    }
}

impl fmt::Display for UsdCents {
    /// Dollars with exactly two decimals, also a valid JSON number: `-0.05`, `12.50`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let cents = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:02}", cents / 100, cents % 100)
    }
}

/// The two parts of a charge, in cents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    pub seller: UsdCents,
    pub platform: UsdCents,
}

/// Splits a charge into the seller's and the platform's share. `seller + platform == amount`, for every amount.
pub const fn split(amount: Credits) -> Shares {
    Shares {
        seller: UsdCents(amount.0 * SELLER_CENTS_PER_CREDIT),
        platform: UsdCents(amount.0 * PLATFORM_CENTS_PER_CREDIT),
    }
}

/// Credits that `price` dollars cost: rounded up to whole credits, zero only for zero.
pub fn credits_for(price: UsdCents) -> Result<Credits, CreditsError> {
    if price.0 < 0 {
        return Err(CreditsError);
    }
    Credits::new((price.0 + CENTS_PER_CREDIT - 1) / CENTS_PER_CREDIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exact for every amount, also the largest.
    #[test]
    fn shares_add_up() {
        for credits in [0, 1, 2, 3, 7, 999, CREDITS_MAX] {
            let amount = Credits::new(credits).unwrap();
            let shares = split(amount);
            assert_eq!(
                shares.seller.get() + shares.platform.get(),
                amount.cents().get()
            );
        }
    }

    /// ceil(price / 0.50), exact from the decimal text.
    #[test]
    fn prices_round_up_to_whole_credits() {
        for (usd, credits) in [
            ("0", 0),
            ("0.01", 1),
            ("0.50", 1),
            ("0.51", 2),
            ("1e1", 20),
            ("19.99", 40),
            ("0.5000", 1),
            ("100", 200),
        ] {
            assert_eq!(
                credits_for(UsdCents::parse(usd).unwrap()).unwrap().get(),
                credits,
                "{usd}"
            );
        }
        assert!(credits_for(UsdCents::new(-1)).is_err());
    }

    /// Nothing is guessed from a malformed or too precise number.
    #[test]
    fn malformed_dollars_are_refused() {
        assert_eq!(UsdCents::parse("0.501"), Err(UsdError::TooManyDecimals));
        assert_eq!(UsdCents::parse("1e-3"), Err(UsdError::TooManyDecimals));
        assert_eq!(UsdCents::parse("50000000000.01"), Err(UsdError::TooLarge));
        assert_eq!(UsdCents::parse("1e400"), Err(UsdError::TooLarge));
        for bad in [
            "", ".", "1.", ".5", "+1", "1_0", "NaN", "0x1", "--1", "1e", "1e1.5",
        ] {
            assert_eq!(UsdCents::parse(bad), Err(UsdError::NotANumber), "{bad}");
        }
        assert_eq!(UsdCents::parse("-12.5").unwrap().to_string(), "-12.50");
    }
}
