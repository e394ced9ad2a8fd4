//! `numeric` in its binary form to exact text, with the scale that the server keeps.

use crate::protocol::{Reader, malformed};
use souk_sdk::Error;

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xc000;
const INFINITY: u16 = 0xd000;
const NEGATIVE_INFINITY: u16 = 0xf000;
/// The server's own bound on digits after the point.
const SCALE_MAX: u16 = 16_383;

/// Appends `-12.340`, `NaN`, `Infinity` or `-Infinity`.
pub fn write(value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let mut reader = Reader(value);
    let count = usize::from(reader.u16()?);
    let weight = i32::from(reader.i16()?);
    let sign = reader.u16()?;
    let scale = reader.u16()?;
    match sign {
        0 => {}
        NEGATIVE => out.push(b'-'),
        NAN | INFINITY | NEGATIVE_INFINITY => {
            out.extend_from_slice(match sign {
                NAN => b"NaN",
                INFINITY => b"Infinity",
                _ => b"-Infinity",
            });
            return Ok(());
        }
        _ => return Err(malformed()),
    }
    let digits = reader.take(count * 2)?;
    if scale > SCALE_MAX || !reader.0.is_empty() {
        return Err(malformed());
    }
    // Groups of four decimal digits; group `i` counts 10000^(weight - i). Groups that are not sent, before or
    // after, are zero.
    let group = |i: i32| -> Result<u16, Error> {
        let Some(at) = usize::try_from(i).ok().filter(|&at| at < count) else {
            return Ok(0);
        };
        let value = u16::from_be_bytes([digits[at * 2], digits[at * 2 + 1]]);
        if value < 10_000 {
            Ok(value)
        } else {
            Err(malformed())
        }
    };
    if weight < 0 {
        out.push(b'0');
    } else {
        // Groups in front that are zero are none of a number's; no server of PostgreSQL's own sends them.
        let mut begin = 0;
        while begin < weight && group(begin)? == 0 {
            begin += 1;
        }
        let first = group(begin)?;
        let four = four(first);
        let blank = four
            .iter()
            .take(3)
            .take_while(|&&digit| digit == b'0')
            .count();
        // Shifted, and all four of them: a copy of a length that only the run knows calls the host.
        let end = out.len() + four.len() - blank;
        let digits = u32::from_be_bytes(four) << (8 * blank);
        out.extend_from_slice(&digits.to_be_bytes());
        out.truncate(end);
        for i in begin + 1..=weight {
            out.extend_from_slice(&self::four(group(i)?));
        }
    }
    if scale > 0 {
        out.push(b'.');
        let end = out.len() + usize::from(scale);
        let mut i = weight + 1;
        while out.len() < end {
            out.extend_from_slice(&four(group(i)?));
            i += 1;
        }
        out.truncate(end);
    }
    Ok(())
}

fn four(value: u16) -> [u8; 4] {
    [value / 1_000, value / 100 % 10, value / 10 % 10, value % 10].map(|digit| b'0' + digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(weight: i16, sign: u16, scale: u16, digits: &[u16]) -> String {
        let head = [digits.len() as u16, weight as u16, sign, scale];
        let bytes: Vec<u8> = head
            .iter()
            .chain(digits)
            .flat_map(|n| n.to_be_bytes())
            .collect();
        let mut out = Vec::new();
        write(&bytes, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The text is what the server itself would write.
    #[test]
    fn text_is_exact() {
        assert_eq!(numeric(0, 0, 0, &[]), "0");
        assert_eq!(numeric(0, 0, 2, &[]), "0.00");
        assert_eq!(numeric(0, NEGATIVE, 3, &[12, 3400]), "-12.340");
        assert_eq!(numeric(1, 0, 0, &[1]), "10000");
        assert_eq!(numeric(1, 0, 4, &[1, 2, 3]), "10002.0003");
        assert_eq!(numeric(-1, 0, 4, &[5]), "0.0005");
        assert_eq!(numeric(-2, 0, 8, &[5]), "0.00000005");
        assert_eq!(numeric(-3, 0, 10, &[1200]), "0.0000000012");
        assert_eq!(numeric(-3, 0, 5, &[1]), "0.00000");
        assert_eq!(numeric(0, 0, 6, &[7, 1000]), "7.100000");
        // With groups in front that a number has not.
        assert_eq!(numeric(1, 0, 1, &[0, 5, 2000]), "5.2");
        assert_eq!(numeric(2, NEGATIVE, 0, &[0, 0, 12]), "-12");
        assert_eq!(numeric(2, 0, 0, &[0, 12]), "120000");
        assert_eq!(numeric(3, 0, 2, &[]), "0.00");
        assert_eq!(numeric(0, NAN, 0, &[]), "NaN");
        assert_eq!(numeric(0, NEGATIVE_INFINITY, 0, &[]), "-Infinity");
    }

    /// Nonsense is an error, never a panic.
    #[test]
    fn nonsense_is_refused() {
        let mut out = Vec::new();
        assert!(write(&[], &mut out).is_err());
        assert!(write(&[0, 1, 0, 0, 0, 0, 0, 0], &mut out).is_err());
        assert!(write(&[0, 1, 0, 0, 0, 0, 0, 0, 0x27, 0x10], &mut out).is_err());
        assert!(write(&[0, 0, 0, 0, 0, 1, 0, 0], &mut out).is_err());
    }
}
