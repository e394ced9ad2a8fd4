//! Runs one statement: bind, step under the limits, columns.

use crate::database::{Database, STATEMENTS_BYTES_MAX, STATEMENTS_MAX};
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
    /// Of all of them.
    bytes: usize,
    /// Numbers of shapes that those had which have gone, so that the host remembers no more shapes than there are plans.
    free: Vec<u32>,
    /// Goes on with each statement that is asked.
    clock: u64,
}

struct Plan {
    statement: Prepared,
    heads: Vec<Head>,
    /// Of its answer's shape.
    number: u32,
    /// The types of its last answer's columns.
    kinds: Option<Vec<ColumnType>>,
    /// What it takes, with its text.
    bytes: usize,
    /// When it was asked last.
    used: u64,
}

struct Head {
    name: String,
    native: String,
    declared: Declared,
    room: Room,
}

pub fn run(database: &Database, plans: &mut Plans, query: &Query) -> Result<Answer, Error> {
    database.allow(query.limits.timeout_ms);
    let plan = plans.of(database, &query.text)?;
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
    Ok(Answer {
        shape: plan.number,
        columns: plan.described(kinds),
        batch: Batch { rows, chunks },
    })
}

impl Plan {
    fn of(statement: Prepared, text: &str) -> Result<Plan, Error> {
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
        let heads: Vec<Head> = heads.collect();
        let head_bytes = |head: &Head| size_of::<Head>() + head.name.len() + head.native.len();
        let bytes = text.len() + heads.iter().map(head_bytes).sum::<usize>();
        Ok(Plan {
            statement,
            heads,
            number: 0,
            kinds: None,
            bytes,
            used: 0,
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

    /// The description of this answer's shape, if it has not been described yet or the values made it another one.
    fn described(&mut self, kinds: Vec<ColumnType>) -> Option<Vec<Column>> {
        if self.kinds.as_ref() == Some(&kinds) {
            return None;
        }
        let describe = |(head, kind): (&Head, &ColumnType)| column(&head.name, *kind, &head.native);
        let columns = self.heads.iter().zip(&kinds).map(describe).collect();
        self.kinds = Some(kinds);
        Some(columns)
    }
}

impl Plans {
    /// The plan of a statement.
    fn of(&mut self, database: &Database, text: &str) -> Result<&mut Plan, Error> {
        if !self.by_text.contains_key(text) {
            let statement = Prepared::new(&database.connection, text)?;
            self.keep(text, Plan::of(statement, text)?);
        }
        self.clock += 1;
        match self.by_text.get_mut(text) {
            Some(plan) => {
                plan.used = self.clock;
                Ok(plan)
            }
            None => Err(Error::internal(
                "plan_lost",
                "the connector lost the plan of a statement",
            )),
        }
    }

    /// Keeps a new plan, in the place of those that were asked longest ago where there is no room.
    fn keep(&mut self, text: &str, mut plan: Plan) {
        let bytes_max = STATEMENTS_BYTES_MAX.saturating_sub(plan.bytes);
        while self.by_text.len() >= STATEMENTS_MAX || self.bytes > bytes_max {
            let used = |(_, plan): &(&String, &Plan)| plan.used;
            let least_recent = self.by_text.iter().min_by_key(used);
            let Some(text) = least_recent.map(|(text, _)| text.clone()) else {
                break;
            };
            if let Some(gone) = self.by_text.remove(&text) {
                self.bytes -= gone.bytes;
                self.free.push(gone.number);
            }
        }
        // Those that are free and those that are in use are all below how many plans there were at most.
        let next = u32::try_from(self.by_text.len()).unwrap_or(u32::MAX);
        plan.number = self.free.pop().unwrap_or(next);
        self.bytes += plan.bytes;
        self.by_text.insert(text.to_owned(), plan);
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
        // An infinity is the place where a page ended.
        Ok(real) if !real.is_nan() => Ok(Bound::Real(real)),
        _ => Err(Error::invalid_request(
            "value_not_a_number",
            "a decimal parameter is not a number",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::FileName;

    /// Statements with long descriptions make room for each other; no two have the same number, and none one beyond those of others.
    #[test]
    fn plans_have_bounds() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.db");
        let made = rusqlite::Connection::open(&file).unwrap();
        made.execute_batch("CREATE TABLE t (x)").unwrap();
        drop(made);
        let name = FileName::parse("a.db").unwrap();
        let database = Database::open(directory.path(), &name).unwrap();
        let mut plans = Plans::default();
        // First they are too many, then too long.
        for number in 0..STATEMENTS_MAX + 100 {
            let long = match number < STATEMENTS_MAX + 50 {
                true => String::new(),
                false => "x".repeat(STATEMENTS_BYTES_MAX / 20),
            };
            let text = format!("SELECT {number} /* {long} */");
            plans.of(&database, &text).unwrap();
            plans.of(&database, "SELECT 'again'").unwrap();
            assert!(plans.by_text.contains_key(&text), "{number}");
            let all = plans.by_text.values();
            let bytes: usize = all.clone().map(|plan| plan.bytes).sum();
            assert!(bytes == plans.bytes && bytes <= STATEMENTS_BYTES_MAX);
            let mut numbers: Vec<u32> = all.map(|plan| plan.number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), plans.by_text.len());
            assert!(numbers.iter().all(|number| *number < STATEMENTS_MAX as u32));
            assert!(plans.by_text.len() <= STATEMENTS_MAX);
        }
        assert_eq!(plans.by_text["SELECT 'again'"].number, 1);
    }

    #[test]
    fn decimals_are_bound_as_the_statement_would_read_them() {
        assert_eq!(decimal("12").unwrap(), Bound::Integer(12));
        assert_eq!(decimal("-0.10").unwrap(), Bound::Real(-0.1));
        assert_eq!(decimal("NaN").unwrap_err().code, "value_not_a_number");
    }
}
