//! Rules of money that comes in and goes out: how much may be bought at once, from what amount on is paid out, and where to.

use crate::money::{CENTS_PER_CREDIT, Credits, UsdCents};
use std::time::Duration;

/// The most credits of one top-up: 50,000 dollars. More is a typing error, or a talk with the platform.
pub const TOP_UP_CREDITS_MAX: i64 = 100_000;

/// Below this a company's credits are low, unless the company says otherwise.
pub const CREDITS_LOW_DEFAULT: i64 = 100;

/// The least that is paid out: below it, what a transfer costs is out of proportion.
pub const PAYOUT_MIN: UsdCents = UsdCents::new(10_00);

/// Earnings become payable when their charge is this old: by then a buyer who has something to complain about has seen it.
pub const MATURE_AFTER: Duration = Duration::from_secs(7 * 86_400);

/// Shorter, the last four characters would give the rest away.
const DESTINATION_CHARS_MIN: usize = 6;
/// The longest IBAN has 34 characters, the longest mail address 254.
const DESTINATION_CHARS_MAX: usize = 254;
const LAST: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TopUpError {
    #[error("must be 1 to 100000 credits, which is 0.50 to 50000.00 dollars")]
    Range,
    #[error("must be a multiple of 0.50 dollars, which is one credit")]
    NotWhole,
}

/// The credits of a top-up.
pub fn top_up_credits(credits: i64) -> Result<Credits, TopUpError> {
    match Credits::new(credits) {
        Ok(valid) if (1..=TOP_UP_CREDITS_MAX).contains(&credits) => Ok(valid),
        _ => Err(TopUpError::Range),
    }
}

/// The credits that `amount` buys, exactly: nobody pays for a part of a credit.
pub fn top_up_credits_for(amount: UsdCents) -> Result<Credits, TopUpError> {
    if amount.get() % CENTS_PER_CREDIT != 0 {
        return Err(TopUpError::NotWhole);
    }
    top_up_credits(amount.get() / CENTS_PER_CREDIT)
}

/// How a seller is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayoutMethodType {
    BankAccount,
    Paypal,
    StripeConnect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    #[error("must have 6 to 254 characters, none of them a control character")]
    Length,
    #[error("must be the mail address of the PayPal account")]
    NotAMailAddress,
    #[error("must be the id of a connected Stripe account, acct_…")]
    NotAStripeAccount,
}

impl PayoutMethodType {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BankAccount => "bank_account",
            Self::Paypal => "paypal",
            Self::StripeConnect => "stripe_connect",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::BankAccount, Self::Paypal, Self::StripeConnect]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }

    /// Checks what can be checked without asking anybody: that it is not plainly something else.
    pub fn check_destination(self, text: &str) -> Result<(), DestinationError> {
        let chars = text.chars().count();
        if !(DESTINATION_CHARS_MIN..=DESTINATION_CHARS_MAX).contains(&chars)
            || text.chars().any(char::is_control)
        {
            return Err(DestinationError::Length);
        }
        let is_mail_address = || {
            text.split_once('@')
                .is_some_and(|(name, domain)| !name.is_empty() && domain.contains('.'))
        };
        match self {
            Self::Paypal if !is_mail_address() => Err(DestinationError::NotAMailAddress),
            Self::StripeConnect if !text.starts_with("acct_") => {
                Err(DestinationError::NotAStripeAccount)
            }
            _ => Ok(()),
        }
    }
}

/// The end of a destination, by which its owner knows it again.
pub fn last4(destination: &str) -> String {
    let chars: Vec<char> = destination
        .chars()
        .filter(|char| !char.is_whitespace())
        .collect();
    chars[chars.len().saturating_sub(LAST)..].iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dollars buy whole credits or nothing, within the bounds.
    #[test]
    fn dollars_buy_whole_credits() {
        let buy = |text| top_up_credits_for(UsdCents::parse(text).unwrap()).map(Credits::get);
        assert_eq!(buy("0.50"), Ok(1));
        assert_eq!(buy("50000"), Ok(100_000));
        assert_eq!(buy("19.99"), Err(TopUpError::NotWhole));
        assert_eq!(buy("0"), Err(TopUpError::Range));
        assert_eq!(buy("50000.50"), Err(TopUpError::Range));
        assert_eq!(top_up_credits(-1), Err(TopUpError::Range));
    }

    /// What is plainly no destination is refused; of what is, the end is shown.
    #[test]
    fn destinations_are_checked() {
        use PayoutMethodType::*;
        assert_eq!(
            BankAccount.check_destination("DE89 3704 0044 0532 0130 00"),
            Ok(())
        );
        assert_eq!(last4("DE89 3704 0044 0532 0130 00"), "3000");
        assert_eq!(
            BankAccount.check_destination("12345"),
            Err(DestinationError::Length)
        );
        assert_eq!(
            BankAccount.check_destination("1234567\n"),
            Err(DestinationError::Length)
        );
        assert_eq!(Paypal.check_destination("a@example.com"), Ok(()));
        assert_eq!(
            Paypal.check_destination("example.com"),
            Err(DestinationError::NotAMailAddress)
        );
        assert_eq!(
            StripeConnect.check_destination("a@example.com"),
            Err(DestinationError::NotAStripeAccount)
        );
    }
}
