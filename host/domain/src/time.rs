//! Instants: microseconds since 1970-01-01 UTC, written as RFC 3339 with `Z`. Knows no clock.

use std::fmt;
use std::time::Duration;

/// An instant in UTC, to the microsecond. The store keeps it as BIGINT.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// A text that is not an ISO 8601 instant, or one outside the years 1 to 9999.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected an ISO 8601 instant with an offset, such as 2026-01-31T12:00:00Z")]
pub struct TimestampError;

pub const HOUR: Duration = Duration::from_secs(3_600);
pub const DAY: Duration = Duration::from_secs(86_400);
pub const DAY_MICROS: i64 = 86_400_000_000;

/// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z: what four digits of a year can write.
const MICROS_MIN: i64 = -62_135_596_800_000_000;
const MICROS_MAX: i64 = 253_402_300_799_999_999;

impl Timestamp {
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Reads an instant with `Z` or any offset.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let instant: jiff::Timestamp = text.parse().map_err(|_| TimestampError)?;
        let micros = instant.as_microsecond();
        if (MICROS_MIN..=MICROS_MAX).contains(&micros) {
            Ok(Self(micros))
        } else {
            Err(TimestampError)
        }
    }

    /// The instant `by` later; stops at the end of time rather than wrapping.
    pub fn after(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// The instant `by` earlier.
    pub fn before(self, by: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// Time from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Midnight UTC of this instant's day.
    pub fn day_start(self) -> Self {
        Self(self.0.div_euclid(DAY_MICROS) * DAY_MICROS)
    }

    /// The first midnight UTC of this instant's month, and that of the next.
    pub fn month(self) -> (Self, Self) {
        let first = |at: Self| {
            let month = &at.date()[.."2026-01".len()];
            Self::parse(&format!("{month}-01T00:00:00Z")).unwrap_or(at)
        };
        let from = first(self);
        // 31 days on it is the next month, which has begun at most three days before.
        (from, first(from.after(DAY * 31)))
    }

    /// `YYYY-MM-DD` of this instant in UTC.
    pub fn date(self) -> String {
        let mut text = self.to_string();
        text.truncate(10);
        text
    }
}

impl From<std::time::SystemTime> for Timestamp {
    fn from(time: std::time::SystemTime) -> Self {
        match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => Self(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)),
            Err(before) => Self(-i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX)),
        }
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 with `Z`; a fraction only where there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not by an instant of jiff's, which ends a day before the year 9999 does: an error here would be a panic of whoever writes it.
        let micros = self.0.clamp(MICROS_MIN, MICROS_MAX);
        let epoch = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0);
        match epoch.checked_add(jiff::SignedDuration::from_micros(micros)) {
            Ok(civil) => write!(f, "{civil}Z"),
            Err(_) => Err(fmt::Error),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Input offsets are converted, output is always `Z`.
    #[test]
    fn offsets_are_converted_to_utc() {
        let time = Timestamp::parse("2026-01-31T12:00:00+02:00").unwrap();
        assert_eq!(time.to_string(), "2026-01-31T10:00:00Z");
        assert_eq!(
            Timestamp::parse("2026-01-31T10:00:00.000001Z")
                .unwrap()
                .micros()
                - time.micros(),
            1
        );
        assert_eq!(time.date(), "2026-01-31");
        assert_eq!(time.day_start().to_string(), "2026-01-31T00:00:00Z");
    }

    /// Whatever a source holds, it can be written.
    #[test]
    fn every_instant_is_written() {
        for (micros, text) in [
            (i64::MAX, "9999-12-31T23:59:59.999999Z"),
            (253_402_300_799_000_000, "9999-12-31T23:59:59Z"),
            (253_402_214_400_500_000, "9999-12-31T00:00:00.5Z"),
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (i64::MIN, "0001-01-01T00:00:00Z"),
        ] {
            assert_eq!(Timestamp::from_micros(micros).to_string(), text);
        }
    }

    /// A time without an offset is ambiguous and refused.
    #[test]
    fn ambiguous_times_are_refused() {
        for bad in ["2026-01-31", "2026-01-31T10:00:00", "yesterday", ""] {
            assert!(Timestamp::parse(bad).is_err(), "{bad}");
        }
    }
}
