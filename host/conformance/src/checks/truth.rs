//! A table as the connector itself answers it when everything is asked for at once: what all other answers are held against.

use std::cmp::Ordering;
use std::time::Instant;

use souk_domain::sql::{
    After, Condition, Dialect, Order, RowSource, Rows, Selected, Slot, Window, page,
};
use souk_sandbox::{Cell, ColumnKind, Output, Value};

use super::catalog::Table;
use super::{Suite, Verdict, advice, rows, told};
use crate::profile::Place;
use crate::subject::query;

/// A table is read up to here.
const ROWS: u32 = 2_000;
/// What a page is asked for counts as one row more than there may be, to see whether that is all.
const WINDOW: Window = Window::First(ROWS + 1);

pub struct Truth {
    pub table: Table,
    pub dialect: Dialect,
    pub output: Output,
    /// As JSON, in the order of the key.
    pub rows: Vec<Vec<String>>,
    /// There are no rows but these.
    pub is_whole: bool,
}

/// One statement as a host writes it, and what is bound in it.
pub struct Asked<'a> {
    pub conditions: &'a [Condition<'a>],
    pub values: Vec<Value>,
    pub order: Vec<Order<'a>>,
    pub after: Option<(&'a After, Vec<Value>)>,
    pub window: Option<(u32, u32)>,
}

impl Truth {
    pub async fn read(suite: &mut Suite<'_>, place: &Place, table: &Table) -> Option<Truth> {
        let dialect = suite.dialect?;
        let begun = Instant::now();
        let source = suite.subject.source(place);
        let text = statement(table, dialect, &Asked::ordered(key(table)), WINDOW).0;
        let verdict = match suite.subject.ask(&source, query(&text, Vec::new())).await {
            Ok(output) => {
                let is_whole = output.rows <= ROWS as usize;
                let mut output = output;
                output.truncate(ROWS as usize);
                let truth = Truth {
                    table: table.clone(),
                    dialect,
                    rows: rows(&output),
                    output,
                    is_whole,
                };
                let verdict = truth.fits();
                let is_usable = !verdict.is_failed();
                suite.found("reading.table", begun, verdict);
                return is_usable.then_some(truth);
            }
            Err(fault) => Verdict::failed(format!("{text}\n{}", told(&fault)), advice(&fault)),
        };
        suite.found("reading.table", begun, verdict);
        None
    }

    /// The columns that were asked for, in that order.
    fn fits(&self) -> Verdict {
        let named = self.output.columns.iter().map(|column| &column.name);
        let asked = self.table.fields.iter().map(|field| &field.name);
        if !named.clone().eq(asked) {
            let named: Vec<&str> = named.map(String::as_str).collect();
            return Verdict::failed(
                format!(
                    "asked for the fields of the table {:?} it answers the columns {}",
                    self.table.name,
                    named.join(", ")
                ),
                "answer the columns that are selected, under their names, in their order: a host releases columns by name",
            );
        }
        match self.rows.len() {
            0..3 => Verdict::warned(
                format!(
                    "the table {:?} has {} rows: that proves little",
                    self.table.name,
                    self.rows.len()
                ),
                "name a table with some dozen rows, NULLs among them, in the profile ([table])",
            ),
            count => Verdict::noted(format!("{count} rows of {:?}", self.table.name)),
        }
    }

    pub fn column(&self, name: &str) -> Option<usize> {
        self.output.column(name)
    }

    /// The statement, and what it binds.
    pub fn statement(&self, asked: &Asked<'_>) -> (String, Vec<Value>) {
        let window = match asked.window {
            Some(_) => Window::Bound,
            None => WINDOW,
        };
        statement(&self.table, self.dialect, asked, window)
    }

    /// The order of the key.
    pub fn key(&self) -> Vec<Order<'_>> {
        key(&self.table)
    }

    /// Whether no two rows are the same in all columns that were read.
    pub fn is_distinct(&self) -> bool {
        let mut sorted: Vec<&Vec<String>> = self.rows.iter().collect();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[0] != pair[1])
    }
}

impl<'a> Asked<'a> {
    pub fn ordered(order: Vec<Order<'a>>) -> Asked<'a> {
        Asked {
            conditions: &[],
            values: Vec::new(),
            order,
            after: None,
            window: None,
        }
    }
}

fn key(table: &Table) -> Vec<Order<'_>> {
    let nullable = |name: &str| {
        let field = table.fields.iter().find(|field| field.name == name);
        field.is_none_or(|field| field.nullable)
    };
    let orders = table.key.iter().map(|name| Order {
        field: name,
        descending: false,
        nullable: nullable(name),
    });
    orders.collect()
}

fn statement(
    table: &Table,
    dialect: Dialect,
    asked: &Asked<'_>,
    window: Window,
) -> (String, Vec<Value>) {
    let source = RowSource::Table {
        schema: table.schema.as_deref(),
        table: &table.name,
    };
    let columns: Vec<Selected<'_>> = table
        .fields
        .iter()
        .map(|field| Selected::Field(&field.name))
        .collect();
    let written = page(
        dialect,
        &source,
        &Rows {
            columns: &columns,
            conditions: asked.conditions,
            order_by: &asked.order,
            key: &[],
            after: asked.after.as_ref().map(|(after, _)| *after),
            window,
        },
    );
    let (rows, offset) = asked.window.unwrap_or_default();
    let keys = asked.after.as_ref().map(|(_, keys)| keys.as_slice());
    let bound = written.slots.iter().map(|slot| match slot {
        Slot::Value(at) => asked.values.get(*at).cloned().unwrap_or(Value::Null(None)),
        Slot::Key(at) => keys
            .and_then(|keys| keys.get(*at))
            .cloned()
            .unwrap_or(Value::Null(None)),
        Slot::Rows => Value::Int64(rows.into()),
        Slot::Offset => Value::Int64(offset.into()),
        Slot::Reach => Value::Int64(i64::from(rows) + i64::from(offset)),
    });
    let bound = bound.collect();
    (written.text, bound)
}

/// A cell as a host binds it; `None` for what no host binds.
pub fn bound(cell: &Cell<'_>) -> Option<Value> {
    Some(match cell {
        Cell::Boolean(value) => Value::Boolean(*value),
        Cell::Int64(value) => Value::Int64(*value),
        Cell::Float64(value) => Value::Float64(*value),
        Cell::Decimal(digits) => Value::Decimal((*digits).to_owned()),
        Cell::Text(text) => Value::Text((*text).to_owned()),
        Cell::Date(days) => Value::Date(*days),
        Cell::Time(micros) => Value::Time(*micros),
        Cell::Timestamp(micros) => Value::Timestamp(*micros),
        Cell::LocalTimestamp(micros) => Value::LocalTimestamp(*micros),
        _ => return None,
    })
}

/// Whether every source agrees on the order of values of this kind. (Of texts each has its own.)
pub fn has_one_order(kind: ColumnKind) -> bool {
    matches!(
        kind,
        ColumnKind::Int64
            | ColumnKind::Float64
            | ColumnKind::Decimal
            | ColumnKind::Date
            | ColumnKind::Time
            | ColumnKind::Timestamp
            | ColumnKind::LocalTimestamp
    )
}

/// Of two values of such a kind; `None` where one is NULL or no number.
pub fn compare(left: &Cell<'_>, right: &Cell<'_>) -> Option<Ordering> {
    match (left, right) {
        (Cell::Int64(left), Cell::Int64(right)) => Some(left.cmp(right)),
        (Cell::Date(left), Cell::Date(right)) => Some(left.cmp(right)),
        (Cell::Time(left), Cell::Time(right))
        | (Cell::Timestamp(left), Cell::Timestamp(right))
        | (Cell::LocalTimestamp(left), Cell::LocalTimestamp(right)) => Some(left.cmp(right)),
        (Cell::Decimal(left), Cell::Decimal(right)) => digits(left, right),
        (left, right) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// Of two exact numbers, digit by digit: a float has too few for an unsigned number of 64 bits.
fn digits(left: &str, right: &str) -> Option<Ordering> {
    let (Some(one), Some(other)) = (Digits::of(left), Digits::of(right)) else {
        let parse = |text: &str| text.parse::<f64>().ok();
        return parse(left)?.partial_cmp(&parse(right)?);
    };
    let (one_size, other_size) = (one.size(), other.size());
    Some(match (one.is_negative, other.is_negative) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => one_size.cmp(&other_size),
        (true, true) => other_size.cmp(&one_size),
    })
}

/// An exact number without exponent; zero is not negative.
struct Digits<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
}

impl Digits<'_> {
    fn of(text: &str) -> Option<Digits<'_>> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let (whole, fraction) = (
            Some(whole).filter(|part| is_number(part))?,
            Some(fraction).filter(|part| is_number(part))?,
        );
        let (whole, fraction) = (
            whole.trim_start_matches('0'),
            fraction.trim_end_matches('0'),
        );
        Some(Digits {
            is_negative: text.starts_with('-') && !(whole.is_empty() && fraction.is_empty()),
            whole,
            fraction,
        })
    }

    /// The longer number is the greater one; of the same length texts compare as numbers do.
    fn size(&self) -> (usize, &str, &str) {
        (self.whole.len(), self.whole, self.fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair of a list in order compares as it stands.
    #[test]
    fn exact_numbers_compare_by_their_digits() {
        let ascending = [
            "-18446744073709551615",
            "-18446744073709551614.5",
            "-1.10",
            "-1.1",
            "-0.001",
            "0.00",
            "-0",
            "0.0009",
            "2",
            "10",
            "18446744073709551614",
            "18446744073709551615",
        ];
        for (at, left) in ascending.iter().enumerate() {
            for (to, right) in ascending.iter().enumerate() {
                let equal = [("-1.10", "-1.1"), ("0.00", "-0")];
                let wanted = match equal.contains(&(left, right)) || equal.contains(&(right, left))
                {
                    true => Ordering::Equal,
                    false => at.cmp(&to),
                };
                assert_eq!(digits(left, right), Some(wanted), "{left} {right}");
            }
        }
        assert_eq!(digits("NaN", "1"), None);
        assert_eq!(digits("1e3", "999"), Some(Ordering::Greater));
    }
}
