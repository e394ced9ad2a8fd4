//! The rows of `fixed-rows`, in all of its versions that answer.

use serde::Deserialize;
use souk_guests::{limit, words};
use souk_sdk::{
    Batch, Cell, Column, ColumnBuilder, ColumnType, Error, Query, Settings, Step, column,
};

const ROWS_DEFAULT: u32 = 3;
const COLUMNS: [(&str, ColumnType, &str); 3] = [
    ("id", ColumnType::Int64, "int8"),
    ("label", ColumnType::Text, "text"),
    ("amount", ColumnType::Float64, "float8"),
];

/// Only where it is named.
const STATEMENT: &str = "statement";

pub struct Fixed {
    rows: u32,
}

#[derive(Deserialize)]
struct Given {
    /// As a number or, where only text can be given, as text.
    rows: Option<Number>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Number(u32),
    Text(String),
}

impl Fixed {
    pub fn from_settings(settings: &Settings) -> Result<Fixed, Error> {
        let rows = match settings.parse::<Given>()?.rows {
            None => ROWS_DEFAULT,
            Some(Number::Number(rows)) => rows,
            Some(Number::Text(text)) => text.parse().map_err(|_| {
                Error::configuration("invalid_rows", "the setting rows must be a number")
            })?,
        };
        Ok(Fixed { rows })
    }

    pub fn answer(
        &self,
        id: u32,
        query: &Query,
        label: &str,
        step: &mut Step,
    ) -> Result<(), Error> {
        let rows = limit(query).unwrap_or(self.rows);
        if rows > query.limits.rows_max {
            step.failed(id, Error::too_many_rows(query.limits.rows_max));
            return Ok(());
        }
        let columns = chosen(query);
        let mut chunks = Vec::new();
        for column in &columns {
            let mut builder = ColumnBuilder::new(column.kind);
            for row in 1..=i64::from(rows) {
                let text = match column.name.as_str() {
                    STATEMENT => format!("{label} 1: {}", query.text),
                    _ => format!("{label} {row}"),
                };
                builder.push(match column.kind {
                    ColumnType::Int64 => Cell::Int64(row),
                    ColumnType::Text => Cell::Text(&text),
                    _ => Cell::Float64(row as f64 * 1.5),
                })?;
            }
            chunks.push(builder.finish());
        }
        step.columns(id, 0, Some(columns));
        step.batch(id, Batch { rows, chunks });
        step.done(id);
        Ok(())
    }
}

/// The columns that the statement names, in its order.
fn chosen(query: &Query) -> Vec<Column> {
    let mut chosen: Vec<Column> = Vec::new();
    for word in words(query) {
        let statement = (STATEMENT, ColumnType::Text, "text");
        let mut known = COLUMNS.iter().chain([&statement]);
        let known = known.find(|(name, _, _)| *name == word);
        if let Some((name, kind, native)) =
            known.filter(|(name, _, _)| chosen.iter().all(|column| column.name != *name))
        {
            chosen.push(column(*name, *kind, *native));
        }
    }
    if chosen.is_empty() {
        chosen.extend(COLUMNS.map(|(name, kind, native)| column(name, kind, native)));
    }
    chosen
}
