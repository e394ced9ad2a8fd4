//! Dates and times as ISO 8601 writes them.

/// Digits of a second's fraction that are kept.
const FRACTION_MAX: usize = 6;
const MICROS_A_SECOND: i64 = 1_000_000;
const SECONDS_A_DAY: i64 = 86_400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since 1970-01-01.
    pub days: i32,
    /// Of the day; `None` of a date.
    pub micros: Option<i64>,
    /// What the clock is ahead of UTC; `None` of one whose zone nobody knows.
    pub offset_minutes: Option<i64>,
}

impl Moment {
    /// `2026-01-31`, `2026-01-31 23:59:59.5`, with a `T`, and with a zone (`Z`, `+01:00`). Of leap seconds and of 24 o'clock nobody is
    /// certain.
    pub fn parse(value: &str) -> Option<Moment> {
        let bytes = value.as_bytes();
        let date = bytes.get(..10)?;
        let (year, month, day) = (
            number(&date[..4])?,
            number(&date[5..7])?,
            number(&date[8..])?,
        );
        if date[4] != b'-' || date[7] != b'-' || !is_day(year, month, day) {
            return None;
        }
        let days = days(year.into(), month.into(), day.into());
        let days = i32::try_from(days).ok()?;
        let (micros, offset_minutes) = match bytes.get(10) {
            None => (None, None),
            Some(b' ' | b'T') => {
                let (micros, rest) = clock(&bytes[11..])?;
                (Some(micros), zone(rest)?)
            }
            Some(_) => return None,
        };
        Some(Moment {
            days,
            micros,
            offset_minutes,
        })
    }

    /// Since 1970-01-01T00:00:00, in UTC where the zone is known.
    pub fn micros_since_1970(self) -> i64 {
        let day = i64::from(self.days) * SECONDS_A_DAY * MICROS_A_SECOND;
        let ahead = self.offset_minutes.unwrap_or(0) * 60 * MICROS_A_SECOND;
        day + self.micros.unwrap_or(0) - ahead
    }
}

/// Microseconds of the day, and what stands behind the time.
fn clock(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let clock = bytes.get(..8)?;
    let (hour, minute, second) = (
        number(&clock[..2])?,
        number(&clock[3..5])?,
        number(&clock[6..])?,
    );
    if clock[2] != b':' || clock[5] != b':' || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let micros = i64::from(hour * 3600 + minute * 60 + second) * MICROS_A_SECOND;
    let rest = &bytes[8..];
    let Some(b'.') = rest.first() else {
        return Some((micros, rest));
    };
    let digits = rest[1..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if !(1..=FRACTION_MAX).contains(&digits) {
        return None;
    }
    let fraction =
        i64::from(number(&rest[1..=digits])?) * 10i64.pow((FRACTION_MAX - digits) as u32);
    Some((micros + fraction, &rest[digits + 1..]))
}

/// Minutes ahead of UTC, or that nothing is said.
fn zone(rest: &[u8]) -> Option<Option<i64>> {
    match rest {
        [] => Some(None),
        [b'Z'] => Some(Some(0)),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
            let ahead = i64::from(hours * 60 + minutes);
            let ahead = if *sign == b'-' { -ahead } else { ahead };
            (hours <= 14 && minutes <= 59).then_some(Some(ahead))
        }
        _ => None,
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + u32::from(digit - b'0'))
    })
}

fn is_day(year: u32, month: u32, day: u32) -> bool {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    year >= 1 && (1..=days).contains(&day)
}

/// Days since 1970-01-01 of the proleptic Gregorian calendar: years begin in March, so that a leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month <= 2 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_counted_from_1970() {
        for (text, micros) in [
            ("1970-01-01", 0),
            ("2000-03-01", 951_868_800_000_000),
            ("2024-02-29 23:59:59.5", 1_709_251_199_500_000),
            ("2024-02-29T23:59:59.000001+01:30", 1_709_245_799_000_001),
            ("1969-12-31T23:59:59Z", -1_000_000),
            ("9999-12-31 23:59:59.999999", 253_402_300_799_999_999),
            ("0001-01-01", -62_135_596_800_000_000),
        ] {
            assert_eq!(
                Moment::parse(text).unwrap().micros_since_1970(),
                micros,
                "{text}"
            );
        }
        for text in [
            "2024-01-01 ",
            "2024-01-01T",
            "2024-01-01x00:00:00",
            "2024-01-01 00:00:00+1",
            "2024-01-01 00:00:00+15:00",
            "2024-01-01 00:00:00.",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
