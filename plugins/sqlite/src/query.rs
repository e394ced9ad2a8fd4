//! Runs one statement: bind, step under the limits, columns.

use crate::database::{Database, STATEMENTS_MAX};
use crate::dates;
use crate::declared::Declared;
use crate::errors;
use crate::types::Series;
use rusqlite::types::Value as Bound;
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
    heads: Vec<Head>,
    parameters: usize,
    shape: Option<Shape>,
}

struct Head {
    name: String,
    native: String,
    declared: Declared,
}

/// The last shape of a statement's answer.
struct Shape {
    number: u32,
    kinds: Vec<ColumnType>,
}

pub fn run(database: &Database, plans: &mut Plans, query: &Query) -> Result<Answer, Error> {
    database.allow(query.limits.timeout_ms);
    let mut statement = database
        .connection
        .prepare_cached(&query.text)
        .map_err(errors::of_statement)?;
    if !plans.by_text.contains_key(&query.text) {
        let plan = Plan::of(&statement)?;
        plans.add(&query.text, plan);
    }
    let Some(plan) = plans.by_text.get_mut(&query.text) else {
        return Err(Error::internal(
            "plan_lost",
            "the connector lost the plan of a statement",
        ));
    };
    if query.parameters.len() != plan.parameters {
        let (wanted, given) = (plan.parameters, query.parameters.len());
        return Err(Error::source_failed(
            "parameter_count",
            format!("the statement takes {wanted} parameters, not {given}"),
        ));
    }
    for (at, value) in query.parameters.iter().enumerate() {
        statement
            .raw_bind_parameter(at + 1, bound(value)?)
            .map_err(errors::of_statement)?;
    }

    let limits = &query.limits;
    let mut columns: Vec<Series> = plan
        .heads
        .iter()
        .map(|head| Series::new(head.declared))
        .collect();
    let mut count = 0u32;
    let mut bytes = 0u64;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(errors::of_statement)? {
        if count == limits.rows_max {
            return Err(Error::too_many_rows(limits.rows_max));
        }
        for (at, series) in columns.iter_mut().enumerate() {
            bytes += series.push(row.get_ref(at).map_err(errors::of_statement)?)?;
        }
        if bytes > limits.bytes_max {
            return Err(Error::too_many_bytes(limits.bytes_max));
        }
        count += 1;
    }

    let mut kinds = Vec::with_capacity(columns.len());
    let mut chunks = Vec::with_capacity(columns.len());
    for series in columns {
        let (kind, chunk) = series.finish()?;
        kinds.push(kind);
        chunks.push(chunk);
    }
    let (shape, columns) = plan.shape(kinds, &mut plans.shapes);
    Ok(Answer {
        shape,
        columns,
        batch: Batch {
            rows: count,
            chunks,
        },
    })
}

impl Plan {
    fn of(statement: &rusqlite::Statement<'_>) -> Result<Plan, Error> {
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(Error::permission(
                "statement_refused",
                "the statement does something other than read",
            ));
        }
        let heads = statement.columns().into_iter().map(|column| Head {
            name: column.name().to_string(),
            native: column.decl_type().unwrap_or_default().to_string(),
            declared: Declared::parse(column.decl_type()),
        });
        Ok(Plan {
            heads: heads.collect(),
            parameters: statement.parameter_count(),
            shape: None,
        })
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
    fn add(&mut self, text: &str, plan: Plan) {
        if self.by_text.len() >= STATEMENTS_MAX {
            // Numbers start again, each with a new description.
            self.by_text.clear();
            self.shapes = 0;
        }
        self.by_text.insert(text.to_string(), plan);
    }
}

/// A parameter as SQLite stores it; the README says why.
fn bound(value: &Value) -> Result<Bound, Error> {
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
        Value::Text(text) | Value::Json(text) => Bound::Text(text.clone()),
        Value::Bytes(bytes) => Bound::Blob(bytes.clone()),
        Value::Date(days) => Bound::Text(dates::write_date((*days).into()).ok_or_else(outside)?),
        Value::Time(micros) => Bound::Text(dates::write_time(*micros)),
        Value::Timestamp(micros) | Value::LocalTimestamp(micros) => {
            Bound::Text(dates::write_timestamp(*micros).ok_or_else(outside)?)
        }
    })
}

fn decimal(text: &str) -> Result<Bound, Error> {
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
