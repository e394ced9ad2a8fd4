//! How DuckDB's values are written that are texts here: spans, times with an offset or of nanoseconds, bits, numbers without an end.

use std::fmt::Write;

use souk_sdk::Error;
use souk_sdk::time::{Date, TimeOfDay};

use crate::errors::malformed;

const NANOS: i64 = 1_000_000_000;
/// Nine digits.
const GROUP: u64 = 1_000_000_000;
/// DuckDB counts offsets down from one second less than 16 hours.
const OFFSET_MAX: i64 = 16 * 3_600 - 1;
/// Bytes of a number that is told. To write one takes time that grows with the square of them, and a server may say one again and again in few bytes.
const BIGNUM_BYTES_MAX: usize = 256;

/// `1 year 2 months -3 days 04:05:06.7`.
pub fn interval(months: i32, days: i32, micros: i64) -> String {
    let mut text = String::new();
    for (count, unit) in [(months / 12, "year"), (months % 12, "month"), (days, "day")] {
        let plural = if count.unsigned_abs() == 1 { "" } else { "s" };
        if count != 0 {
            let blank = if text.is_empty() { "" } else { " " };
            // A String takes everything.
            let _ = write!(text, "{blank}{count} {unit}{plural}");
        }
    }
    if micros != 0 || text.is_empty() {
        let blank = if text.is_empty() { "" } else { " " };
        let sign = if micros < 0 { "-" } else { "" };
        let micros = micros.unsigned_abs();
        let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
        let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let _ = write!(text, "{blank}{sign}{hours:02}:{minutes:02}:{seconds:02}");
        text.push_str(&fraction_of(fraction, 6));
    }
    text
}

/// `.7`; nothing where there is nothing.
fn fraction_of(fraction: u64, digits: usize) -> String {
    match fraction {
        0 => String::new(),
        _ => {
            let text = format!(".{fraction:0digits$}");
            text.trim_end_matches('0').to_owned()
        }
    }
}

/// `01:02:03.5+02`: a time of day in the upper 40 bits, how far its zone is in the lower 24.
pub fn time_tz(bits: i64) -> Result<String, Error> {
    let (micros, offset) = ((bits as u64 >> 24) as i64, OFFSET_MAX - (bits & 0xff_ffff));
    if micros > souk_sdk::time::DAY_US || offset < -OFFSET_MAX {
        return Err(malformed());
    }
    let sign = if offset < 0 { '-' } else { '+' };
    let offset = offset.abs();
    let (hours, minutes, seconds) = (offset / 3_600, offset / 60 % 60, offset % 60);
    let mut text = time(micros, 6);
    let _ = write!(text, "{sign}{hours:02}");
    if minutes != 0 || seconds != 0 {
        let _ = write!(text, ":{minutes:02}");
    }
    if seconds != 0 {
        let _ = write!(text, ":{seconds:02}");
    }
    Ok(text)
}

/// `01:02:03.000000001`.
pub fn time_ns(nanos: i64) -> Result<String, Error> {
    match (0..=86_400 * NANOS).contains(&nanos) {
        true => Ok(time(nanos, 9)),
        false => Err(malformed()),
    }
}

/// A time of day, whose seconds have so many digits.
fn time(units: i64, digits: usize) -> String {
    let second = 10_i64.pow(digits as u32);
    let whole = TimeOfDay(units / second * 1_000_000).to_string();
    let fraction = fraction_of((units % second).unsigned_abs(), digits);
    format!("{}{fraction}", &whole[..8])
}

/// `2024-02-29 01:02:03.000000001`.
pub fn timestamp_ns(nanos: i64) -> String {
    let (days, rest) = (
        nanos.div_euclid(86_400 * NANOS),
        nanos.rem_euclid(86_400 * NANOS),
    );
    format!("{} {}", Date::from_days(days), time(rest, 9))
}

/// `101`: the first byte says how many bits of the second are none.
pub fn bits(bytes: &[u8]) -> Result<String, Error> {
    let (padding, bits) = bytes.split_first().ok_or_else(malformed)?;
    let padding = usize::from(*padding);
    if padding > 7 || bits.is_empty() {
        return Err(malformed());
    }
    let mut text = String::with_capacity(8 * bits.len());
    for byte in bits {
        let _ = write!(text, "{byte:08b}");
    }
    text.drain(..padding);
    Ok(text)
}

/// `0f3c5a…`: 128 bits of which the first is turned.
pub fn uuid(bytes: [u8; 16]) -> String {
    let hex = format!("{:032x}", u128::from_le_bytes(bytes) ^ (1 << 127));
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

/// Three bytes that say the sign and how many bytes follow, and these; all of them turned where it is negative.
pub fn bignum(bytes: &[u8]) -> Result<String, Error> {
    let (head, digits) = bytes.split_at_checked(3).ok_or_else(malformed)?;
    let is_negative = head[0] & 0x80 == 0;
    if digits.len() > BIGNUM_BYTES_MAX {
        return Err(Error::limit_exceeded(
            "number_too_long",
            "the result has a BIGNUM of more than 256 bytes: write CAST(… AS VARCHAR)",
        ));
    }
    let turn = |byte: &u8| if is_negative { !byte } else { *byte };
    // Groups of nine digits, the last first.
    let mut groups: Vec<u64> = vec![0];
    // Four bytes at once; the first ones may be fewer.
    let (first, rest) = digits.split_at(digits.len() % 4);
    for bytes in [first].into_iter().chain(rest.chunks(4)) {
        let read = |number, byte| number << 8 | u64::from(byte);
        let mut carry = bytes.iter().map(turn).fold(0, read);
        for group in &mut groups {
            let value = (*group << 32) + carry;
            (*group, carry) = (value % GROUP, value / GROUP);
        }
        while carry > 0 {
            groups.push(carry % GROUP);
            carry /= GROUP;
        }
    }
    let mut text = String::new();
    let mut groups = groups.iter().rev();
    if is_negative {
        text.push('-');
    }
    if let Some(first) = groups.next() {
        let _ = write!(text, "{first}");
    }
    for group in groups {
        let _ = write!(text, "{group:09}");
    }
    Ok(text)
}

/// A whole number with a point before its last digits.
pub fn decimal(number: i128, scale: u8, out: &mut Vec<u8>) {
    let sign = if number < 0 { "-" } else { "" };
    let digits = number.unsigned_abs().to_string();
    let scale = usize::from(scale);
    let digits = format!("{digits:0>least$}", least = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    out.extend_from_slice(sign.as_bytes());
    out.extend_from_slice(whole.as_bytes());
    if scale > 0 {
        out.push(b'.');
        out.extend_from_slice(fraction.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As DuckDB 1.5.5 writes them.
    #[test]
    fn spans_are_written_as_duckdb_writes_them() {
        for (months, days, micros, wanted) in [
            (14, -3, 14_706_700_000, "1 year 2 months -3 days 04:05:06.7"),
            (0, 0, 0, "00:00:00"),
            (-1, 1, 0, "-1 month 1 day"),
            (-25, 0, -1, "-2 years -1 month -00:00:00.000001"),
            (0, 0, 360_000_000_000_000, "100000:00:00"),
        ] {
            assert_eq!(interval(months, days, micros), wanted);
        }
        interval(i32::MIN, i32::MIN, i64::MIN);
    }

    #[test]
    fn times_keep_their_digits() {
        let bits = |micros: i64, offset: i64| (micros << 24) | (OFFSET_MAX - offset);
        for (micros, offset, wanted) in [
            (3_723_000_000, 7_200, "01:02:03+02"),
            (3_723_500_000, -19_800, "01:02:03.5-05:30"),
            (0, -OFFSET_MAX, "00:00:00-15:59:59"),
            (86_400_000_000, 0, "24:00:00+00"),
        ] {
            assert_eq!(time_tz(bits(micros, offset)).unwrap(), wanted);
        }
        assert!(time_tz(-1).is_err());
        assert_eq!(time_ns(3_723_000_000_001).unwrap(), "01:02:03.000000001");
        assert!(time_ns(-1).is_err());
        assert_eq!(timestamp_ns(-1), "1969-12-31 23:59:59.999999999");
        timestamp_ns(i64::MIN);
    }

    #[test]
    fn numbers_keep_every_digit() {
        let written = |number, scale| {
            let mut out = Vec::new();
            decimal(number, scale, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(-5, 3), "-0.005");
        assert_eq!(written(1_250, 3), "1.250");
        assert_eq!(written(i128::MIN, 0), i128::MIN.to_string());
        assert_eq!(bignum(&[0x80, 0, 1, 0x7b]).unwrap(), "123");
        assert_eq!(bignum(&[0x7f, 0xff, 0xfe, 0x84]).unwrap(), "-123");
        let large = [&[0x80, 0, 16][..], &u128::MAX.to_be_bytes()].concat();
        assert_eq!(bignum(&large).unwrap(), u128::MAX.to_string());
        assert!(bignum(&[0x80, 0]).is_err());
        // As many bytes as there are digits for: `(2^8)^n - 1`.
        for bytes in 1..=16 {
            let ones = [&[0x80, 0, bytes][..], &vec![0xff; usize::from(bytes)]].concat();
            let wanted = u128::MAX >> (128 - 8 * u32::from(bytes));
            assert_eq!(bignum(&ones).unwrap(), wanted.to_string());
        }
        let largest = bignum(&[&[0x80, 1, 0][..], &[0xff; 256]].concat()).unwrap();
        assert_eq!(largest.len(), 617);
        assert!(largest.starts_with("3231700607131100730071487668866995196044"));
        assert!(largest.ends_with("853611059596230655"));
        assert!(bignum(&[0; 260]).is_err());
    }

    #[test]
    fn bits_and_ids_are_read() {
        assert_eq!(bits(&[5, 0xfd]).unwrap(), "101");
        assert_eq!(bits(&[0, 0x0f, 1]).unwrap(), "0000111100000001");
        assert!(bits(&[9, 0]).is_err() && bits(&[]).is_err() && bits(&[3]).is_err());
        let mut id = [0; 16];
        (id[0], id[15]) = (1, 0x80);
        assert_eq!(uuid(id), "00000000-0000-0000-0000-000000000001");
    }
}
