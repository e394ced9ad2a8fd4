//! Rules of webhooks: which events there are, where they may be sent, how often and for how long a delivery is tried.

use crate::time::DAY;
use std::time::Duration;
use url::Url;

/// A company with more receivers than this puts a dispatcher of its own behind one.
pub const WEBHOOKS_MAX: i64 = 20;

/// Longer addresses are refused by many servers too.
pub const URL_CHARS_MAX: usize = 2_000;

/// The largest body of a delivery, as receivers are promised.
pub const BODY_BYTES_MAX: usize = 20_000;

/// How long the former secret signs beside the new one: a day is enough to roll a secret out everywhere.
pub const SECRETS_OVERLAP: Duration = DAY;

/// The pause after the first failed attempt, the second, and so on. A delivery that fails after the last one has failed for good.
pub const RETRY_PAUSES: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3_600),
    Duration::from_secs(5 * 3_600),
    Duration::from_secs(10 * 3_600),
    Duration::from_secs(10 * 3_600),
];

/// Pauses are up to this much shorter or longer, so that what failed together does not come back together.
pub const JITTER: f64 = 0.1;

/// A webhook to which nothing could be delivered for this long is disabled.
pub const FAILING_MAX: Duration = Duration::from_secs(5 * 86_400);

/// Failures further apart than this do not make one series: two bad moments a week apart are no week of failure. Longer than any pause.
pub const FAILING_GAP_MAX: Duration = DAY;

/// What a webhook can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventType {
    AlertTriggered,
    AlertResolved,
    AlertError,
    CreditsLow,
    TopUpSettled,
    PurchaseCreated,
    EndpointKeyProvisioned,
    ApiKeyRevoked,
    PayoutPaid,
    PayoutFailed,
    PayoutCancelled,
}

impl EventType {
    pub const ALL: [EventType; 11] = [
        Self::AlertTriggered,
        Self::AlertResolved,
        Self::AlertError,
        Self::CreditsLow,
        Self::TopUpSettled,
        Self::PurchaseCreated,
        Self::EndpointKeyProvisioned,
        Self::ApiKeyRevoked,
        Self::PayoutPaid,
        Self::PayoutFailed,
        Self::PayoutCancelled,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AlertTriggered => "alert.triggered",
            Self::AlertResolved => "alert.resolved",
            Self::AlertError => "alert.error",
            Self::CreditsLow => "credits.low",
            Self::TopUpSettled => "credits.top_up.settled",
            Self::PurchaseCreated => "purchase.created",
            Self::EndpointKeyProvisioned => "endpoint_key.provisioned",
            Self::ApiKeyRevoked => "api_key.revoked",
            Self::PayoutPaid => "payout.paid",
            Self::PayoutFailed => "payout.failed",
            Self::PayoutCancelled => "payout.cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The pause after attempt number `attempts` has failed, or `None` after the last. `chance` is a random number from 0 to 1.
pub fn retry_pause(attempts: u32, chance: f64) -> Option<Duration> {
    let place = usize::try_from(attempts.checked_sub(1)?).ok()?;
    let pause = RETRY_PAUSES.get(place)?;
    Some(pause.mul_f64(1.0 - JITTER + 2.0 * JITTER * chance.clamp(0.0, 1.0)))
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("must have at most {URL_CHARS_MAX} characters")]
    Length,
    #[error("must be an address such as https://example.com/hooks")]
    Shape,
    #[error("must not hold a user name or password: the signature says who sends")]
    Credentials,
    #[error("must not have a fragment, which is never sent")]
    Fragment,
}

/// Where events may be sent, as far as the address's text tells. Whether `http` is good enough is the operator's decision.
pub fn check_url(text: &str) -> Result<Url, UrlError> {
    if text.chars().count() > URL_CHARS_MAX {
        return Err(UrlError::Length);
    }
    let url = Url::parse(text).map_err(|_| UrlError::Shape)?;
    // Percent-encoding may have made it longer.
    if url.as_str().len() > URL_CHARS_MAX {
        return Err(UrlError::Length);
    }
    if !matches!(url.scheme(), "https" | "http")
        || url.host_str().is_none_or(str::is_empty)
        || url.port() == Some(0)
    {
        return Err(UrlError::Shape);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlError::Credentials);
    }
    if url.fragment().is_some() {
        return Err(UrlError::Fragment);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every type reads back from its name, and no name holds another one's.
    #[test]
    fn types_have_names_of_their_own() {
        for kind in EventType::ALL {
            assert_eq!(EventType::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(EventType::parse("credits"), None);
    }

    /// Seven retries, each about its pause later, and then no more. The longest is shorter than the gap that ends a series of failures.
    #[test]
    fn retries_follow_the_schedule() {
        for (place, pause) in RETRY_PAUSES.iter().enumerate() {
            let attempts = u32::try_from(place).unwrap() + 1;
            for chance in [0.0, 0.5, 1.0] {
                let actual = retry_pause(attempts, chance).unwrap();
                let (least, most) = (pause.mul_f64(0.899), pause.mul_f64(1.101));
                assert!((least..=most).contains(&actual), "{actual:?}");
                assert!(actual < FAILING_GAP_MAX);
            }
        }
        assert_eq!((retry_pause(0, 0.5), retry_pause(8, 0.5)), (None, None));
    }

    /// What is no address, or carries what does not belong there, is refused.
    #[test]
    fn addresses_are_checked() {
        for good in [
            "https://example.com/hooks?team=a",
            "http://127.0.0.1:9000/",
            "https://[2606:4700::1111]/x",
        ] {
            assert!(check_url(good).is_ok(), "{good}");
        }
        let long = format!("https://example.com/{}", "ä".repeat(URL_CHARS_MAX / 2));
        for (bad, error) in [
            ("example.com", UrlError::Shape),
            ("ftp://example.com", UrlError::Shape),
            ("https://", UrlError::Shape),
            ("https://example.com:0/", UrlError::Shape),
            ("https://u:p@example.com/", UrlError::Credentials),
            ("https://example.com/#x", UrlError::Fragment),
            (&long, UrlError::Length),
        ] {
            assert_eq!(check_url(bad), Err(error), "{bad}");
        }
    }
}
