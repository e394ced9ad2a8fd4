//! Runs one statement: bind, step under the limits, columns.

use crate::database::{Database, STATEMENTS_MAX};
use crate::dates;
use crate::declared::Declared;
use crate::prepared::{Bound, Prepared};
use crate::types::{Room, Series};
use souk_sdk::{Batch, Column, ColumnType, Error, Query, Value, column};
use std::collections::HashMap;

/// What a statement answers.
pub struct Answer {
    pub shape: u32,
    /// Absent if this session has described the shape before.
    pub columns: Option<Vec<Column>>,
    pub batch: Batch,
}

/// What this session knows of the statements that it ran. The file cannot change under it, so a statement's
/// columns only change with the values that they hold.
#[derive(Default)]
pub struct Plans {
    by_text: HashMap<String, Plan>,
    shapes: u32,
}

struct Plan {
    statement: Prepared,
    heads: Vec<Head>,
    shape: Option<Shape>,
}

struct Head {
    name: String,
    native: String,
    declared: Declared,
    room: Room,
}

/// The last shape of a statement's answer.
struct Shape {
    number: u32,
    kinds: Vec<ColumnType>,
}

pub fn run(database: &Database, plans: &mut Plans, query: &Query) -> Result<Answer, Error> {
    database.allow(query.limits.timeout_ms);
    let (plan, shapes) = plans.of(database, &query.text)?;
    let (wanted, given) = (plan.statement.parameters(), query.parameters.len());
    if wanted != given {
        return Err(Error::source_failed(
            "parameter_count",
            format!("the statement takes {wanted} parameters, not {given}"),
        ));
    }
    let (rows, columns) = plan.columns(query)?;
    let mut kinds = Vec::with_capacity(columns.len());
    let mut chunks = Vec::with_capacity(columns.len());
    for (series, head) in columns.into_iter().zip(&mut plan.heads) {
        let (kind, chunk) = series.finish()?;
        head.room = Room::of(&chunk, rows);
        kinds.push(kind);
        chunks.push(chunk);
    }
    let (shape, columns) = plan.shape(kinds, shapes);
    Ok(Answer {
        shape,
        columns,
        batch: Batch { rows, chunks },
    })
}

impl Plan {
    fn of(statement: Prepared) -> Result<Plan, Error> {
        let columns = statement.columns();
        if !statement.is_read_only() || columns.is_empty() {
            return Err(Error::permission(
                "statement_refused",
                "the statement does something other than read",
            ));
        }
        let heads = columns.into_iter().map(|(name, declared)| Head {
            name,
            declared: Declared::parse(declared.as_deref()),
            native: declared.unwrap_or_default(),
            room: Room::default(),
        });
        Ok(Plan {
            heads: heads.collect(),
            statement,
            shape: None,
        })
    }

    /// How many rows there are, and their columns.
    fn columns(&mut self, query: &Query) -> Result<(u32, Vec<Series>), Error> {
        let heads = self.heads.iter();
        let mut columns: Vec<Series> = heads
            .map(|head| Series::new(head.declared, head.room))
            .collect();
        let limits = &query.limits;
        let values: Vec<Bound<'_>> = query
            .parameters
            .iter()
            .map(bound)
            .collect::<Result<_, _>>()?;
        let mut rows = self.statement.run(&values)?;
        let (mut count, mut bytes) = (0, 0);
        while let Some(row) = rows.next()? {
            if count == limits.rows_max {
                return Err(Error::too_many_rows(limits.rows_max));
            }
            for (series, value) in columns.iter_mut().zip(row.values()) {
                bytes += series.take(value)?;
            }
            if bytes > limits.bytes_max {
                return Err(Error::too_many_bytes(limits.bytes_max));
            }
            count += 1;
        }
        Ok((count, columns))
    }

    /// The number of this answer's shape, with its description if the values made it another one.
    fn shape(&mut self, kinds: Vec<ColumnType>, next: &mut u32) -> (u32, Option<Vec<Column>>) {
        if let Some(shape) = self.shape.as_ref().filter(|shape| shape.kinds == kinds) {
            return (shape.number, None);
        }
        // A statement keeps its number, so that the host remembers no more shapes than there are plans.
        let number = self.shape.as_ref().map_or(*next, |shape| shape.number);
        *next = (*next).max(number + 1);
        let describe = |(head, kind): (&Head, &ColumnType)| column(&head.name, *kind, &head.native);
        let columns = self.heads.iter().zip(&kinds).map(describe).collect();
        self.shape = Some(Shape { number, kinds });
        (number, Some(columns))
    }
}

impl Plans {
    /// The plan of a statement, and the number of the next shape.
    fn of(&mut self, database: &Database, text: &str) -> Result<(&mut Plan, &mut u32), Error> {
        if !self.by_text.contains_key(text) {
            let plan = Plan::of(Prepared::new(&database.connection, text)?)?;
            if self.by_text.len() >= STATEMENTS_MAX {
                // Numbers start again, each with a new description.
                self.by_text.clear();
                self.shapes = 0;
            }
            self.by_text.insert(text.to_owned(), plan);
        }
        match self.by_text.get_mut(text) {
            Some(plan) => Ok((plan, &mut self.shapes)),
            None => Err(Error::internal(
                "plan_lost",
                "the connector lost the plan of a statement",
            )),
        }
    }
}

/// A parameter as SQLite stores it; the README says why.
fn bound(value: &Value) -> Result<Bound<'_>, Error> {
    let outside = || {
        Error::invalid_request(
            "value_out_of_range",
            "a date or time is outside the years 0000 to 9999",
        )
    };
    Ok(match value {
        Value::Null(_) => Bound::Null,
        Value::Boolean(value) => Bound::Integer(i64::from(*value)),
        Value::Int64(value) => Bound::Integer(*value),
        Value::Float64(value) => Bound::Real(*value),
        Value::Decimal(text) => decimal(text)?,
        Value::Text(text) | Value::Json(text) => Bound::Text(text),
        Value::Bytes(bytes) => Bound::Blob(bytes),
        Value::Date(days) => Bound::Written(dates::write_date((*days).into()).ok_or_else(outside)?),
        Value::Time(micros) => Bound::Written(dates::write_time(*micros)),
        Value::Timestamp(micros) | Value::LocalTimestamp(micros) => {
            Bound::Written(dates::write_timestamp(*micros).ok_or_else(outside)?)
        }
    })
}

fn decimal(text: &str) -> Result<Bound<'static>, Error> {
    if let Ok(integer) = text.parse::<i64>() {
        return Ok(Bound::Integer(integer));
    }
    match text.parse::<f64>() {
        Ok(real) if real.is_finite() => Ok(Bound::Real(real)),
        _ => Err(Error::invalid_request(
            "value_not_a_number",
            "a decimal parameter is not a finite number",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_bound_as_the_statement_would_read_them() {
        assert_eq!(decimal("12").unwrap(), Bound::Integer(12));
        assert_eq!(decimal("-0.10").unwrap(), Bound::Real(-0.1));
        assert_eq!(decimal("NaN").unwrap_err().code, "value_not_a_number");
    }
}
