//! Bound values, each with the type that it is declared as.
//!
//! A time with its day is bound as text: of a lower rank than any type of a column's, it is read as the column's own type, so that what a column showed
//! finds it again. As `datetime2` it would make a `datetime` beside it one, whose thousandths are thirds to the server then.

mod declared;

use bytes::Bytes;
use souk_sdk::time::iso8601;
use souk_sdk::{Error, Value, short};
use tds_protocol::rpc::{RpcParam, TypeInfo};

pub use declared::Declared;
use declared::{DAY_US, FIRST_DAY, TEXT_UNITS_MAX, decimal, within};

/// What a call of the server's has at most, less what the connector itself sends.
const VALUES_MAX: usize = 2_100 - 4;
/// How much of a value a message may quote.
const QUOTED_BYTES_MAX: usize = 4_000;

/// What each value is declared as.
pub fn declared(values: &[Value]) -> Result<Vec<Declared>, Error> {
    if values.len() > VALUES_MAX {
        return Err(Error::invalid_request(
            "too_many_values",
            format!("SQL Server takes {VALUES_MAX} values at most"),
        ));
    }
    let values = values.iter().enumerate();
    let declared =
        values.map(|(at, value)| Declared::of(value).map_err(|error| error.parameter(at)));
    declared.collect()
}

/// Appends a value as a parameter, `@P1` if its number is 1.
pub fn write(out: &mut Vec<u8>, number: usize, value: &Value) -> Result<(), Error> {
    let declared = Declared::of(value)?;
    name(out, number);
    // No flags.
    out.push(0);
    declared.write(out);
    match value {
        Value::Null(_) => match declared {
            Declared::Words | Declared::Bytes => out.extend_from_slice(&[0xff, 0xff]),
            _ => out.push(0),
        },
        Value::Boolean(value) => out.extend_from_slice(&[1, u8::from(*value)]),
        Value::Int64(value) => eight(out, value.to_le_bytes()),
        Value::Float64(value) => eight(out, value.to_le_bytes()),
        Value::Decimal(digits) => decimal(digits)?.write(out),
        Value::Text(text) | Value::Json(text) => {
            sized(out, declared, |out| units(text, out));
        }
        Value::Bytes(bytes) => sized(out, declared, |out| short::append(out, bytes)),
        Value::Date(days) => {
            let [a, b, c, _] = ((i64::from(*days) - FIRST_DAY) as u32).to_le_bytes();
            out.extend_from_slice(&[3, a, b, c]);
        }
        Value::Time(micros) => {
            let [a, b, c, d, e, ..] = micros.to_le_bytes();
            out.extend_from_slice(&[5, a, b, c, d, e]);
        }
        Value::Timestamp(micros) | Value::LocalTimestamp(micros) => {
            let text = clock(*micros)?;
            sized(out, declared, |out| units(&text, out));
        }
    }
    Ok(())
}

/// `@P12`, behind the number of its letters.
fn name(out: &mut Vec<u8>, number: usize) {
    let begin = out.len();
    out.extend_from_slice(&[0, b'@', 0, b'P', 0]);
    let mut power = 1;
    while number / power >= 10 {
        power *= 10;
    }
    while power > 0 {
        out.extend_from_slice(&[b'0' + (number / power % 10) as u8, 0]);
        power /= 10;
    }
    out[begin] = ((out.len() - begin) / 2) as u8;
}

fn eight(out: &mut Vec<u8>, bytes: [u8; 8]) {
    out.push(8);
    out.extend_from_slice(&bytes);
}

/// Appends what `write` writes behind its length; what is long is one piece, behind which there is none.
fn sized(out: &mut Vec<u8>, declared: Declared, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    match declared {
        Declared::LongWords | Declared::LongBytes => {
            out.extend_from_slice(&[0; 12]);
            write(out);
            let length = out.len() - begin - 12;
            out[begin..begin + 8].copy_from_slice(&(length as u64).to_le_bytes());
            out[begin + 8..begin + 12].copy_from_slice(&(length as u32).to_le_bytes());
            out.extend_from_slice(&[0; 4]);
        }
        _ => {
            out.extend_from_slice(&[0; 2]);
            write(out);
            let length = out.len() - begin - 2;
            out[begin..begin + 2].copy_from_slice(&(length as u16).to_le_bytes());
        }
    }
}

/// Those of the values of which messages of the server's may have something.
pub fn quotable(mut values: Vec<Value>, count: usize) -> Vec<Value> {
    values.truncate(count);
    values.retain(|value| match value {
        Value::Text(text) | Value::Json(text) | Value::Decimal(text) => {
            text.len() <= QUOTED_BYTES_MAX
        }
        Value::Int64(_) | Value::Timestamp(_) | Value::LocalTimestamp(_) => true,
        _ => false,
    });
    values
}

/// Values as messages of the server's quote them, which are texts and numbers.
pub fn quoted(values: &[Value]) -> Vec<String> {
    let quoted = values.iter().filter_map(|value| match value {
        Value::Text(text) | Value::Json(text) | Value::Decimal(text) => Some(text.clone()),
        Value::Int64(number) => Some(number.to_string()),
        Value::Timestamp(micros) | Value::LocalTimestamp(micros) => clock(*micros).ok(),
        _ => None,
    });
    // A long one is cut off in a message, and nowhere looked for.
    quoted
        .filter(|text| text.len() <= QUOTED_BYTES_MAX)
        .collect()
}

/// A text as a parameter of the connector's own.
pub fn text(name: &str, text: &str) -> RpcParam {
    let info = match Declared::of_text(text) {
        Declared::LongWords => TypeInfo::nvarchar_max(),
        _ => TypeInfo::nvarchar(TEXT_UNITS_MAX as u16),
    };
    let mut bytes = Vec::new();
    units(text, &mut bytes);
    RpcParam::new(name, info, Bytes::from(bytes))
}

/// Appends UTF-16, as the server reads texts.
fn units(text: &str, out: &mut Vec<u8>) {
    if text.is_ascii() {
        // Which most of it is, and is done many at a time.
        let begin = out.len();
        out.resize(begin + 2 * text.len(), 0);
        for (unit, byte) in out[begin..].chunks_exact_mut(2).zip(text.bytes()) {
            unit[0] = byte;
        }
        return;
    }
    out.reserve(2 * text.len());
    for unit in text.encode_utf16() {
        out.extend_from_slice(&unit.to_le_bytes());
    }
}

/// `2026-01-01T12:00:00.5`, with no more digits than it needs: `datetime` reads three, `smalldatetime` none. A moment is what a clock in UTC shows then.
fn clock(micros: i64) -> Result<String, Error> {
    within(micros.div_euclid(DAY_US))?;
    let text = iso8601(micros);
    Ok(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::ColumnType;

    #[test]
    fn values_are_quoted_as_messages_do() {
        let values = [
            Value::Text("ada".into()),
            Value::Int64(-3),
            Value::Decimal("1.50".into()),
            Value::Boolean(true),
            Value::Text("x".repeat(4_001)),
            Value::Timestamp(0),
        ];
        assert_eq!(
            quoted(&values),
            ["ada", "-3", "1.50", "1970-01-01T00:00:00"]
        );
        // Of those that are kept for it the same.
        assert_eq!(quoted(&quotable(values.to_vec(), 6)), quoted(&values));
        assert_eq!(quotable(values.to_vec(), 6).len(), 4);
        assert_eq!(quotable(values.to_vec(), 1), values[..1]);
    }

    /// A value as it is sent, without its name, and what it is declared as.
    fn sent(value: Value) -> (String, Vec<u8>) {
        let mut bytes = Vec::new();
        write(&mut bytes, 1, &value).unwrap();
        // A length, `@P1`, and no flags.
        assert_eq!(bytes[..8], [3, b'@', 0, b'P', 0, b'1', 0, 0]);
        let declared = Declared::of(&value).unwrap();
        (format!("@P1 {}", declared.name()), bytes[8..].to_vec())
    }

    #[test]
    fn each_value_has_a_name() {
        for number in [1, 9, 10, 99, 100, 2_096] {
            let mut bytes = Vec::new();
            name(&mut bytes, number);
            let written = format!("@P{number}");
            let units: Vec<u8> = written.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(bytes, [&[written.len() as u8][..], &units].concat());
        }
    }

    #[test]
    fn each_value_has_its_type() {
        for (value, declared, bytes) in [
            (Value::Boolean(true), "@P1 bit", &[0x68, 1, 1, 1][..]),
            (
                Value::Int64(-1),
                "@P1 bigint",
                &[0x26, 8, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            ),
            (
                Value::Float64(0.5),
                "@P1 float(53)",
                &[0x6d, 8, 8, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f],
            ),
            (
                Value::Decimal("-12.50".into()),
                "@P1 decimal(4, 2)",
                &[0x6c, 17, 4, 2, 5, 0, 0xe2, 4, 0, 0],
            ),
            (
                Value::Decimal("0.001".into()),
                "@P1 decimal(3, 3)",
                &[0x6c, 17, 3, 3, 5, 1, 1, 0, 0, 0],
            ),
            (
                Value::Bytes(vec![7]),
                "@P1 varbinary(8000)",
                &[0xa5, 0x40, 0x1f, 1, 0, 7],
            ),
            (
                Value::Date(FIRST_DAY as i32),
                "@P1 date",
                &[0x28, 3, 0, 0, 0],
            ),
            (Value::Time(1), "@P1 time(6)", &[0x29, 6, 5, 1, 0, 0, 0, 0]),
            (
                Value::Null(Some(ColumnType::Int64)),
                "@P1 bigint",
                &[0x26, 8, 0],
            ),
            (
                Value::Null(Some(ColumnType::Bytes)),
                "@P1 varbinary(8000)",
                &[0xa5, 0x40, 0x1f, 0xff, 0xff],
            ),
        ] {
            let (declaration, sent) = sent(value);
            assert_eq!((declaration.as_str(), sent.as_slice()), (declared, bytes));
        }
        let (declared, text) = sent(Value::Text("ä".into()));
        assert_eq!(declared, "@P1 nvarchar(4000)");
        assert!(text.ends_with(&[2, 0, 0xe4, 0]), "{text:x?}");
        let (declared, long) = sent(Value::Text("x".repeat(4_001)));
        assert_eq!(declared, "@P1 nvarchar(max)");
        assert_eq!(long.len(), 1 + 2 + 5 + 8 + 4 + 8_002 + 4);
    }

    #[test]
    fn times_have_no_digit_that_they_need_not() {
        let text = |micros| clock(micros).unwrap();
        assert_eq!(text(0), "1970-01-01T00:00:00");
        assert_eq!(text(3_000), "1970-01-01T00:00:00.003");
        assert_eq!(text(-1), "1969-12-31T23:59:59.999999");
        assert_eq!(text(36_000_000_000), "1970-01-01T10:00:00");
        assert!(clock(i64::MAX).is_err() && clock(i64::MIN).is_err());
    }

    /// What the server has no value for is the caller's, and which one it is is told.
    #[test]
    fn what_does_not_fit_is_the_callers() {
        let many = "9".repeat(39);
        for wrong in [
            Value::Float64(f64::NAN),
            Value::Float64(f64::INFINITY),
            Value::Decimal("NaN".into()),
            Value::Decimal("1e5".into()),
            Value::Decimal(".".into()),
            Value::Decimal(many),
            Value::Decimal("-+1".into()),
            Value::Time(DAY_US),
            Value::Time(-1),
            Value::Date(i32::MAX),
            Value::Timestamp(i64::MAX),
        ] {
            let error = declared(&[Value::Int64(1), wrong.clone()]).unwrap_err();
            assert_eq!(
                error.class,
                souk_sdk::ErrorClass::InvalidRequest,
                "{wrong:?}"
            );
            assert_eq!(error.parameter, Some(1), "{wrong:?}");
        }
        assert!(declared(&vec![Value::Int64(1); VALUES_MAX + 1]).is_err());
        let exact = "9".repeat(38);
        let (as_declared, _) = sent(Value::Decimal(exact));
        assert_eq!(as_declared, "@P1 decimal(38, 0)");
    }
}
