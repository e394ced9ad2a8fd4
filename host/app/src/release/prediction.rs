//! A forecast: what follows the series that a source returned, which stays here.
//!
//! Refuses to know what may leave: it is told the rows that may be counted on, and the columns that it may choose among. Start reading at [`forecast()`].

use souk_domain::time::DAY_MICROS;
use souk_sandbox::{Cell, ColumnKind, Output};

use crate::definition::{DEFAULT_HORIZON, DEFAULT_LEVEL, Prediction};
use crate::failure::Cause;
use crate::forecast::{self, ForecastError, Frequency};

use super::written::Written;

#[derive(Debug)]
pub struct Forecast {
    pub model: &'static str,
    pub level: f64,
    pub points: Vec<Point>,
}

/// The bounds of an interval, and what is expected.
#[derive(Debug)]
pub struct Point {
    /// As the series has it: a date where it has dates, without a zone where it has none.
    pub at: String,
    pub value: f64,
    pub lower: f64,
    pub upper: f64,
}

/// The columns that are wanted, else the first of `columns` that fit, continued.
pub(super) fn forecast(
    output: &Output,
    columns: &[usize],
    wanted: &Prediction,
    rows: &[usize],
) -> Result<Forecast, Cause> {
    let choose = |name: &Option<String>, fits: fn(ColumnKind) -> bool, what: &str| match name {
        Some(name) => match output.column(name) {
            Some(index) if fits(output.columns[index].kind) => Ok(index),
            Some(index) => {
                let kind = output.columns[index].kind.as_str();
                Err(Cause::bad_answer_in(
                    format!("a column of the series is {kind} where {what} is expected"),
                    format!("the column \"{name}\" is {kind}"),
                ))
            }
            None => Err(Cause::no_column(name)),
        },
        None => columns
            .iter()
            .copied()
            .find(|index| fits(output.columns[*index].kind))
            .ok_or_else(|| Cause::bad_answer(format!("the query returned no column of {what}"))),
    };
    let time = choose(&wanted.time_column, is_time, "dates or timestamps")?;
    let value = choose(&wanted.value_column, ColumnKind::is_numeric, "numbers")?;
    let texts = rows.iter().filter_map(|row| match output.cell(*row, time) {
        Cell::Text(text) => Some(text),
        _ => None,
    });
    let written = Written::of(output.columns[time].kind, texts);
    let mut series = series(output, (time, &written), value, rows)?;
    series.sort_by_key(|(at, _)| *at);
    // An hour that a clock shows twice is one of many.
    let same = series.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    if same.count() * forecast::SHARED_PARTS > series.len() {
        return Err(several_at_once(&output.columns[time].name));
    }

    let horizon = wanted.horizon.unwrap_or(DEFAULT_HORIZON);
    let level = wanted.level.unwrap_or(DEFAULT_LEVEL);
    let frequency = |word| {
        let frequency = Frequency::of(word);
        frequency.ok_or_else(|| Cause::bad_answer("the frequency is unknown"))
    };
    let frequency = wanted.frequency.as_deref().map(frequency).transpose()?;
    let forecasted = forecast::forecast(&series, frequency, horizon, level).map_err(refused)?;

    let points = forecasted.points.iter().map(|(at, point)| Point {
        at: written.write(*at),
        value: point.value,
        lower: point.lower,
        upper: point.upper,
    });
    Ok(Forecast {
        model: forecasted.model,
        level,
        points: points.collect(),
    })
}

/// Times also come as text: SQLite has no type for them.
fn is_time(kind: ColumnKind) -> bool {
    kind.is_temporal() || kind == ColumnKind::Text
}

fn series(
    output: &Output,
    (time, written): (usize, &Written),
    value: usize,
    rows: &[usize],
) -> Result<Vec<(i64, f64)>, Cause> {
    let mut series = Vec::with_capacity(rows.len());
    let cells: Vec<(Cell<'_>, Cell<'_>)> = output.cells(time).zip(output.cells(value)).collect();
    for row in rows {
        let Some((at, value)) = cells.get(*row) else {
            continue;
        };
        let at = match *at {
            Cell::Date(days) => i64::from(days) * DAY_MICROS,
            Cell::Timestamp(micros) | Cell::LocalTimestamp(micros) => micros,
            Cell::Text(text) => written
                .read(text)
                .ok_or_else(|| no_time(&output.columns[time].name))?,
            _ => return Err(Cause::bad_answer("the series has a row without a time")),
        };
        // A point without a value says nothing about the value.
        if let Some(value) = value.as_f64() {
            series.push((at, value));
        }
    }
    Ok(series)
}

/// Which of them is meant nobody here knows: the rows of two shops want a sum, those of two sensors a mean.
fn several_at_once(column: &str) -> Cause {
    Cause::bad_answer_in(
        "several rows of the series have the same time: aggregate them (GROUP BY)",
        format!("it is in the column \"{column}\""),
    )
}

/// How much a seller's series has is for the seller to know.
fn refused(error: ForecastError) -> Cause {
    match error.advice() {
        Some(advice) => Cause::bad_answer_in(error.to_string(), advice),
        None => Cause::bad_answer(error.to_string()),
    }
}

/// The text is the seller's, and so is the column's name: a forecast releases neither.
fn no_time(column: &str) -> Cause {
    Cause::bad_answer_in(
        "the series has a text that is no time",
        format!(
            "it is in the column \"{column}\": write times as 2026-11-23 or 2026-11-23T05:17:45Z, or name another time_column"
        ),
    )
}

#[cfg(test)]
#[path = "prediction_tests.rs"]
mod tests;
