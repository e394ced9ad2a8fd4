//! The values of a filter, read by the type of its column, and how they are written where that is a SQLite file.
//!
//! What a page has shown of a row finds it: so a number is compared as its source has it, and not only as it is written.

use std::cmp::Ordering;

use souk_domain::moments;
use souk_domain::numbers;
use souk_domain::parameters::{self, Kind, Raw};
use souk_domain::sql::{Dialect, Operator, prefix_pattern};
use souk_sandbox::{ColumnKind, Fact, Facts, Value};

use crate::binding::value;
use crate::fetch::spellings::spelled;
use crate::products::{declared_time, has_operator};

/// Values of one `[in]`.
const IN_VALUES_MAX: usize = 100;

/// A column that is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compared<'a> {
    pub dialect: Dialect,
    /// What the connector says of types.
    pub facts: &'a Facts,
    pub kind: ColumnKind,
    /// What the source calls its type; empty where that is not known.
    pub native: &'a str,
}

impl Compared<'_> {
    /// `Float32` of `LowCardinality(Nullable(Float32))`, `varchar` of `varchar(9)`; in lower case.
    fn type_name(&self) -> String {
        let mut name = self.native.to_ascii_lowercase();
        for around in ["lowcardinality(", "nullable("] {
            if let Some(inner) = name.strip_prefix(around) {
                name = inner.to_owned();
            }
        }
        let end = name.find(['(', ')', ' ']).unwrap_or(name.len());
        name.truncate(end);
        name
    }

    /// Whether its floats have 32 bits, and are compared with 64. (PostgreSQL reads what a column is compared with as the column's type.)
    fn has_singles(&self) -> bool {
        let usual: &[&str] = match self.dialect {
            Dialect::MySql => &["float"],
            Dialect::MsSql => &["real"],
            Dialect::ClickHouse => &["float32", "bfloat16"],
            // To others a `float` has 64.
            Dialect::Generic => &["real"],
            _ => &[],
        };
        self.kind == ColumnKind::Float64 && self.facts.has(Fact::Singles, &self.type_name(), usual)
    }

    /// Whether its floats may be no numbers.
    fn has_infinities(&self) -> bool {
        !matches!(self.dialect, Dialect::MySql | Dialect::MsSql)
    }

    /// Whether it has whole numbers of more digits than decimals of its source have, and is compared with none of those.
    fn is_wide(&self) -> bool {
        self.facts.has(Fact::Wide, &self.type_name(), &[])
    }

    /// Whether it is a moment that is told as a text, because it may be finer than a microsecond: ClickHouse's, which reads no text with a zone.
    fn is_fine_moment(&self) -> bool {
        self.dialect == Dialect::ClickHouse && self.type_name() == "datetime64"
    }
}

/// The values of a filter, by the type of its column.
pub(super) fn read(
    column: Compared<'_>,
    operator: Operator,
    text: &str,
    into: &mut Vec<Value>,
) -> Result<(), String> {
    let kind = column.kind;
    match operator {
        // A test refuses both. The type may have changed since, and some are sold from before it did.
        Operator::Like if !has_operator(kind, operator) => {
            return Err(format!(
                "[like] is for texts, and this column is {}",
                kind.as_str()
            ));
        }
        operator if !has_operator(kind, operator) => {
            return Err("true and false have no order".to_owned());
        }
        Operator::Like => {
            read_value(
                Compared {
                    native: "",
                    ..column
                },
                text,
            )?;
            into.push(Value::Text(prefix_pattern(column.dialect, text)));
        }
        Operator::In => {
            let texts = listed(text);
            if texts.len() > IN_VALUES_MAX {
                return Err(format!("names more than {IN_VALUES_MAX} values"));
            }
            let read = texts.iter().map(|text| read_value(column, text));
            let values = read.collect::<Result<Vec<Value>, String>>()?;
            into.extend(padded(values));
        }
        _ => into.push(read_value(column, text)?),
    }
    Ok(())
}

/// How a SQLite file is asked for these values: one time may be several texts there, and a row may have one that its column's others are not like.
pub(super) fn written(
    column: Compared<'_>,
    operator: Operator,
    text: &str,
    values: &[Value],
) -> Option<(Operator, Vec<Value>)> {
    if column.dialect != Dialect::Sqlite {
        return None;
    }
    let is_range = operator.is_range();
    let (operator, mut texts) = match column.kind {
        ColumnKind::Text if operator == Operator::Like => return None,
        // A page of texts that are all times tells them as such.
        ColumnKind::Text => {
            let kind = declared_time(column.native)?;
            let times = values
                .iter()
                .filter_map(|value| time(kind, value, is_range));
            let times: Vec<Value> = times.collect();
            match (is_range && times.is_empty(), kind) {
                (true, ColumnKind::Time) => return None,
                // As the column is compared, whatever stands in it (`Condition::is_spelled`).
                (true, _) => {
                    let plain = text.replace('T', " ");
                    let plain = plain.trim_end_matches('Z').to_owned();
                    (operator, vec![Value::Text(plain)])
                }
                (false, kind) => spelled(kind, operator, &times)?,
            }
        }
        kind => spelled(kind, operator, values)?,
    };
    if !is_range {
        let as_they_are = match operator {
            Operator::In => listed(text),
            _ => vec![text.to_owned()],
        };
        for text in as_they_are.into_iter().map(Value::Text) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
    Some((operator, padded(texts)))
}

/// A time among texts. An offset is one that other texts may have, too: by ranges they are compared as they stand.
fn time(kind: ColumnKind, value: &Value, is_range: bool) -> Option<Value> {
    let Value::Text(text) = value else {
        return None;
    };
    let micros = match (kind, is_range) {
        (ColumnKind::Time, _) => return moments::time(text).ok().map(Value::Time),
        (_, true) => moments::local_timestamp(text.strip_suffix('Z').unwrap_or(text)),
        (_, false) => moments::either_timestamp(text),
    };
    micros.ok().map(Value::LocalTimestamp)
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

fn read_value(column: Compared<'_>, text: &str) -> Result<Value, String> {
    // Whether its texts say a zone, and its numbers are whole, is known of some rows, and perhaps of none.
    let is_file = column.dialect == Dialect::Sqlite;
    let read = |kind| parameters::read(kind, &Raw::Query(text)).map(|bound| value(&bound));
    // A column of floats has none but those: the nearest one stands for the number.
    let float = || numbers::float(text).map_err(str::to_owned);
    // Checked as a number, sent digit for digit.
    let digits = || float().map(|_| text.to_owned());
    if column.kind == ColumnKind::Float64
        && column.has_infinities()
        && let Some(value) = endless(text)
    {
        return Ok(Value::Float64(value));
    }
    match column.kind {
        ColumnKind::Boolean => read(Kind::Boolean),
        ColumnKind::Int64 | ColumnKind::Float64 if is_file => digits().map(Value::Decimal),
        ColumnKind::Int64 => read(Kind::Integer),
        ColumnKind::Float64 if column.has_singles() => float().map(single),
        ColumnKind::Float64 => float().map(Value::Float64),
        ColumnKind::Decimal if !is_whole(text) && column.is_wide() => float().map(Value::Float64),
        ColumnKind::Decimal => digits().map(Value::Decimal),
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
        ColumnKind::Text if column.is_fine_moment() => match moments::timestamp(text) {
            Ok(micros) => Ok(Value::Timestamp(micros)),
            // The server reads what it can.
            Err(_) => read(Kind::String),
        },
        ColumnKind::Text => read(Kind::String),
        ColumnKind::Bytes | ColumnKind::Json => {
            Err("this column cannot be compared with a value".to_owned())
        }
    }
}

/// The float of 32 bits that is shown as this number, with 64 of them; or else what lies between the two that are shown as the next less and the
/// next greater one.
fn single(number: f64) -> Value {
    let nearest = number as f32;
    let shown = nearest.to_string().parse::<f64>().unwrap_or(f64::NAN);
    let other = match shown.partial_cmp(&number) {
        Some(Ordering::Less) => nearest.next_up(),
        Some(Ordering::Greater) => nearest.next_down(),
        _ => nearest,
    };
    match nearest.is_finite() && other.is_finite() {
        true => Value::Float64(f64::midpoint(nearest.into(), other.into())),
        false => Value::Float64(number),
    }
}

/// As a page writes what is no number.
fn endless(text: &str) -> Option<f64> {
    match text {
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => None,
    }
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    /// Of a connector that says nothing of its types.
    static NOTHING: LazyLock<Facts> = LazyLock::new(Facts::default);

    fn column(dialect: Dialect, kind: ColumnKind, native: &str) -> Compared<'_> {
        Compared {
            dialect,
            facts: &NOTHING,
            kind,
            native,
        }
    }

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
            let mut values = Vec::new();
            let column = column(Dialect::Postgres, ColumnKind::Int64, "int8");
            read(column, Operator::In, text, &mut values).map(|()| values)
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
            let column = column(Dialect::Sqlite, ColumnKind::Time, "TIME");
            written(column, operator, "a quarter", &times).expect("texts")
        };
        // Two digits behind the second are the shortest.
        let (operator, texts) = of(Operator::Eq, &[250_000]);
        assert_eq!((operator, texts.len()), (Operator::In, 8));
        assert_eq!(texts[4], Value::Text("00:00:00.250000".to_owned()));
        assert_eq!(texts[5], Value::Text("a quarter".to_owned()));
        assert!(texts[5..].iter().all(|text| *text == texts[5]));
        assert_eq!(of(Operator::In, &[250_000, 1, 1, 1]).1.len(), 16);
        assert_eq!(of(Operator::In, &[250_000, 0, 0, 0]).1.len(), 32);
        assert_eq!(of(Operator::Gt, &[250_000]).1.len(), 1);
        let elsewhere = column(Dialect::Postgres, ColumnKind::Time, "time");
        let elsewhere = written(elsewhere, Operator::Eq, "00:00", &[Value::Time(0)]);
        assert_eq!(elsewhere, None);
    }

    /// One row of a SQLite file does not tell of another whether it says a zone. Elsewhere the column's type does.
    #[test]
    fn a_file_takes_timestamps_with_and_without_a_zone() {
        let (zoned, plain) = ("1970-01-01T01:00:00+01:00", "1970-01-01T00:00:00");
        let of = |dialect, kind| {
            let column = column(dialect, kind, "");
            [zoned, plain].map(|text| read_value(column, text).ok())
        };
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

    /// A column of a file that is declared a time is asked for as one, whatever the rows are that its type is known of.
    #[test]
    fn a_file_is_asked_for_times_among_texts() {
        let of = |native, operator, text: &str| {
            let column = column(Dialect::Sqlite, ColumnKind::Text, native);
            let mut values = Vec::new();
            read(column, operator, text, &mut values).unwrap();
            let (operator, texts) = written(column, operator, text, &values)?;
            assert_eq!(operator, Operator::In);
            Some(texts)
        };
        let text = |text: &str| Value::Text(text.to_owned());
        let moments = of("DATETIME", Operator::Eq, "2026-11-23T05:17:45.5Z").unwrap();
        assert!(moments.contains(&text("2026-11-23 05:17:45.500")));
        assert!(moments.contains(&text("2026-11-23T05:17:45.5Z")));
        let some = of("timestamp(3)", Operator::In, "n/a,2026-11-23 05:17").unwrap();
        assert!(some.contains(&text("n/a")) && some.contains(&text("2026-11-23T05:17:00")));
        assert!(
            of("TIME", Operator::Eq, "08:30")
                .unwrap()
                .contains(&text("08:30:00"))
        );
        assert_eq!(of("TEXT", Operator::Eq, "08:30"), None);
        let above = column(Dialect::Sqlite, ColumnKind::Text, "DATETIME");
        let of_range =
            |text: &str| written(above, Operator::Gt, text, &[Value::Text(text.to_owned())]);
        let (operator, texts) = of_range("2026-11-23T05:17:45Z").unwrap();
        assert_eq!(operator, Operator::Gt);
        assert_eq!(texts, [text("2026-11-23 05:17:45.000000")]);
        for (asked, bound) in [
            ("n/a", "n/a"),
            (
                "2026-11-23T05:17:45.123456789+02:00",
                "2026-11-23 05:17:45.123456789+02:00",
            ),
            (
                "2026-11-23T05:17:45.123456789Z",
                "2026-11-23 05:17:45.123456789",
            ),
        ] {
            assert_eq!(of_range(asked).unwrap().1, [text(bound)]);
        }
    }

    /// What a page has shown is compared as its source has it.
    #[test]
    fn numbers_are_compared_as_their_source_has_them() {
        let of = |dialect, kind, native, text: &str| {
            read_value(column(dialect, kind, native), text).unwrap()
        };
        let float = ColumnKind::Float64;
        let (near, far) = (Value::Float64(f64::from(0.1f32)), Value::Float64(0.1));
        for (dialect, native) in [
            (Dialect::MySql, "float"),
            (Dialect::MsSql, "real"),
            (Dialect::ClickHouse, "Float32"),
            (Dialect::ClickHouse, "LowCardinality(Nullable(Float32))"),
            (Dialect::Generic, "real"),
        ] {
            assert_eq!(of(dialect, float, native, "0.1"), near, "{native}");
            // No float of 32 bits is shown as this, and the one that is shown as less is more than it.
            let above = f64::midpoint(0.1f32.into(), 0.1f32.next_up().into());
            assert_eq!(
                of(dialect, float, native, "0.1000000001"),
                Value::Float64(above)
            );
            let below = f64::midpoint(0.1f32.next_down().into(), 0.1f32.into());
            assert_eq!(
                of(dialect, float, native, "0.0999999999"),
                Value::Float64(below)
            );
            assert_eq!(of(dialect, float, native, "0"), Value::Float64(0.0));
            assert_eq!(
                of(dialect, float, native, "2.5e300"),
                Value::Float64(2.5e300)
            );
        }
        for (dialect, native) in [
            (Dialect::MySql, "double"),
            (Dialect::MsSql, "float"),
            (Dialect::ClickHouse, "Nullable(Float64)"),
            (Dialect::Generic, "DOUBLE"),
            (Dialect::Generic, "FLOAT"),
            (Dialect::Postgres, "float4"),
            (Dialect::BigQuery, "FLOAT"),
        ] {
            assert_eq!(of(dialect, float, native, "0.1"), far, "{native}");
        }
        let digits = |text: &str| Value::Decimal(text.to_owned());
        // A column of a file that was whole in all rows that were looked at need not be.
        for (kind, number) in [(ColumnKind::Int64, "10.5"), (float, "9007199254740993")] {
            assert_eq!(of(Dialect::Sqlite, kind, "", number), digits(number));
        }
        let moment = of(
            Dialect::ClickHouse,
            ColumnKind::Text,
            "DateTime64(9, 'UTC')",
            "1970-01-01T00:00:01.500000000Z",
        );
        assert_eq!(moment, Value::Timestamp(1_500_000));
        let finer = "1970-01-01T00:00:01.123456789Z";
        let of_server = of(
            Dialect::ClickHouse,
            ColumnKind::Text,
            "DateTime64(9)",
            finer,
        );
        assert_eq!(of_server, Value::Text(finer.to_owned()));
    }

    /// And as its connector says that it has them, whatever its dialect is.
    #[test]
    fn numbers_are_compared_as_their_connector_says() {
        let facts = Facts::of(["singles:float", "wide:hugeint"]);
        let of = |kind, native, text: &str| {
            let column = Compared {
                facts: &facts,
                ..column(Dialect::Generic, kind, native)
            };
            read_value(column, text).unwrap()
        };
        let float = ColumnKind::Float64;
        let near = Value::Float64(f64::from(0.1f32));
        assert_eq!(of(float, "FLOAT", "0.1"), near);
        assert_eq!(of(float, "real", "0.1"), Value::Float64(0.1));
        let decimal = ColumnKind::Decimal;
        let digits = |text: &str| Value::Decimal(text.to_owned());
        let huge = "170141183460469231731687303715884105727";
        assert_eq!(of(decimal, "HUGEINT", huge), digits(huge));
        assert_eq!(of(decimal, "HUGEINT", "1.5"), Value::Float64(1.5));
        assert_eq!(of(decimal, "DECIMAL(38,0)", "1.5"), digits("1.5"));
        let unsaid = column(Dialect::Generic, decimal, "HUGEINT");
        assert_eq!(read_value(unsaid, "1.5").unwrap(), digits("1.5"));
    }
}
