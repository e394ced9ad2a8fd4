//! Dates, moments and spans as they stand in a binary row.

use crate::protocol::{Reader, malformed};
use souk_sdk::Error;
use souk_sdk::time::{DAY_US, Date};
use std::io::Write;

/// Digits of a second at most.
pub const DECIMALS_MAX: u8 = 6;

/// Days since 1970-01-01; None is a day that no calendar has. The value is what is left of a date's bytes.
fn days(row: &mut Reader<'_>) -> Result<Option<i32>, Error> {
    let (year, month, day) = (row.u16()?, row.u8()?, row.u8()?);
    let date = Date::new(i64::from(year), month, day);
    Ok(date.and_then(|date| i32::try_from(date.days()).ok()))
}

/// The same with its length before it.
pub fn date(row: &mut Reader<'_>) -> Result<Option<i32>, Error> {
    match row.u8()? {
        0 => Ok(None),
        4 => days(row),
        // Some servers send a midnight with it.
        length @ (7 | 11) => {
            let found = days(row)?;
            row.take(usize::from(length) - 4)?;
            Ok(found)
        }
        _ => Err(malformed()),
    }
}

/// Microseconds since 1970-01-01T00:00:00, on the clock that it is of; None is a day that no calendar has.
#[inline]
pub fn moment(row: &mut Reader<'_>) -> Result<Option<i64>, Error> {
    let length = row.u8()?;
    if length == 0 {
        return Ok(None);
    }
    let days = days(row)?;
    let mut micros = 0;
    if length >= 7 {
        let [hour, minute, second] = row.array()?;
        if hour > 23 || minute > 59 || second > 59 {
            return Err(malformed());
        }
        let seconds = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
        micros = seconds * 1_000_000;
    }
    match length {
        4 | 7 => {}
        11 => {
            let fraction = row.u32()?;
            if fraction > 999_999 {
                return Err(malformed());
            }
            micros += i64::from(fraction);
        }
        _ => return Err(malformed()),
    }
    Ok(days.map(|days| i64::from(days) * DAY_US + micros))
}

/// A value of type TIME.
pub struct Span {
    is_negative: bool,
    hours: u32,
    minutes: u8,
    seconds: u8,
    micros: u32,
}

impl Span {
    pub fn read(row: &mut Reader<'_>) -> Result<Span, Error> {
        let mut span = Span {
            is_negative: false,
            hours: 0,
            minutes: 0,
            seconds: 0,
            micros: 0,
        };
        let length = row.u8()?;
        if length == 0 {
            return Ok(span);
        }
        span.is_negative = row.u8()? != 0;
        let days = row.u32()?;
        let [hours, minutes, seconds] = row.array()?;
        // 838:59:59 is the longest.
        if days > 99 || hours > 23 || minutes > 59 || seconds > 59 {
            return Err(malformed());
        }
        span.hours = days * 24 + u32::from(hours);
        (span.minutes, span.seconds) = (minutes, seconds);
        match length {
            8 => {}
            12 => span.micros = row.u32()?,
            _ => return Err(malformed()),
        }
        match span.micros {
            0..=999_999 => Ok(span),
            _ => Err(malformed()),
        }
    }

    pub fn write(&self, decimals: u8, out: &mut Vec<u8>) {
        if self.is_negative {
            out.push(b'-');
        }
        // A Vec takes everything.
        let _ = write!(
            out,
            "{:02}:{:02}:{:02}",
            self.hours, self.minutes, self.seconds
        );
        if decimals > 0 {
            let _ = write!(out, ".{:06}", self.micros);
            out.truncate(out.len() - usize::from(DECIMALS_MAX - decimals));
        }
    }
}
