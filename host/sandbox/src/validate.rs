//! Checks what a guest says is a batch, before anything reads it. Guest data never panics the host:
//! after this, every index is in range and every text is UTF-8.

use crate::{
    columns::{Batch, Chunk, Column, ColumnData, ColumnKind, DAY_MICROS, VarLen, bit},
    json::is_number,
};

/// -99999-01-01 to 99999-12-31, as days since 1970-01-01: the span between two of them fits what adds them up.
const DATE: std::ops::RangeInclusive<i32> = -37_243_412..=35_804_721;
const TIMESTAMP: std::ops::RangeInclusive<i64> =
    -37_243_412 * DAY_MICROS..=35_804_722 * DAY_MICROS - 1;
const TIME: std::ops::RangeInclusive<i64> = 0..=DAY_MICROS;

/// The bytes that the batch holds, or what is wrong with it.
pub(crate) fn batch(batch: &Batch, columns: &[Column]) -> Result<usize, String> {
    if batch.chunks.len() != columns.len() {
        return Err(format!(
            "a batch has {} chunks for {} columns",
            batch.chunks.len(),
            columns.len()
        ));
    }
    let rows = batch.rows as usize;
    let mut bytes = 0;
    for (chunk, column) in batch.chunks.iter().zip(columns) {
        bytes += self::chunk(chunk, column.kind, rows)
            .map_err(|reason| format!("column {:?} {reason}", column.name))?;
    }
    Ok(bytes)
}

fn chunk(chunk: &Chunk, kind: ColumnKind, rows: usize) -> Result<usize, String> {
    let bitmap = rows.div_ceil(8);
    let mut bytes = 0;
    if let Some(validity) = &chunk.validity {
        count("validity bytes", validity.len(), bitmap)?;
        bytes += validity.len();
    }
    match (&chunk.data, kind) {
        (ColumnData::Bits(bits), ColumnKind::Boolean) => {
            count("bytes of bits", bits.len(), bitmap)?;
            bytes += bits.len();
        }
        (ColumnData::I32s(days), ColumnKind::Date) => {
            count("values", days.len(), rows)?;
            in_range(chunk, days, &DATE)?;
            bytes += days.len() * 4;
        }
        (
            ColumnData::I64s(values),
            ColumnKind::Int64
            | ColumnKind::Time
            | ColumnKind::Timestamp
            | ColumnKind::LocalTimestamp,
        ) => {
            count("values", values.len(), rows)?;
            match kind {
                ColumnKind::Time => in_range(chunk, values, &TIME)?,
                ColumnKind::Timestamp | ColumnKind::LocalTimestamp => {
                    in_range(chunk, values, &TIMESTAMP)?;
                }
                _ => {}
            }
            bytes += values.len() * 8;
        }
        (ColumnData::F64s(values), ColumnKind::Float64) => {
            count("values", values.len(), rows)?;
            bytes += values.len() * 8;
        }
        (ColumnData::VarLen(values), ColumnKind::Bytes) => {
            offsets(values, rows)?;
            bytes += values.offsets.len() * 4 + values.bytes.len();
        }
        (ColumnData::VarLen(values), ColumnKind::Text | ColumnKind::Decimal | ColumnKind::Json) => {
            offsets(values, rows)?;
            texts(values)?;
            match kind {
                ColumnKind::Json => documents(chunk, values, rows)?,
                ColumnKind::Decimal => numbers(chunk, values, rows)?,
                _ => {}
            }
            bytes += values.offsets.len() * 4 + values.bytes.len();
        }
        _ => {
            return Err(format!(
                "is {} but its data is laid out as something else",
                kind.as_str()
            ));
        }
    }
    Ok(bytes)
}

fn count(what: &str, found: usize, wanted: usize) -> Result<(), String> {
    if found != wanted {
        return Err(format!("has {found} {what} instead of {wanted}"));
    }
    Ok(())
}

/// NULL rows hold any value.
fn in_range<T: PartialOrd + Copy>(
    chunk: &Chunk,
    values: &[T],
    range: &std::ops::RangeInclusive<T>,
) -> Result<(), String> {
    // All in range is the usual case, and needs no look at the bitmap.
    if values.iter().all(|value| range.contains(value)) {
        return Ok(());
    }
    match values
        .iter()
        .enumerate()
        .find(|(row, value)| !range.contains(value) && !chunk.is_null(*row))
    {
        Some((row, _)) => Err(format!(
            "holds a date or time out of range at row {row} of a batch"
        )),
        None => Ok(()),
    }
}

fn offsets(values: &VarLen, rows: usize) -> Result<(), String> {
    count("offsets", values.offsets.len(), rows + 1)?;
    if values.offsets[0] != 0 {
        return Err("has a first offset other than 0".into());
    }
    if !values.offsets.is_sorted() {
        return Err("has falling offsets".into());
    }
    if i32::try_from(values.bytes.len()) != Ok(values.offsets[rows]) {
        return Err(format!(
            "has a last offset of {} for {} bytes",
            values.offsets[rows],
            values.bytes.len()
        ));
    }
    Ok(())
}

/// The whole is UTF-8 and no value begins inside a character, so each value is UTF-8.
fn texts(values: &VarLen) -> Result<(), String> {
    if values.bytes.is_ascii() {
        return Ok(());
    }
    let text =
        std::str::from_utf8(&values.bytes).map_err(|error| format!("is no UTF-8: {error}"))?;
    match values
        .offsets
        .iter()
        .all(|offset| text.is_char_boundary(*offset as usize))
    {
        true => Ok(()),
        false => Err("has an offset inside a character".into()),
    }
}

/// JSON is passed through as it is, so it must be JSON.
fn documents(chunk: &Chunk, values: &VarLen, rows: usize) -> Result<(), String> {
    for row in 0..rows {
        let valid = chunk.validity.as_ref().is_none_or(|bits| bit(bits, row));
        if valid && serde_json::from_slice::<serde::de::IgnoredAny>(values.at(row)).is_err() {
            return Err(format!("holds no JSON at row {row} of a batch"));
        }
    }
    Ok(())
}

/// Exact numbers are passed through digit for digit, so they must be numbers; databases also know these three that
/// JSON does not.
fn numbers(chunk: &Chunk, values: &VarLen, rows: usize) -> Result<(), String> {
    const OTHERS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
    for row in 0..rows {
        let text = values.at(row);
        if !is_number(text) && !OTHERS.contains(&text) && !chunk.is_null(row) {
            return Err(format!("holds no number at row {row} of a batch"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        kind: ColumnKind,
        rows: u32,
        validity: Option<Vec<u8>>,
        data: ColumnData,
    ) -> Result<usize, String> {
        let column = Column {
            name: "c".into(),
            kind,
            nullable: true,
            native: String::new(),
        };
        batch(
            &Batch {
                rows,
                chunks: vec![Chunk { validity, data }],
            },
            &[column],
        )
    }

    fn text(offsets: &[i32], bytes: &[u8]) -> ColumnData {
        ColumnData::VarLen(VarLen {
            offsets: offsets.to_vec(),
            bytes: bytes.to_vec(),
        })
    }

    /// A batch that is not what the contract says is refused, whatever is wrong with it.
    #[test]
    fn malformed_batches_are_refused() {
        use ColumnKind::*;
        assert!(check(Text, 2, None, text(&[0, 1, 3], "aé".as_bytes())).is_ok());
        for (offsets, bytes) in [
            (&[][..], &b""[..]),
            (&[0], b""),
            (&[0, 1], b"a"),
            (&[1, 1, 1], b"a"),
            (&[0, 2, 1], b"a"),
            (&[0, -1, 1], b"a"),
            (&[0, 1, 2], b"a"),
            (&[0, 1, i32::MAX], b"ab"),
            (&[0, 1, 2], b"\xff\xfe"),
            (&[0, 1, 2], "é".as_bytes()),
        ] {
            assert!(
                check(Text, 2, None, text(offsets, bytes)).is_err(),
                "{offsets:?} {bytes:?}"
            );
        }
        assert!(check(Bytes, 1, None, text(&[0, 2], b"\xff\xfe")).is_ok());
        assert!(check(Int64, 2, None, ColumnData::I64s(vec![1])).is_err());
        assert!(check(Int64, u32::MAX, None, ColumnData::I64s(vec![1])).is_err());
        assert!(check(Int64, 1, None, ColumnData::F64s(vec![1.0])).is_err());
        assert!(check(Boolean, 9, None, ColumnData::Bits(vec![0])).is_err());
        assert!(check(Int64, 9, Some(vec![0xff]), ColumnData::I64s(vec![0; 9])).is_err());
        assert!(check(Date, 1, None, ColumnData::I32s(vec![i32::MAX])).is_err());
        assert!(check(Date, 1, Some(vec![0]), ColumnData::I32s(vec![i32::MAX])).is_ok());
        assert!(check(Time, 1, None, ColumnData::I64s(vec![-1])).is_err());
        assert!(check(Timestamp, 1, None, ColumnData::I64s(vec![i64::MIN])).is_err());
        assert!(check(LocalTimestamp, 1, None, ColumnData::I64s(vec![i64::MAX])).is_err());
        assert!(check(LocalTimestamp, 1, None, ColumnData::I64s(vec![-1])).is_ok());
        assert!(check(LocalTimestamp, 1, None, ColumnData::I32s(vec![1])).is_err());
        for number in [
            "0",
            "-12.50",
            "1e5",
            "1.5E-7",
            "NaN",
            "Infinity",
            "-Infinity",
        ] {
            let one = text(&[0, number.len() as i32], number.as_bytes());
            assert!(check(Decimal, 1, None, one).is_ok(), "{number}");
        }
        for other in [
            "", "12,5 EUR", "1.", ".5", "+1", "0x10", "1 ", "nan", "1e", "--1",
        ] {
            let one = || text(&[0, other.len() as i32], other.as_bytes());
            assert!(check(Decimal, 1, None, one()).is_err(), "{other}");
            assert!(check(Decimal, 1, Some(vec![0]), one()).is_ok(), "{other}");
        }
        assert!(check(Json, 1, None, text(&[0, 5], b"{}]{,")).is_err());
        assert!(check(Json, 1, None, text(&[0, 7], br#"{"a":1}"#)).is_ok());
        assert!(
            batch(
                &Batch {
                    rows: 0,
                    chunks: Vec::new()
                },
                &[]
            )
            .is_ok()
        );
        assert!(
            batch(
                &Batch {
                    rows: 1,
                    chunks: vec![]
                },
                &[Column {
                    name: "c".into(),
                    kind: Text,
                    nullable: true,
                    native: "".into()
                }]
            )
            .is_err()
        );
    }
}
