//! How times are written in a SQLite file. It keeps and compares them as texts, and one time has many: `08:30`, `08:30:00`,
//! `08:30:00.000`. The shortest is the beginning of all others, so that nothing that is another time stands between the shortest and
//! the longest: equality is any of them, and a range begins before or behind them all. Between a day and a time is a blank or a `T`,
//! behind both perhaps a `Z`, whatever one row of the column has: ranges are compared without them (`Condition::is_spelled`).

use souk_domain::sql::Operator;
use souk_domain::time::DAY_MICROS;
use souk_sandbox::json::write_cell;
use souk_sandbox::{Cell, ColumnKind, Value};

/// What finds these values of a column of this kind, however they are written there. `None`: they are written in one way.
pub(super) fn spelled(
    kind: ColumnKind,
    operator: Operator,
    values: &[Value],
) -> Option<(Operator, Vec<Value>)> {
    let mut texts = Vec::new();
    for value in values {
        let (day, clocks) = parts(kind, value)?;
        let of_end = match operator {
            Operator::Gt | Operator::Lte => clocks.last(),
            Operator::Gte | Operator::Lt => clocks.first(),
            _ => None,
        };
        match of_end {
            Some(clock) => texts.push(format!(
                "{}{clock}",
                day.map_or(String::new(), |day| day + " ")
            )),
            None => texts.extend(all(day.as_deref(), &clocks)),
        }
    }
    let operator = match operator {
        Operator::Eq => Operator::In,
        other => other,
    };
    Some((operator, texts.into_iter().map(Value::Text).collect()))
}

/// The day, if it has one, and all spellings of the time, the shortest first.
fn parts(kind: ColumnKind, value: &Value) -> Option<(Option<String>, Vec<String>)> {
    let micros = match (kind, value) {
        (ColumnKind::Time, Value::Time(micros)) => return Some((None, clocks(*micros))),
        (ColumnKind::Timestamp, Value::Timestamp(micros))
        | (ColumnKind::LocalTimestamp, Value::LocalTimestamp(micros)) => *micros,
        _ => return None,
    };
    let day = text(&Cell::Date(
        i32::try_from(micros.div_euclid(DAY_MICROS)).ok()?,
    ));
    // No such year is in a file, which the connector says.
    if day.len() != "YYYY-MM-DD".len() {
        return None;
    }
    Some((Some(day), clocks(micros.rem_euclid(DAY_MICROS))))
}

fn all(day: Option<&str>, clocks: &[String]) -> Vec<String> {
    let Some(day) = day else {
        return clocks.to_vec();
    };
    let mut all = Vec::new();
    for zone in ["", "Z"] {
        for between in [" ", "T"] {
            all.extend(
                clocks
                    .iter()
                    .map(|clock| format!("{day}{between}{clock}{zone}")),
            );
        }
    }
    all
}

/// `HH:MM[:SS[.ffffff]]`.
fn clocks(micros: i64) -> Vec<String> {
    let longest = text(&Cell::Time(micros));
    let (minutes, seconds) = ("HH:MM".len(), "HH:MM:SS".len());
    let says_nothing = |rest: &str| rest.bytes().all(|byte| matches!(byte, b'0' | b':' | b'.'));
    [minutes, seconds]
        .into_iter()
        // From the first digit behind the point on.
        .chain(seconds + 2..=longest.len())
        .filter_map(|end| longest.split_at_checked(end))
        .filter(|(_, rest)| says_nothing(rest))
        .map(|(clock, _)| clock.to_owned())
        .collect()
}

fn text(cell: &Cell<'_>) -> String {
    let mut out = Vec::new();
    write_cell(&mut out, cell);
    String::from_utf8_lossy(&out).trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(kind: ColumnKind, operator: Operator, value: Value) -> Vec<String> {
        let (_, values) = spelled(kind, operator, &[value]).expect("spellings");
        let text = |value: Value| match value {
            Value::Text(text) => text,
            other => panic!("{other:?}"),
        };
        values.into_iter().map(text).collect()
    }

    /// Every text that is this time is named, and none that is another.
    #[test]
    fn a_time_has_many_spellings() {
        let of = |operator, micros| texts(ColumnKind::Time, operator, Value::Time(micros));
        assert_eq!(
            of(Operator::Eq, 30_600_000_000),
            [
                "08:30",
                "08:30:00",
                "08:30:00.0",
                "08:30:00.00",
                "08:30:00.000",
                "08:30:00.0000",
                "08:30:00.00000",
                "08:30:00.000000"
            ]
        );
        assert_eq!(of(Operator::Gte, 30_600_000_000), ["08:30"]);
        assert_eq!(of(Operator::Gt, 30_600_000_000), ["08:30:00.000000"]);
        assert_eq!(of(Operator::Lt, 30_600_500_000), ["08:30:00.5"]);
        assert_eq!(of(Operator::In, 1), ["00:00:00.000001"]);
        let local = Value::LocalTimestamp(-1);
        let written = texts(ColumnKind::LocalTimestamp, Operator::Eq, local);
        assert_eq!(
            written,
            [
                "1969-12-31 23:59:59.999999",
                "1969-12-31T23:59:59.999999",
                "1969-12-31 23:59:59.999999Z",
                "1969-12-31T23:59:59.999999Z"
            ]
        );
        let moments = texts(ColumnKind::Timestamp, Operator::Eq, Value::Timestamp(0));
        assert_eq!(moments.len(), 32);
        assert!(moments.contains(&"1970-01-01T00:00Z".to_owned()));
        let far = Value::LocalTimestamp(253_402_300_800_000_000);
        assert_eq!(
            spelled(ColumnKind::LocalTimestamp, Operator::Gt, &[far]),
            None
        );
        let dates = spelled(ColumnKind::Date, Operator::Eq, &[Value::Date(0)]);
        assert_eq!(dates, None);
    }
}
