//! Time as sellers write it: RFC 3339, any offset, to microseconds since the epoch in UTC.

const DAY_SECONDS: i64 = 86_400;

/// `2026-01-01T12:00:00.5Z`, `2026-01-01T13:00:00+01:00`. `None` for anything else; a time without
/// an offset is not a moment and is refused too.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
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
    // RFC 3339 allows a leap second; it is the next minute's first.
    let valid = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour <= 23
        && minute <= 59
        && second <= 60;
    if !valid {
        return None;
    }
    let (fraction, rest) = fraction_micros(bytes.get(19..)?)?;
    let offset = offset_seconds(rest)?;
    let seconds =
        days_from_civil(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second
            - offset;
    Some(seconds * 1_000_000 + fraction)
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

/// Digits beyond microseconds are cut off, as every consumer of the value would.
fn fraction_micros(bytes: &[u8]) -> Option<(i64, &[u8])> {
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
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date in the proleptic Gregorian calendar (Howard Hinnant's algorithm).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(parse_timestamp(text), Some(micros), "{text}");
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
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }
}
