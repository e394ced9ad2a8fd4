//! The values of a filter, read by the type of its column, and how they are written where that is a SQLite file.

use souk_domain::moments;
use souk_domain::parameters::{self, Kind, Raw};
use souk_domain::sql::{Dialect, Operator, prefix_pattern};
use souk_sandbox::{ColumnKind, Value};

use crate::binding::value;
use crate::fetch::spellings::spelled;

/// Values of one `[in]`.
const IN_VALUES_MAX: usize = 100;

/// The values of a filter, by the type of its column.
pub(super) fn read(
    dialect: Dialect,
    kind: ColumnKind,
    operator: Operator,
    text: &str,
    into: &mut Vec<Value>,
) -> Result<(), String> {
    match operator {
        Operator::Like if kind != ColumnKind::Text => {
            return Err(format!(
                "[like] is for texts, and this column is {}",
                kind.as_str()
            ));
        }
        Operator::Like => {
            read_value(dialect, kind, text)?;
            into.push(Value::Text(prefix_pattern(dialect, text)));
        }
        operator if operator.is_range() && kind == ColumnKind::Boolean => {
            return Err("true and false have no order".to_owned());
        }
        Operator::In => {
            let texts = listed(text);
            if texts.len() > IN_VALUES_MAX {
                return Err(format!("names more than {IN_VALUES_MAX} values"));
            }
            let read = texts.iter().map(|text| read_value(dialect, kind, text));
            let values = read.collect::<Result<Vec<Value>, String>>()?;
            into.extend(padded(values));
        }
        _ => into.push(read_value(dialect, kind, text)?),
    }
    Ok(())
}

/// How a SQLite file is asked for these values: one time may be several texts there.
pub(super) fn written(
    dialect: Dialect,
    kind: ColumnKind,
    operator: Operator,
    values: &[Value],
) -> Option<(Operator, Vec<Value>)> {
    if dialect != Dialect::Sqlite {
        return None;
    }
    let (operator, texts) = spelled(kind, operator, values)?;
    Some((operator, padded(texts)))
}

/// Lists of nearly the same length share a statement: naming a value twice changes nothing.
fn padded(mut values: Vec<Value>) -> Vec<Value> {
    if let Some(last) = values.last().cloned() {
        values.resize(values.len().next_power_of_two(), last);
    }
    values
}

/// Parts between commas; `\,` is a comma of a part.
fn listed(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('\\', Some(',' | '\\')) => {
                let next = chars.next();
                if let Some(part) = parts.last_mut() {
                    part.extend(next);
                }
            }
            (',', _) => parts.push(String::new()),
            (char, _) => {
                if let Some(part) = parts.last_mut() {
                    part.push(char);
                }
            }
        }
    }
    parts
}

fn read_value(dialect: Dialect, kind: ColumnKind, text: &str) -> Result<Value, String> {
    // Whether its texts say a zone is known of one row, and perhaps of none.
    let is_file = dialect == Dialect::Sqlite;
    let read = |kind| parameters::read(kind, &Raw::Query(text)).map(|bound| value(&bound));
    match kind {
        ColumnKind::Boolean => read(Kind::Boolean),
        ColumnKind::Int64 => read(Kind::Integer),
        ColumnKind::Float64 => read(Kind::Number),
        // Checked as a number, sent digit for digit.
        ColumnKind::Decimal => read(Kind::Number).map(|_| Value::Decimal(text.to_owned())),
        ColumnKind::Date => Ok(Value::Date(moments::date(text)?)),
        ColumnKind::Time => Ok(Value::Time(moments::time(text)?)),
        ColumnKind::Timestamp => Ok(Value::Timestamp(match is_file {
            true => moments::either_timestamp(text)?,
            false => moments::timestamp(text)?,
        })),
        ColumnKind::LocalTimestamp => Ok(Value::LocalTimestamp(match is_file {
            true => moments::either_timestamp(text)?,
            false => moments::local_timestamp(text)?,
        })),
        ColumnKind::Text => read(Kind::String),
        ColumnKind::Bytes | ColumnKind::Json => {
            Err("this column cannot be compared with a value".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commas part values unless they are escaped.
    #[test]
    fn lists_are_parted_at_commas() {
        assert_eq!(listed("a,b"), ["a", "b"]);
        assert_eq!(
            listed(r"Smith\, John,b\\,c\d"),
            ["Smith, John", r"b\", r"c\d"]
        );
        assert_eq!(listed(""), [""]);
    }

    /// Lists are padded to few lengths, so that few statements are prepared.
    #[test]
    fn lists_are_padded() {
        let read = |text| {
            let (dialect, kind, mut values) = (Dialect::Postgres, ColumnKind::Int64, Vec::new());
            read(dialect, kind, Operator::In, text, &mut values).map(|()| values)
        };
        assert_eq!(read("1,2,3").unwrap().len(), 4);
        assert_eq!(read("1,2,3").unwrap()[3], Value::Int64(3));
        assert_eq!(read("7").unwrap(), [Value::Int64(7)]);
        assert!(read("1,x").is_err());
    }

    /// However many texts a time has in a file.
    #[test]
    fn lists_of_texts_are_padded() {
        let of = |operator, micros: &[i64]| {
            let times: Vec<Value> = micros.iter().map(|micros| Value::Time(*micros)).collect();
            written(Dialect::Sqlite, ColumnKind::Time, operator, &times).expect("texts")
        };
        // Two digits behind the second are the shortest.
        let (operator, texts) = of(Operator::Eq, &[250_000]);
        assert_eq!((operator, texts.len()), (Operator::In, 8));
        assert_eq!(texts[4], Value::Text("00:00:00.250000".to_owned()));
        assert!(texts[4..].iter().all(|text| *text == texts[4]));
        assert_eq!(of(Operator::In, &[250_000, 1, 1, 1]).1.len(), 8);
        assert_eq!(of(Operator::In, &[250_000, 0, 0, 0]).1.len(), 32);
        assert_eq!(of(Operator::Gt, &[250_000]).1.len(), 1);
        let elsewhere = written(
            Dialect::Postgres,
            ColumnKind::Time,
            Operator::Eq,
            &[Value::Time(0)],
        );
        assert_eq!(elsewhere, None);
    }

    /// One row of a SQLite file does not tell of another whether it says a zone. Elsewhere the column's type does.
    #[test]
    fn a_file_takes_timestamps_with_and_without_a_zone() {
        let (zoned, plain) = ("1970-01-01T01:00:00+01:00", "1970-01-01T00:00:00");
        let of = |dialect, kind| [zoned, plain].map(|text| read_value(dialect, kind, text).ok());
        let (moment, local) = (Value::Timestamp(0), Value::LocalTimestamp(0));
        assert_eq!(
            of(Dialect::Sqlite, ColumnKind::Timestamp),
            [Some(moment.clone()), Some(moment.clone())]
        );
        assert_eq!(
            of(Dialect::Sqlite, ColumnKind::LocalTimestamp),
            [Some(local.clone()), Some(local.clone())]
        );
        assert_eq!(
            of(Dialect::Postgres, ColumnKind::Timestamp),
            [Some(moment), None]
        );
        assert_eq!(
            of(Dialect::Postgres, ColumnKind::LocalTimestamp),
            [None, Some(local)]
        );
    }
}
