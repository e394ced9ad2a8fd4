//! Days, times of day and timestamps as callers write them to compare them with a column. As exact as columns are: microseconds, and the
//! years from -99999 to 99999, written as answers have them (`+10000-01-01`). What would lose a digit is refused.

use crate::time::DAY_MICROS;

const YEARS: std::ops::RangeInclusive<i64> = -99_999..=99_999;
/// The calendar repeats itself after so long.
const ERA_YEARS: i64 = 400;
const ERA_DAYS: i64 = 146_097;
/// The first year of an era that jiff knows whole.
const ALIKE_FROM: i64 = 2_000;

pub(crate) const DATE: &str = "must be a date, YYYY-MM-DD";
const TIME: &str = "must be a time of day, such as 05:17:45 or 05:17:45.123456";
pub(crate) const TIMESTAMP: &str = "must be a timestamp, ISO 8601 with an offset or Z";
/// In an address a `+` is a space.
const PLUS_LOST: &str = "must be a timestamp, ISO 8601 with an offset or Z; the + of an offset is written %2B in an address";
const LOCAL: &str = "must be a timestamp without a zone, such as 2026-11-23T05:17:45.123456";
const EITHER: &str =
    "must be a timestamp, such as 2026-11-23T05:17:45.123456 or 2026-11-23T05:17:45.123456Z";
const ZONED: &str = "must be given without a zone, such as 2026-11-23T05:17:45.123456: this column says in none what its clock shows";
const FINE: &str = "must have at most six digits behind the second: more are not kept";

/// Days since 1970-01-01.
pub fn date(text: &str) -> Result<i32, &'static str> {
    days(text).ok_or(DATE)
}

/// Microseconds since midnight. 24:00:00 is the last.
pub fn time(text: &str) -> Result<i64, &'static str> {
    clock(text, TIME)
}

/// Microseconds since 1970-01-01T00:00:00 on a clock of which nobody knows where it hangs.
pub fn local_timestamp(text: &str) -> Result<i64, &'static str> {
    let (day, of_day) = text.split_once(['T', 't', ' ']).ok_or(LOCAL)?;
    let days = days(day).ok_or(LOCAL)?;
    if of_day.contains(['Z', 'z', '+', '-', '[']) {
        return Err(ZONED);
    }
    match clock(of_day, LOCAL)? {
        DAY_MICROS => Err(LOCAL),
        micros => Ok(i64::from(days) * DAY_MICROS + micros),
    }
}

/// Microseconds since 1970-01-01T00:00:00Z.
pub fn timestamp(text: &str) -> Result<i64, &'static str> {
    match common_timestamp(text) {
        // Years that only columns know, as answers have them.
        Err(TIMESTAMP) => match text.strip_suffix('Z').map(local_timestamp) {
            Some(Ok(micros)) => Ok(micros),
            Some(Err(FINE)) => Err(FINE),
            _ if has_lost_its_plus(text) => Err(PLUS_LOST),
            _ => Err(TIMESTAMP),
        },
        read => read,
    }
}

fn has_lost_its_plus(text: &str) -> bool {
    text.rsplit_once(' ').is_some_and(|(clock, offset)| {
        clock.contains(':') && common_timestamp(&format!("{clock}+{offset}")).is_ok()
    })
}

/// Like [`timestamp`], of the years that every program has: up to 9999.
pub fn common_timestamp(text: &str) -> Result<i64, &'static str> {
    match text.parse::<jiff::Timestamp>() {
        Ok(at) if at.subsec_nanosecond() % 1_000 == 0 => Ok(at.as_microsecond()),
        Ok(_) => Err(FINE),
        Err(_) => Err(TIMESTAMP),
    }
}

/// Of a column whose rows may say a zone or not: what a clock in UTC shows, or what is given without a zone as it stands.
pub fn either_timestamp(text: &str) -> Result<i64, &'static str> {
    match (local_timestamp(text), timestamp(text)) {
        (Ok(micros), _) | (_, Ok(micros)) => Ok(micros),
        (Err(FINE), _) | (_, Err(FINE)) => Err(FINE),
        _ => Err(EITHER),
    }
}

/// `YYYY-MM-DD`, and with a sign also years of five digits and of before the year 0.
fn days(text: &str) -> Option<i32> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut parts = unsigned.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = if unsigned.len() < text.len() {
        4..=6
    } else {
        4..=4
    };
    let is_whole = digits.contains(&year.len()) && month.len() == 2 && day.len() == 2;
    if !is_whole || parts.next().is_some() {
        return None;
    }
    let year = sign * number(year)?;
    let (month, day) = (number(month)?, number(day)?);
    if !YEARS.contains(&year) {
        return None;
    }
    // jiff's years end at 9999.
    let (era, of_era) = (year.div_euclid(ERA_YEARS), year.rem_euclid(ERA_YEARS));
    let alike = jiff::civil::Date::new(
        i16::try_from(ALIKE_FROM + of_era).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
    );
    let eras = era - ALIKE_FROM / ERA_YEARS;
    i32::try_from(i64::from(since_epoch(alike.ok()?)?) + eras * ERA_DAYS).ok()
}

fn since_epoch(date: jiff::civil::Date) -> Option<i32> {
    let epoch = jiff::civil::date(1970, 1, 1);
    date.since((jiff::Unit::Day, epoch))
        .ok()
        .map(|span| span.get_days())
}

/// `HH:MM[:SS[.ffffff]]`; digits beyond are zeros, or too fine.
fn clock(text: &str, wanted: &'static str) -> Result<i64, &'static str> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if whole.len() == "05:17:45".len() => (whole, fraction),
        Some(_) => return Err(wanted),
        None => (text, "0"),
    };
    let mut parts = whole.split(':').map(|part| match part.len() {
        2 => number(part),
        _ => None,
    });
    let mut next = || parts.next().flatten();
    let (hour, minute) = (next().ok_or(wanted)?, next().ok_or(wanted)?);
    let second = match whole.len() {
        5 => 0,
        _ => next().ok_or(wanted)?,
    };
    if whole.len() > "05:17:45".len() || fraction.is_empty() || number(fraction).is_none() {
        return Err(wanted);
    }
    let (kept, rest) = fraction.split_at(fraction.len().min(6));
    if rest.bytes().any(|byte| byte != b'0') {
        return Err(FINE);
    }
    let micros = number(&format!("{kept:0<6}")).ok_or(wanted)?;
    let of_day = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros;
    match minute < 60 && second < 60 && of_day <= DAY_MICROS {
        true => Ok(of_day),
        false => Err(wanted),
    }
}

/// Of at most 18 digits.
fn number(digits: &str) -> Option<i64> {
    let is_number = digits.len() <= 18 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that an answer has can be sent back.
    #[test]
    fn what_answers_have_is_read() {
        for (text, expected) in [
            ("1970-01-01", 0),
            ("2024-02-29", 19_782),
            ("9999-12-31", 2_932_896),
            ("+10000-01-01", 2_932_897),
            ("+99999-12-31", 35_804_721),
            ("0000-01-01", -719_528),
            ("-0001-12-31", -719_529),
            ("-99999-01-01", -37_243_412),
        ] {
            assert_eq!(date(text), Ok(expected), "{text}");
        }
        for (text, expected) in [
            ("00:00:00.000000", 0),
            ("23:59:59.999999", 86_399_999_999),
            ("24:00:00.000000", DAY_MICROS),
            ("05:17", 19_020_000_000),
            ("05:17:45.5", 19_065_500_000),
            ("05:17:45.123456000", 19_065_123_456),
        ] {
            assert_eq!(time(text), Ok(expected), "{text}");
        }
        for (text, expected) in [
            ("1969-12-31T23:59:59.999999", -1),
            ("1970-01-01 00:00", 0),
            ("+10000-01-01T00:00:00.000000", 253_402_300_800_000_000),
        ] {
            assert_eq!(local_timestamp(text), Ok(expected), "{text}");
            assert_eq!(timestamp(&format!("{text}Z")), Ok(expected), "{text}Z");
        }
        assert_eq!(timestamp("1970-01-01T01:00:00+01:00"), Ok(0));
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "-",
            "2023-02-29",
            "10000-01-01",
            "2024-2-29",
            "2024-02-29T",
            "+2024-13-01",
            "2024-02-00",
            "é024-02-01",
            "100000-01-01",
            "+100000-01-01",
            "2024-02-01-01",
        ] {
            assert_eq!(date(text), Err(DATE), "{text}");
        }
        for text in [
            "",
            "5:17",
            "05:60",
            "05:17:60",
            "24:00:00.000001",
            "25:00",
            "05:17:45.",
            "05:17.5",
            "05:17:45:1",
            "05",
            "-5:17",
            "05:17:45Z",
            "05:17:45.1é",
        ] {
            assert_eq!(time(text), Err(TIME), "{text}");
        }
        for text in [
            "",
            "2024-02-29",
            "2024-02-30T00:00:00",
            "2024-02-29T24:00:00",
            "now",
        ] {
            assert_eq!(local_timestamp(text), Err(LOCAL), "{text}");
            assert_eq!(timestamp(text), Err(TIMESTAMP), "{text}");
        }
    }

    /// With a zone it would have to be guessed what the column's clock showed then.
    #[test]
    fn zones_are_refused_where_there_is_none() {
        for zone in ["Z", "z", "+02:00", "-04:30", "[Europe/Berlin]", "+00[UTC]"] {
            let text = format!("2026-11-23T05:17:45{zone}");
            assert_eq!(local_timestamp(&text), Err(ZONED), "{text}");
        }
        assert_eq!(timestamp("2026-11-23T05:17:45"), Err(TIMESTAMP));
    }

    /// Whoever puts an offset into an address as it is gets a space for its `+`.
    #[test]
    fn a_lost_plus_is_told() {
        for text in ["2026-11-23T05:17:45 01:00", "2026-11-23T05:17:45.5 05:30"] {
            assert_eq!(timestamp(text), Err(PLUS_LOST), "{text}");
            assert!(timestamp(&text.replace(' ', "+")).is_ok(), "{text}");
        }
        for text in [
            "2026-11-23 05:17:45",
            "2026-11-23T05:17:45 CET",
            "2026-11-23 05:17",
        ] {
            assert_eq!(timestamp(text), Err(TIMESTAMP), "{text}");
        }
    }

    /// Where rows may have both, both are taken.
    #[test]
    fn a_zone_may_be_given_or_not() {
        for text in [
            "1970-01-01T01:00:00.5",
            "1970-01-01 01:00:00.500",
            "1970-01-01T01:00:00.500000Z",
            "1970-01-01T03:00:00.5+02:00",
        ] {
            assert_eq!(either_timestamp(text), Ok(3_600_500_000), "{text}");
        }
        let far = "+10000-01-01T00:00:00";
        assert_eq!(either_timestamp(far), local_timestamp(far));
        assert_eq!(either_timestamp(&format!("{far}Z")), local_timestamp(far));
        for text in [
            "2026-11-23T05:17:45.1234567",
            "2026-11-23T05:17:45.1234567Z",
        ] {
            assert_eq!(either_timestamp(text), Err(FINE), "{text}");
        }
        for text in ["", "2026-11-23", "yesterday", "2026-11-23T24:00:00"] {
            assert_eq!(either_timestamp(text), Err(EITHER), "{text}");
        }
    }

    /// A value between two microseconds equals nothing, and is not taken for one that it is not.
    #[test]
    fn nothing_is_cut_off() {
        assert_eq!(time("05:17:45.1234567"), Err(FINE));
        assert_eq!(local_timestamp("2026-11-23T05:17:45.1234567"), Err(FINE));
        assert_eq!(timestamp("2026-11-23T05:17:45.1234567Z"), Err(FINE));
        assert_eq!(timestamp("+12026-11-23T05:17:45.1234567Z"), Err(FINE));
        let fine = common_timestamp("2026-11-23T05:17:45.1234567Z");
        assert_eq!(fine, Err(FINE));
        assert!(timestamp("2026-11-23T05:17:45.123456000Z").is_ok());
    }
}
