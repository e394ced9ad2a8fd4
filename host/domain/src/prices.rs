//! What a call costs. 1 credit = 50 cents = 40 cents for the seller + 10 cents for the platform.
//!
//! Amounts in dollars arrive as decimal text and live as whole cents: no float arithmetic.

/// The most one call may cost: a bound against typing errors, far above any real product.
pub const PRICE_CREDITS_MAX: i64 = 1_000_000;
pub const CREDIT_CENTS: i64 = 50;
pub const SELLER_CENTS: i64 = 40;
pub const PRICE_CENTS_MAX: i64 = PRICE_CREDITS_MAX * CREDIT_CENTS;

/// Whole credits that cover `cents`, rounded up.
pub const fn credits_for(cents: i64) -> i64 {
    (cents + CREDIT_CENTS - 1) / CREDIT_CENTS
}

pub const fn cents_of(credits: i64) -> i64 {
    credits * CREDIT_CENTS
}

/// What the seller earns on `credits`, in cents. The rest of [`cents_of`] is the platform's.
pub const fn seller_cents(credits: i64) -> i64 {
    credits * SELLER_CENTS
}

/// A price after a discount of 1 to 100 percent, rounded up to whole credits; 100 percent is free.
pub const fn discounted(credits: i64, percent: i64) -> i64 {
    (credits * (100 - percent) + 99) / 100
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    #[error("must be a number of dollars")]
    NotANumber,
    #[error("must not be negative")]
    Negative,
    #[error("must have at most two decimals")]
    TooPrecise,
    #[error("must be at most {}.00", PRICE_CENTS_MAX / 100)]
    TooLarge,
}

/// Whole cents of a dollar amount as JSON writes it: `12`, `12.5`, `12.50`. Exponents are refused.
pub fn cents(dollars: &str) -> Result<i64, AmountError> {
    if dollars.starts_with('-') {
        return Err(AmountError::Negative);
    }
    let (whole, fraction) = dollars.split_once('.').unwrap_or((dollars, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(AmountError::NotANumber);
    }
    if fraction.len() > 2 {
        return Err(AmountError::TooPrecise);
    }
    let whole: i64 = whole.parse().map_err(|_| AmountError::TooLarge)?;
    let hundredths = match fraction.len() {
        0 => 0,
        1 => i64::from(fraction.as_bytes()[0] - b'0') * 10,
        _ => {
            i64::from(fraction.as_bytes()[0] - b'0') * 10 + i64::from(fraction.as_bytes()[1] - b'0')
        }
    };
    let cents = whole
        .checked_mul(100)
        .and_then(|cents| cents.checked_add(hundredths))
        .ok_or(AmountError::TooLarge)?;
    if cents > PRICE_CENTS_MAX {
        Err(AmountError::TooLarge)
    } else {
        Ok(cents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_become_the_credits_that_cover_them() {
        for (text, credits) in [
            ("0", 0),
            ("0.01", 1),
            ("0.5", 1),
            ("0.50", 1),
            ("0.51", 2),
            ("12.50", 25),
            ("500000", 1_000_000),
        ] {
            assert_eq!(cents(text).map(credits_for), Ok(credits), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_price_is_refused() {
        for (text, error) in [
            ("-1", AmountError::Negative),
            ("1.005", AmountError::TooPrecise),
            ("500000.01", AmountError::TooLarge),
            ("99999999999999999999", AmountError::TooLarge),
            ("1e3", AmountError::NotANumber),
            ("", AmountError::NotANumber),
            (".5", AmountError::NotANumber),
        ] {
            assert_eq!(cents(text), Err(error), "{text}");
        }
    }

    #[test]
    fn a_discount_rounds_up_to_whole_credits_and_may_be_total() {
        assert_eq!(
            (discounted(10, 25), discounted(1, 50), discounted(10, 100)),
            (8, 1, 0)
        );
    }
}
