//! Dates and instants as sources write them and the contract wants them: days and microseconds since 1970-01-01 UTC, in the proleptic
//! Gregorian calendar. There is no clock in here.

use std::fmt;
use std::ops::RangeInclusive;

/// Microseconds of a day.
pub const DAY_US: i64 = 86_400_000_000;
/// Days that a column takes, counted from 1970-01-01: those of the years -99999 to 99999.
pub const DAYS: RangeInclusive<i64> = -37_243_412..=35_804_721;
/// The same of moments and of what clocks show, in microseconds.
pub const MOMENTS: RangeInclusive<i64> = *DAYS.start() * DAY_US..=(*DAYS.end() + 1) * DAY_US - 1;

/// A day of the calendar. Year 0 is the one before 1. Written as `YYYY-MM-DD`; years before 0 and of five digits have a sign, as a host writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    pub year: i64,
    pub month: u8,
    pub day: u8,
}

impl Date {
    /// `None`: the calendar has no such day.
    pub fn new(year: i64, month: u8, day: u8) -> Option<Date> {
        let is_day = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        is_day.then_some(Date { year, month, day })
    }

    /// `YYYY-MM-DD`; `None` for anything else, and for a day that is not in the calendar.
    pub fn parse(text: &str) -> Option<Date> {
        let bytes = text.as_bytes();
        let year = digits(bytes, 0, 4)?;
        separator(bytes, 4, b"-")?;
        let month = digits(bytes, 5, 2)?;
        separator(bytes, 7, b"-")?;
        let day = digits(bytes, 8, 2)?;
        match bytes.len() {
            10 => Date::new(year, month as u8, day as u8),
            _ => None,
        }
    }

    /// The same of years before 0 and of more than four digits, too, which have a sign: `-0044-03-15`, `+12024-02-29`. Each part has two digits at least.
    pub fn parse_expanded(text: &str) -> Option<Date> {
        let (sign, rest) = match text.as_bytes() {
            [b'-', ..] => (-1, &text[1..]),
            [b'+', ..] => (1, &text[1..]),
            _ => (1, text),
        };
        let mut parts = rest.split('-').map(|part| number(part, 2));
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        match parts.next() {
            None => Date::new(sign * year, month, day),
            Some(_) => None,
        }
    }

    /// The date that is so many days after 1970-01-01.
    pub fn from_days(days: i64) -> Date {
        // Howard Hinnant's `civil_from_days`: years begin in March, so that the leap day is their last.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = match month_from_march {
            0..=9 => month_from_march + 3,
            _ => month_from_march - 9,
        };
        Date {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month: month as u8,
            day: (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8,
        }
    }

    /// Days since 1970-01-01.
    pub fn days(self) -> i64 {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = self.year - i64::from(month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year
            - 719_468
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.year {
            ..0 => "-",
            0..=9_999 => "",
            _ => "+",
        };
        write!(
            f,
            "{sign}{:04}-{:02}-{:02}",
            self.year.abs(),
            self.month,
            self.day
        )
    }
}

/// A time of day, in microseconds since midnight. Written as `HH:MM:SS.ffffff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay(pub i64);

impl TimeOfDay {
    /// Of an instant, in microseconds since 1970-01-01T00:00:00Z.
    pub fn of(instant: i64) -> TimeOfDay {
        TimeOfDay(instant.rem_euclid(DAY_US))
    }

    /// `HH:MM:SS`, with up to six digits behind a point; `None` for anything else.
    pub fn parse(text: &str) -> Option<TimeOfDay> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let mut parts = whole.split(':');
        let mut part = |end: i64| {
            let part = parts.next()?;
            number(part, 2).filter(|value| part.len() == 2 && *value < end)
        };
        let (hour, minute, second) = (part(24)?, part(60)?, part(60)?);
        if parts.next().is_some() || fraction.len() > 6 {
            return None;
        }
        let scale = 10_i64.pow(6 - fraction.len() as u32);
        let fraction = number(fraction, 1)? * scale;
        Some(TimeOfDay(
            ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction,
        ))
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, fraction) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(f, "{hour:02}:{minute:02}:{second:02}.{fraction:06}")
    }
}

/// RFC 3339, as in `2026-01-01T12:00:00.5Z` or `2026-01-01T13:00:00+01:00`, as microseconds since 1970-01-01T00:00:00Z; digits beyond
/// them are cut off. `None` for anything else: a time without an offset is no moment.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let (local, rest) = local_us(text.as_bytes())?;
    Some(local - offset_seconds(rest)? * 1_000_000)
}

/// What a clock shows, in microseconds since it showed 1970-01-01T00:00:00, and what stands behind it.
fn local_us(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let year = digits(bytes, 0, 4)?;
    separator(bytes, 4, b"-")?;
    let month = digits(bytes, 5, 2)?;
    separator(bytes, 7, b"-")?;
    let day = digits(bytes, 8, 2)?;
    separator(bytes, 10, b"Tt ")?;
    let hour = digits(bytes, 11, 2)?;
    separator(bytes, 13, b":")?;
    let minute = digits(bytes, 14, 2)?;
    separator(bytes, 16, b":")?;
    let second = digits(bytes, 17, 2)?;
    let date = Date::new(year, month as u8, day as u8)?;
    // RFC 3339 allows a leap second; it is the next minute's first.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction, rest) = fraction_us(bytes.get(19..)?)?;
    let seconds = date.days() * 86_400 + hour * 3_600 + minute * 60 + second;
    Some((seconds * 1_000_000 + fraction, rest))
}

/// An instant as RFC 3339 writes it, in UTC: `2026-01-01T12:00:00.500000Z`.
pub fn rfc3339(instant: i64) -> String {
    format!("{}Z", iso8601(instant))
}

/// What a clock shows whose zone nobody knows, in microseconds since it showed 1970-01-01T00:00:00: `2026-01-01T12:00:00.500000`.
pub fn iso8601(local: i64) -> String {
    let date = Date::from_days(local.div_euclid(DAY_US));
    format!("{date}T{}", TimeOfDay::of(local))
}

/// The same read, as in `2026-01-01T12:00:00.5` or `2026-01-01 12:00:00`; digits beyond microseconds are cut off. `None` for anything
/// else: with an offset it is a moment ([`parse_rfc3339`]).
pub fn parse_iso8601(text: &str) -> Option<i64> {
    match local_us(text.as_bytes())? {
        (local, []) => Some(local),
        _ => None,
    }
}

/// Digits and nothing else, so many of them at least.
fn number(text: &str, least: usize) -> Option<i64> {
    let is_number = text.len() >= least && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn digits(bytes: &[u8], at: usize, count: usize) -> Option<i64> {
    bytes.get(at..at + count)?.iter().try_fold(0, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + i64::from(byte - b'0'))
    })
}

fn separator(bytes: &[u8], at: usize, allowed: &[u8]) -> Option<()> {
    allowed.contains(bytes.get(at)?).then_some(())
}

fn fraction_us(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.', rest)) = bytes.split_first() else {
        return Some((0, bytes));
    };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let kept = digits(rest, 0, count.min(6))?;
    let scale = 10_i64.pow(6 - count.min(6) as u32);
    Some((kept * scale, &rest[count..]))
}

fn offset_seconds(bytes: &[u8]) -> Option<i64> {
    let sign = match bytes {
        b"Z" | b"z" => return Some(0),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return None,
    };
    if bytes.len() != 6 {
        return None;
    }
    separator(bytes, 3, b":")?;
    let (hours, minutes) = (digits(bytes, 1, 2)?, digits(bytes, 4, 2)?);
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn days_in_month(year: i64, month: u8) -> u8 {
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every day of the years that any source is likely to know follows the one before it, and comes back as itself.
    #[test]
    fn days_follow_each_other() {
        let first = Date::new(-4_800, 1, 1).unwrap();
        let mut before = Date::from_days(first.days() - 1);
        for days in first.days()..=Date::new(12_000, 12, 31).unwrap().days() {
            let date = Date::from_days(days);
            assert_eq!(date.days(), days);
            assert_eq!(Date::new(date.year, date.month, date.day), Some(date));
            let follows = match (before.month, before.day) {
                (12, 31) => (before.year + 1, 1, 1),
                (month, day) if Date::new(before.year, month, day + 1).is_none() => {
                    (before.year, month + 1, 1)
                }
                (month, day) => (before.year, month, day + 1),
            };
            assert_eq!((date.year, date.month, date.day), follows);
            before = date;
        }
        assert_eq!(Date::new(1970, 1, 1).unwrap().days(), 0);
        assert_eq!(Date::new(2000, 2, 29).unwrap().days(), 11_016);
        for (year, month, day) in [(2023, 2, 29), (1900, 2, 29), (2023, 13, 1), (2023, 0, 10)] {
            assert_eq!(Date::new(year, month, day), None);
        }
    }

    #[test]
    fn days_and_instants_come_back() {
        let leap = Date::parse("2024-02-29").unwrap();
        assert_eq!(
            (leap.days(), leap.to_string().as_str()),
            (19_782, "2024-02-29")
        );
        for other in ["2023-02-29", "2024-2-29", "2024-02-29T", "24-02-29", ""] {
            assert_eq!(Date::parse(other), None, "{other}");
        }
        for instant in [0, -1, 1_767_268_800_500_000] {
            assert_eq!(parse_rfc3339(&rfc3339(instant)), Some(instant));
        }
    }

    #[test]
    fn columns_take_years_of_five_digits() {
        let date = |text: &str| Date::parse_expanded(text).unwrap().days();
        assert_eq!(DAYS, date("-99999-01-01")..=date("+99999-12-31"));
        assert_eq!(iso8601(*MOMENTS.start()), "-99999-01-01T00:00:00.000000");
        assert_eq!(iso8601(*MOMENTS.end()), "+99999-12-31T23:59:59.999999");
    }

    /// Years that are not of four digits are read with their sign, as they are written.
    #[test]
    fn far_years_are_read() {
        for year in [-99_999, -44, 0, 1, 2_024, 9_999, 10_000, 99_999] {
            let date = Date::new(year, 2, 28).unwrap();
            assert_eq!(Date::parse_expanded(&date.to_string()), Some(date));
        }
        for other in [
            "",
            "-",
            "2024",
            "2024-02",
            "2024-02-30",
            "2024-2-28",
            "2024-02-28-",
            "--2024-02-28",
            "2024-02-28 ",
            "2024-258-01",
            "99999999999999999999-01-01",
            "２０２４-02-28",
        ] {
            assert_eq!(Date::parse_expanded(other), None, "{other}");
        }
    }

    #[test]
    fn times_of_day_are_read() {
        for (text, micros) in [
            ("00:00:00", 0),
            ("12:00:00.5", 43_200_500_000),
            ("23:59:59.999999", DAY_US - 1),
        ] {
            assert_eq!(TimeOfDay::parse(text), Some(TimeOfDay(micros)), "{text}");
        }
        for other in [
            "",
            "12:00",
            "24:00:00",
            "12:60:00",
            "12:00:60",
            "1:00:00",
            "12:00:00.",
            "12:00:00.0000001",
            "12:00:00:00",
            "12:00:00+01",
            "-1:00:00",
        ] {
            assert_eq!(TimeOfDay::parse(other), None, "{other}");
        }
    }

    #[test]
    fn dates_and_times_are_written() {
        let table = [
            (-1_i64, "1969-12-31 23:59:59.999999"),
            (0, "1970-01-01 00:00:00.000000"),
            (-62_167_219_200_000_001, "-0001-12-31 23:59:59.999999"),
            (253_402_300_800_000_000, "+10000-01-01 00:00:00.000000"),
        ];
        for (instant, text) in table {
            let date = Date::from_days(instant.div_euclid(DAY_US));
            assert_eq!(format!("{date} {}", TimeOfDay::of(instant)), text);
        }
    }

    #[test]
    fn reads_moments_exactly() {
        let table = [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59.999999Z", -1),
            ("2026-01-01T00:00:00Z", 1_767_225_600_000_000),
            ("2026-01-01T01:00:00+01:00", 1_767_225_600_000_000),
            ("2025-12-31T19:30:00.250-04:30", 1_767_225_600_250_000),
            ("2024-02-29T12:00:00.1234567z", 1_709_208_000_123_456),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000_000),
        ];
        for (text, micros) in table {
            assert_eq!(parse_rfc3339(text), Some(micros), "{text}");
        }
    }

    /// With a zone it is a moment and no clock's reading, however the zone is written.
    #[test]
    fn clocks_are_read_without_a_zone() {
        assert_eq!(parse_iso8601("1970-01-01 00:00:00.5"), Some(500_000));
        for micros in [0, -1, 1_767_268_800_500_000] {
            assert_eq!(parse_iso8601(&iso8601(micros)), Some(micros));
        }
        for text in [
            "",
            "é",
            "2026-01-01",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00+01:00",
            "2026-01-01T00:00:00.",
        ] {
            assert_eq!(parse_iso8601(text), None, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_moment() {
        for text in [
            "",
            "now",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+1:00",
            "2026-01-01T00:00:00Zz",
            "1767225600",
            "2026-01-01T00:00:00+24:00",
            "２026-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }
}
