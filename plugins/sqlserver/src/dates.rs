//! Dates and times as they stand in a row (MS-TDS 2.2.5.5.1.8, 2.2.5.5.1.9). Up to microseconds they become numbers, and text with seven digits of a second.

use souk_sdk::Error;
use souk_sdk::time::{DAY_US, Date};

use crate::protocol::malformed;

/// 0001-01-01, the first day of `date`, and 9999-12-31, the last, in days since 1970-01-01.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;
/// 1900-01-01, from which `datetime` counts.
const DAY_1900: i64 = -25_567;
/// What `datetime` counts in: three hundredths of a second.
const DATETIME_TICKS: i64 = 300;
/// Digits of a second that microseconds have, and the most that the server has.
pub const MICRO_DIGITS: u8 = 6;
pub const DIGITS_MAX: u8 = 7;
/// How far from UTC an offset may be.
const OFFSET_MINUTES_MAX: i16 = 14 * 60;

fn day(days: i64) -> Result<i64, Error> {
    match (FIRST_DAY..=LAST_DAY).contains(&days) {
        true => Ok(days),
        false => Err(malformed()),
    }
}

/// `date`: three bytes.
pub fn date(bytes: &[u8]) -> Result<i32, Error> {
    let [a, b, c] = bytes else {
        return Err(malformed());
    };
    let days = i64::from(u32::from_le_bytes([*a, *b, *c, 0]));
    Ok(day(FIRST_DAY + days)? as i32)
}

/// How many bytes a time takes.
fn time_bytes(digits: u8) -> usize {
    match digits {
        0..=2 => 3,
        3..=4 => 4,
        _ => 5,
    }
}

/// `time(digits)`, in its own units since midnight.
fn units(bytes: &[u8], digits: u8) -> Result<i64, Error> {
    if digits > DIGITS_MAX || bytes.len() != time_bytes(digits) {
        return Err(malformed());
    }
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let units = i64::from_le_bytes(wide);
    match units < 86_400 * 10_i64.pow(digits.into()) {
        true => Ok(units),
        false => Err(malformed()),
    }
}

/// `time(digits)` of six digits at most, in microseconds since midnight.
pub fn time(bytes: &[u8], digits: u8) -> Result<i64, Error> {
    let units = units(bytes, digits)?;
    Ok(units * 10_i64.pow(MICRO_DIGITS.saturating_sub(digits).into()))
}

/// A `datetime2(digits)`: its day since 1970-01-01 and its time.
fn parts(bytes: &[u8], digits: u8) -> Result<(i64, &[u8]), Error> {
    let (time, days) = bytes
        .split_at_checked(time_bytes(digits))
        .ok_or_else(malformed)?;
    Ok((date(days)?.into(), time))
}

/// `datetime2(digits)` of six digits at most, in microseconds since 1970-01-01.
pub fn datetime2(bytes: &[u8], digits: u8) -> Result<i64, Error> {
    let (days, bytes) = parts(bytes, digits)?;
    Ok(days * DAY_US + time(bytes, digits)?)
}

/// `datetimeoffset(digits)` of six digits at most, in microseconds since 1970-01-01 UTC: so it stands there.
pub fn datetimeoffset(bytes: &[u8], digits: u8) -> Result<i64, Error> {
    let (moment, _) = offset(bytes)?;
    datetime2(moment, digits)
}

/// What is before the offset, and the offset in minutes.
fn offset(bytes: &[u8]) -> Result<(&[u8], i64), Error> {
    let (moment, offset) = bytes.split_last_chunk::<2>().ok_or_else(malformed)?;
    let minutes = i16::from_le_bytes(*offset);
    match (-OFFSET_MINUTES_MAX..=OFFSET_MINUTES_MAX).contains(&minutes) {
        true => Ok((moment, minutes.into())),
        false => Err(malformed()),
    }
}

/// `datetime`, in microseconds. A tick is shown as the server shows it: rounded to a thousandth.
pub fn datetime(bytes: &[u8]) -> Result<i64, Error> {
    let (days, ticks) = bytes.split_first_chunk::<4>().ok_or_else(malformed)?;
    let ticks: [u8; 4] = ticks.try_into().map_err(|_| malformed())?;
    let ticks = i64::from(u32::from_le_bytes(ticks));
    if ticks >= 86_400 * DATETIME_TICKS {
        return Err(malformed());
    }
    let days = day(DAY_1900 + i64::from(i32::from_le_bytes(*days)))?;
    let millis = (ticks * 1_000 + DATETIME_TICKS / 2) / DATETIME_TICKS;
    Ok(days * DAY_US + millis * 1_000)
}

/// `smalldatetime`, in microseconds.
pub fn smalldatetime(bytes: &[u8]) -> Result<i64, Error> {
    let [a, b, c, d] = bytes else {
        return Err(malformed());
    };
    let minutes = i64::from(u16::from_le_bytes([*c, *d]));
    if minutes >= 24 * 60 {
        return Err(malformed());
    }
    let days = DAY_1900 + i64::from(u16::from_le_bytes([*a, *b]));
    Ok(days * DAY_US + minutes * 60_000_000)
}

/// `time(7)`: `12:00:00.0000001`.
pub fn time_text(bytes: &[u8], digits: u8) -> Result<String, Error> {
    let units = units(bytes, digits)?;
    let one = 10_i64.pow(digits.into());
    let (seconds, fraction) = (units / one, units % one);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let clock = format!("{hour:02}:{minute:02}:{second:02}");
    Ok(match digits {
        0 => clock,
        digits => format!("{clock}.{fraction:0width$}", width = usize::from(digits)),
    })
}

/// `datetime2(7)`: `2026-01-01T12:00:00.0000001`.
pub fn datetime2_text(bytes: &[u8], digits: u8) -> Result<String, Error> {
    let (days, bytes) = parts(bytes, digits)?;
    Ok(format!(
        "{}T{}",
        Date::from_days(days),
        time_text(bytes, digits)?
    ))
}

/// `datetimeoffset(7)`: `2026-01-01T12:00:00.0000001+01:00`.
pub fn datetimeoffset_text(bytes: &[u8], digits: u8) -> Result<String, Error> {
    let (moment, offset) = offset(bytes)?;
    let (days, time) = parts(moment, digits)?;
    let one = 10_i64.pow(digits.min(DIGITS_MAX).into());
    let units = units(time, digits)? + offset * 60 * one;
    let of_day = 86_400 * one;
    let date = Date::from_days(days + units.div_euclid(of_day));
    // Of a day, so they fit.
    let wide = units.rem_euclid(of_day).to_le_bytes();
    let clock = time_text(&wide[..time.len()], digits)?;
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes) = (offset.abs() / 60, offset.abs() % 60);
    Ok(format!("{date}T{clock}{sign}{hours:02}:{minutes:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::time::{iso8601, rfc3339};

    /// The first and the last value of each type, and one in between.
    #[test]
    fn days_are_the_calendars() {
        assert_eq!(FIRST_DAY, Date::new(1, 1, 1).unwrap().days());
        assert_eq!(LAST_DAY, Date::new(9_999, 12, 31).unwrap().days());
        assert_eq!(DAY_1900, Date::new(1_900, 1, 1).unwrap().days());
        assert_eq!(date(&[0, 0, 0]).unwrap(), FIRST_DAY as i32);
        assert_eq!(date(&[0xda, 0xb9, 0x37]).unwrap(), LAST_DAY as i32);
        for wrong in [
            &[0xdb, 0xb9, 0x37][..],
            &[0xff, 0xff, 0xff],
            &[0, 0],
            &[0, 0, 0, 0],
        ] {
            assert!(date(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn datetimes_are_rounded_as_they_are_shown() {
        let at = |days: i32, ticks: u32| {
            datetime(&[days.to_le_bytes(), ticks.to_le_bytes()].concat()).map(iso8601)
        };
        // Of MS-TDS: 1753-01-01 is the first, 9999-12-31 23:59:59.997 the last.
        assert_eq!(at(-53_690, 0).unwrap(), "1753-01-01T00:00:00.000000");
        assert_eq!(
            at(2_958_463, 25_919_999).unwrap(),
            "9999-12-31T23:59:59.997000"
        );
        assert_eq!(at(0, 1).unwrap(), "1900-01-01T00:00:00.003000");
        assert_eq!(at(0, 2).unwrap(), "1900-01-01T00:00:00.007000");
        assert_eq!(at(0, 3).unwrap(), "1900-01-01T00:00:00.010000");
        assert!(at(0, 25_920_000).is_err() && at(i32::MAX, 0).is_err());
        assert!(datetime(&[0; 7]).is_err());
        let small = smalldatetime(&[0xff, 0xff, 0x9f, 0x05]).map(iso8601);
        assert_eq!(small.unwrap(), "2079-06-06T23:59:00.000000");
        assert!(smalldatetime(&[0, 0, 0xa0, 0x05]).is_err());
    }

    #[test]
    fn digits_of_a_second_are_kept() {
        for (digits, bytes, micros) in [
            (0, &[1, 0, 0][..], 1_000_000),
            (2, &[1, 0, 0], 10_000),
            (3, &[1, 0, 0, 0], 1_000),
            (6, &[0xff, 0x5f, 0xd7, 0x1d, 0x14], DAY_US - 1),
        ] {
            assert_eq!(time(bytes, digits).unwrap(), micros);
            assert!(time(&bytes[1..], digits).is_err());
            assert!(time(&vec![0xff; bytes.len()], digits).is_err(), "{digits}");
        }
        assert!(time(&[0; 5], 8).is_err());
        let last = 863_999_999_999_i64.to_le_bytes();
        assert_eq!(time_text(&last[..5], 7).unwrap(), "23:59:59.9999999");
        let both = [&last[..5], &[0xda, 0xb9, 0x37]].concat();
        assert_eq!(
            datetime2_text(&both, 7).unwrap(),
            "9999-12-31T23:59:59.9999999"
        );
        assert!(datetime2(&both[..7], 6).is_err());
    }

    #[test]
    fn offsets_move_the_clock_and_not_the_moment() {
        // 2026-01-01T23:30:00.0000001Z.
        let time = (84_600 * 10_000_000_i64 + 1).to_le_bytes();
        let days = (Date::new(2026, 1, 1).unwrap().days() - FIRST_DAY).to_le_bytes();
        let at = |digits: u8, minutes: i16| {
            let time = match digits {
                7 => time,
                _ => (84_600 * 1_000_000_i64).to_le_bytes(),
            };
            [&time[..5], &days[..3], &minutes.to_le_bytes()].concat()
        };
        for (minutes, text) in [
            (0, "2026-01-01T23:30:00.0000001+00:00"),
            (60, "2026-01-02T00:30:00.0000001+01:00"),
            (-840, "2026-01-01T09:30:00.0000001-14:00"),
            (-30, "2026-01-01T23:00:00.0000001-00:30"),
        ] {
            assert_eq!(datetimeoffset_text(&at(7, minutes), 7).unwrap(), text);
            let moment = datetimeoffset(&at(6, minutes), 6).map(rfc3339);
            assert_eq!(moment.unwrap(), "2026-01-01T23:30:00.000000Z");
        }
        assert!(datetimeoffset(&at(6, 841), 6).is_err());
        assert!(datetimeoffset_text(&[1], 7).is_err());
    }
}
