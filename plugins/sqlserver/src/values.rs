//! Values, from their bytes in a row into columns. Nothing is rounded that the server itself does not round when it shows it.

mod texts;

use souk_sdk::numbers::widened;
use souk_sdk::{ColumnBuilder, ColumnType, Error, short};
use tds_protocol::token::Collation;
use tds_protocol::types::TypeId;

pub use texts::Room;
use texts::{LONG_BYTES, chars, letters, wide};

use crate::dates;
use crate::protocol::malformed;
use crate::types::{DECIMAL_DIGITS_MAX, Kind, encoding};

const MONEY_DIGITS: u8 = 4;
/// What 38 digits can hold.
const DECIMAL_MAX: u128 = 10_u128.pow(DECIMAL_DIGITS_MAX as u32) - 1;

/// Where a value comes to stand.
pub struct Slot<'c> {
    pub kind: Kind,
    pub column: &'c mut ColumnBuilder,
    pub room: &'c mut Room,
}

/// Appends a value that is not NULL. (With the place for its error these are the four arguments that a component has room for in registers.)
#[inline]
pub fn push(bytes: &[u8], into: &mut Slot<'_>) -> Result<(), Error> {
    let Slot { kind, column, room } = into;
    match (*kind, column.kind()) {
        (Kind::Bit, _) => column.boolean(bit(bytes)?),
        (Kind::Int, _) => column.i64(integer(bytes)?),
        (Kind::Float, _) => column.f64(float(bytes)?),
        (Kind::Bytes, _) => column.var(bytes),
        (Kind::Date, _) => column.i32(dates::date(bytes)?),
        (Kind::Time(digits), ColumnType::Time) => column.i64(dates::time(bytes, digits)?),
        (Kind::DateTime2(digits), ColumnType::LocalTimestamp) => {
            column.i64(dates::datetime2(bytes, digits)?)
        }
        (Kind::DateTimeOffset(digits), ColumnType::Timestamp) => {
            column.i64(dates::datetimeoffset(bytes, digits)?)
        }
        (Kind::DateTime, _) => column.i64(datetime(bytes)?),
        (Kind::Wide, _) => {
            // Of letters of ASCII. A long text makes its room itself.
            if bytes.len() < LONG_BYTES {
                column.expect(bytes.len() / 2);
            }
            column.var_with(|out| wide(bytes, out))
        }
        (kind, _) => column.var_with(|out| write(kind, bytes, out, room)),
    }
}

/// Appends a value that lies in pieces. What is long is not copied together.
pub fn push_chunks<'a>(
    chunks: impl Iterator<Item = &'a [u8]> + Clone,
    into: &mut Slot<'_>,
) -> Result<(), Error> {
    let Slot { kind, column, room } = into;
    match *kind {
        Kind::Chars(encoding) => column.var_with(|out| chars(encoding, chunks, out, room)),
        Kind::Bytes => column.var_with(|out| {
            chunks.for_each(|chunk| out.extend_from_slice(chunk));
            Ok(())
        }),
        Kind::Wide => {
            let bytes = chunks.flatten().copied();
            match bytes.clone().count() % 2 {
                0 => column.var_with(|out| {
                    letters(Pairs(bytes), out);
                    Ok(())
                }),
                _ => Err(malformed()),
            }
        }
        _ => push(&chunks.flatten().copied().collect::<Vec<u8>>(), into),
    }
}

/// Two bytes at a time.
#[derive(Clone)]
struct Pairs<I>(I);

impl<I: Iterator<Item = u8>> Iterator for Pairs<I> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.0.next()?, self.0.next()?]))
    }
}

/// Appends a value's text.
fn write(kind: Kind, bytes: &[u8], out: &mut Vec<u8>, room: &mut Room) -> Result<(), Error> {
    let text = match kind {
        Kind::Chars(encoding) => return chars(encoding, std::iter::once(bytes), out, room),
        Kind::Wide => return wide(bytes, out),
        Kind::Variant => return variant(bytes, out, room),
        Kind::Decimal(scale) => {
            let (is_negative, magnitude) = decimal(bytes)?;
            digits(is_negative, magnitude, scale)
        }
        Kind::Money => {
            let value = money(bytes)?;
            digits(value < 0, value.unsigned_abs().into(), MONEY_DIGITS)
        }
        Kind::Guid => guid(bytes)?,
        Kind::Time(digits) => dates::time_text(bytes, digits)?,
        Kind::DateTime2(digits) => dates::datetime2_text(bytes, digits)?,
        Kind::DateTimeOffset(digits) => dates::datetimeoffset_text(bytes, digits)?,
        // The rest is text in a variant only.
        Kind::Bit => (if bit(bytes)? { "1" } else { "0" }).to_owned(),
        Kind::Int => integer(bytes)?.to_string(),
        Kind::Float => float(bytes)?.to_string(),
        Kind::Bytes => {
            let hex = bytes.iter().map(|byte| format!("{byte:02X}"));
            format!("0x{}", hex.collect::<String>())
        }
        Kind::Date => souk_sdk::time::Date::from_days(dates::date(bytes)?.into()).to_string(),
        Kind::DateTime => souk_sdk::time::iso8601(datetime(bytes)?),
        Kind::Nothing => return Err(malformed()),
    };
    short::append(out, text.as_bytes());
    Ok(())
}

fn bit(bytes: &[u8]) -> Result<bool, Error> {
    match bytes {
        [bit] => Ok(*bit != 0),
        _ => Err(malformed()),
    }
}

/// Of one byte without a sign, of more with one.
fn integer(bytes: &[u8]) -> Result<i64, Error> {
    Ok(match bytes {
        [byte] => i64::from(*byte),
        [a, b] => i16::from_le_bytes([*a, *b]).into(),
        [a, b, c, d] => i32::from_le_bytes([*a, *b, *c, *d]).into(),
        _ => i64::from_le_bytes(bytes.try_into().map_err(|_| malformed())?),
    })
}

/// A `real` becomes the number with the fewest digits that is that `real`: 0.1, and not 0.10000000149.
fn float(bytes: &[u8]) -> Result<f64, Error> {
    match bytes {
        [a, b, c, d] => {
            let single = f32::from_le_bytes([*a, *b, *c, *d]);
            Ok(widened(single))
        }
        _ => Ok(f64::from_le_bytes(
            bytes.try_into().map_err(|_| malformed())?,
        )),
    }
}

/// In ten-thousandths; of eight bytes the upper half comes first.
fn money(bytes: &[u8]) -> Result<i64, Error> {
    match bytes {
        [a, b, c, d] => Ok(i32::from_le_bytes([*a, *b, *c, *d]).into()),
        [a, b, c, d, low @ ..] => {
            let low: [u8; 4] = low.try_into().map_err(|_| malformed())?;
            let high = i64::from(i32::from_le_bytes([*a, *b, *c, *d]));
            Ok(high << 32 | i64::from(u32::from_le_bytes(low)))
        }
        _ => Err(malformed()),
    }
}

/// Whether it is negative, and its digits.
fn decimal(bytes: &[u8]) -> Result<(bool, u128), Error> {
    let (sign, magnitude) = match bytes {
        [sign @ (0 | 1), magnitude @ ..] if matches!(magnitude.len(), 4 | 8 | 12 | 16) => {
            (*sign, magnitude)
        }
        _ => return Err(malformed()),
    };
    // Of a length that the compiler knows, and so without the host.
    let parts = magnitude.as_chunks::<4>().0.iter().rev();
    let whole = parts.fold(0_u128, |whole, part| {
        whole << 32 | u128::from(u32::from_le_bytes(*part))
    });
    match whole {
        magnitude @ 0..=DECIMAL_MAX => Ok((sign == 0, magnitude)),
        _ => Err(malformed()),
    }
}

/// `-12.340`: all digits of the scale, and no sign of zero.
fn digits(is_negative: bool, magnitude: u128, scale: u8) -> String {
    let scale = usize::from(scale);
    let sign = if is_negative && magnitude > 0 {
        "-"
    } else {
        ""
    };
    let all = format!("{magnitude:0>width$}", width = scale + 1);
    let (whole, fraction) = all.split_at(all.len() - scale);
    match scale {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction}"),
    }
}

/// As the server shows it; its first three parts are stored with the least byte first.
fn guid(bytes: &[u8]) -> Result<String, Error> {
    let bytes: &[u8; 16] = bytes.try_into().map_err(|_| malformed())?;
    let ordered = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut text = String::with_capacity(36);
    for (place, at) in ordered.into_iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{:02X}", bytes[at]));
    }
    Ok(text)
}

fn datetime(bytes: &[u8]) -> Result<i64, Error> {
    match bytes.len() {
        4 => dates::smalldatetime(bytes),
        _ => dates::datetime(bytes),
    }
}

/// A value with its own type before it: the type, how many bytes of properties, the properties (MS-TDS 2.2.5.5.4).
fn variant(bytes: &[u8], out: &mut Vec<u8>, room: &mut Room) -> Result<(), Error> {
    let [id, properties, rest @ ..] = bytes else {
        return Err(malformed());
    };
    let split = rest.split_at_checked(usize::from(*properties));
    let (properties, value) = split.ok_or_else(malformed)?;
    let collation = || {
        let collation = properties.first_chunk::<5>().ok_or_else(malformed)?;
        encoding(Some(Collation::from_bytes(collation)), "sql_variant")
    };
    let first = properties.first().copied();
    let kind = match TypeId::from_u8(*id) {
        Some(TypeId::Bit | TypeId::BitN) => Kind::Bit,
        Some(TypeId::Int1 | TypeId::Int2 | TypeId::Int4 | TypeId::Int8) => Kind::Int,
        Some(TypeId::Float4 | TypeId::Float8) => Kind::Float,
        Some(TypeId::Money4 | TypeId::Money) => Kind::Money,
        Some(TypeId::DateTime4 | TypeId::DateTime) => Kind::DateTime,
        Some(TypeId::Guid) => Kind::Guid,
        Some(TypeId::Date) => Kind::Date,
        Some(TypeId::Time) => Kind::Time(first.ok_or_else(malformed)?),
        Some(TypeId::DateTime2) => Kind::DateTime2(first.ok_or_else(malformed)?),
        Some(TypeId::DateTimeOffset) => Kind::DateTimeOffset(first.ok_or_else(malformed)?),
        Some(TypeId::DecimalN | TypeId::NumericN) => match properties {
            [_, scale @ 0..=DECIMAL_DIGITS_MAX] => Kind::Decimal(*scale),
            _ => return Err(malformed()),
        },
        Some(TypeId::BigVarBinary | TypeId::BigBinary) => Kind::Bytes,
        Some(TypeId::BigVarChar | TypeId::BigChar) => Kind::Chars(collation()?),
        Some(TypeId::NVarChar | TypeId::NChar) => Kind::Wide,
        // No variant is in a variant.
        _ => return Err(malformed()),
    };
    write(kind, value, out, room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: Kind, bytes: &[u8]) -> Result<String, Error> {
        let mut out = Vec::new();
        write(kind, bytes, &mut out, &mut Room::of(1 << 30))?;
        Ok(String::from_utf8(out).unwrap())
    }

    /// Every digit, up to 38 of them, and none that is not there.
    #[test]
    fn decimals_are_exact() {
        let of = |sign: u8, magnitude: u128, scale: u8| {
            let bytes = [&[sign][..], &magnitude.to_le_bytes()].concat();
            text(Kind::Decimal(scale), &bytes)
        };
        assert_eq!(of(1, DECIMAL_MAX, 0).unwrap(), "9".repeat(38));
        assert_eq!(
            of(0, DECIMAL_MAX, 38).unwrap(),
            format!("-0.{}", "9".repeat(38))
        );
        assert_eq!(
            of(1, 1_234_567_890_123_456_789_000_100, 5).unwrap(),
            "12345678901234567890.00100"
        );
        assert_eq!(of(0, 1, 21).unwrap(), "-0.000000000000000000001");
        assert_eq!(of(0, 0, 2).unwrap(), "0.00");
        assert!(of(1, DECIMAL_MAX + 1, 0).is_err() && of(2, 1, 0).is_err());
        assert_eq!(text(Kind::Decimal(2), &[1, 5, 0, 0, 0]).unwrap(), "0.05");
        assert!(text(Kind::Decimal(2), &[1, 5, 0, 0]).is_err());
        assert!(text(Kind::Decimal(2), &[]).is_err());
    }

    #[test]
    fn money_has_four_digits() {
        let of = |value: i64| {
            let (high, low) = ((value >> 32) as i32, value as u32);
            let bytes = [high.to_le_bytes(), low.to_le_bytes()].concat();
            text(Kind::Money, &bytes).unwrap()
        };
        assert_eq!(of(i64::MIN), "-922337203685477.5808");
        assert_eq!(of(i64::MAX), "922337203685477.5807");
        assert_eq!(of(-1), "-0.0001");
        assert_eq!(
            text(Kind::Money, &i32::MIN.to_le_bytes()).unwrap(),
            "-214748.3648"
        );
        assert!(text(Kind::Money, &[0; 7]).is_err());
    }

    #[test]
    fn numbers_have_the_signs_of_their_types() {
        assert_eq!(integer(&[0xff]).unwrap(), 255);
        assert_eq!(integer(&[0xff, 0xff]).unwrap(), -1);
        assert_eq!(
            integer(&i32::MIN.to_le_bytes()).unwrap(),
            i64::from(i32::MIN)
        );
        assert_eq!(integer(&i64::MIN.to_le_bytes()).unwrap(), i64::MIN);
        assert!(integer(&[0; 3]).is_err() && integer(&[]).is_err());
        assert_eq!(float(&0.1_f32.to_le_bytes()).unwrap(), 0.1);
        assert_eq!(float(&0.1_f64.to_le_bytes()).unwrap(), 0.1);
        assert!(float(&[0; 5]).is_err());
    }

    /// The example of MS-DTYP 2.3.4.2, whose first three parts are the other way around.
    #[test]
    fn guids_are_of_mixed_order() {
        let bytes = [
            0xc6, 0x1b, 0xd6, 0xe0, 0x85, 0x0e, 0x5e, 0x46, 0x9f, 0x4c, 0xb9, 0x1f, 0x80, 0x4c,
            0x5e, 0x7f,
        ];
        assert_eq!(
            text(Kind::Guid, &bytes).unwrap(),
            "E0D61BC6-0E85-465E-9F4C-B91F804C5E7F"
        );
        assert!(text(Kind::Guid, &bytes[1..]).is_err());
    }

    #[test]
    fn texts_are_what_their_pages_say() {
        let euro = Kind::Chars(encoding_rs::WINDOWS_1252);
        assert_eq!(text(euro, b"\x80 \xe4").unwrap(), "€ ä");
        // No mark of an order of bytes is taken for one.
        assert_eq!(text(euro, b"\xef\xbb\xbfa").unwrap(), "ï»¿a");
        let japanese = Kind::Chars(encoding_rs::SHIFT_JIS);
        assert_eq!(text(japanese, b"\x93\xfa\x96\x7b").unwrap(), "日本");
        let utf8 = Kind::Chars(encoding_rs::UTF_8);
        assert_eq!(text(utf8, "日本".as_bytes()).unwrap(), "日本");
        assert_eq!(text(utf8, b"a\xff").unwrap(), "a\u{fffd}");
        let units: Vec<u8> = "ä😀".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(text(Kind::Wide, &units).unwrap(), "ä😀");
        // Wherever a letter is that is not of ASCII.
        for at in 0..40 {
            for letter in ["", "\u{7f}", "\u{80}", "\u{100}", "\u{8000}", "😀"] {
                let whole = ["x".repeat(at), letter.to_owned(), "y".repeat(40 - at)].concat();
                let units: Vec<u8> = whole.encode_utf16().flat_map(u16::to_le_bytes).collect();
                assert_eq!(text(Kind::Wide, &units).unwrap(), whole);
            }
        }
        assert_eq!(text(Kind::Wide, &units[..4]).unwrap(), "ä\u{fffd}");
        assert!(text(Kind::Wide, &units[..3]).is_err());
    }

    /// Values of a variant are text, each as its own type is shown.
    #[test]
    fn variants_are_text() {
        for (bytes, wanted) in [
            (&[0x38, 0, 0xff, 0xff, 0xff, 0xff][..], "-1"),
            (&[0x32, 0, 1], "1"),
            (&[0x6c, 2, 10, 2, 1, 5, 0, 0, 0], "0.05"),
            (&[0xe7, 7, 9, 4, 0, 0, 0x34, 20, 0, b'a', 0], "a"),
            (&[0xa7, 7, 9, 4, 0xd0, 0, 0x34, 20, 0, 0xe4], "ä"),
            (&[0xa5, 2, 8, 0, 0xab], "0xAB"),
            (&[0x28, 0, 0, 0, 0], "0001-01-01"),
            (&[0x29, 1, 0, 1, 0, 0], "00:00:01"),
        ] {
            assert_eq!(text(Kind::Variant, bytes).unwrap(), wanted, "{bytes:x?}");
        }
        for wrong in [
            &[][..],
            &[0x38],
            &[0x38, 9, 0],
            &[0x38, 0, 1, 2, 3],
            &[0x62, 0],
            &[0x6c, 1, 10, 1, 5, 0, 0, 0],
            &[0x29, 1, 8, 1, 0, 0],
            &[0xa7, 2, 9, 4, 1],
            &[0, 0, 0],
        ] {
            assert!(text(Kind::Variant, wrong).is_err(), "{wrong:x?}");
        }
    }
}
