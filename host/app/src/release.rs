//! The release policy: what of a source's answer may leave, and in which shape.
//!
//! One calculation releases one insight: exactly one row with one value. A chart releases the
//! columns that it draws, a prediction the forecast and not its history. Whatever else a connector
//! or a seller's API returned stays here. Charts are built by the host; nothing that a seller wrote
//! is ever passed on as markup or code.
//!
//! Start reading at [`Policy::release`]. How a chart is drawn and a forecast made is below.

mod chart;
mod prediction;
mod written;

use serde_json::value::RawValue;
use souk_domain::time::DAY_MICROS;
use souk_sandbox::{Blame, Cell, Column, ColumnKind, Fault, FaultKind, Limits, Output, json};

use crate::definition::{Prediction, Privacy, Visualization};
use crate::failure::Cause;
use crate::forecast::HISTORY_MAX;

pub use prediction::{Forecast, Point};
use written::instant;

/// More marks than pixels is no chart.
pub const CHART_ROWS_MAX: u32 = 5_000;
const CHART_BYTES_MAX: u64 = 4 << 20;
/// A number, or a text that a person reads.
const VALUE_BYTES_MAX: u64 = 256 << 10;
const HISTORY_BYTES_MAX: u64 = 8 << 20;

/// A result that is larger takes a worker longer to write than others should wait: a few thousand marks.
const INLINE_BYTES_MAX: usize = 64 << 10;
/// Each mark has the names of its columns, which are copied: half a millisecond.
const INLINE_NAMES_BYTES_MAX: usize = 512 << 10;
/// What an asset's result is.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultKind {
    Number,
    String,
    Chart(Visualization),
    Prediction(Prediction),
}

impl ResultKind {
    pub fn word(&self) -> &'static str {
        match self {
            ResultKind::Number => "number",
            ResultKind::String => "string",
            ResultKind::Chart(_) => "chart",
            ResultKind::Prediction(_) => "prediction",
        }
    }

    /// How much is taken from the source before it is stopped.
    pub fn limits(&self) -> Limits {
        match self {
            ResultKind::Number | ResultKind::String => Limits::new(1, VALUE_BYTES_MAX),
            ResultKind::Chart(_) => Limits::new(CHART_ROWS_MAX, CHART_BYTES_MAX),
            ResultKind::Prediction(_) => Limits::new(HISTORY_MAX as u32, HISTORY_BYTES_MAX),
        }
    }
}

/// What decides about an asset's release.
#[derive(Clone, Debug)]
pub struct Policy {
    pub kind: ResultKind,
    pub freshness: Option<Freshness>,
    pub privacy: Option<Privacy>,
}

/// The column with the age of the data: reported beside the result, not in it.
#[derive(Clone, Debug)]
pub struct Freshness {
    pub column: String,
    /// The asset's owner has named it: a result without it is none. Else a result has it or not.
    pub is_owed: bool,
}

/// The code of a source that found nothing.
pub(crate) const NO_ROW: &str = "no_row";

/// What an asset says.
#[derive(Debug)]
pub enum Insight {
    /// A number, a text or null, as JSON.
    Value(Vec<u8>),
    /// A complete Vega-Lite specification.
    Chart(Vec<u8>),
    Forecast(Forecast),
}

/// Writes an insight as members of an answer, without braces. How they are called is `api`'s business.
pub type Wording = fn(&mut Vec<u8>, &Insight);

impl Insight {
    /// How large it is. A point of a forecast counts as its four numbers.
    pub fn bytes(&self) -> usize {
        match self {
            Insight::Value(json) | Insight::Chart(json) => json.len(),
            Insight::Forecast(forecast) => forecast.points.len() * 4 * size_of::<f64>(),
        }
    }
}

/// A result that may leave.
#[derive(Debug)]
pub struct Released {
    pub insight: Insight,
    /// Microseconds since the epoch.
    pub freshness: Option<i64>,
    pub rows: usize,
}

impl Policy {
    /// Whether releasing this result would hold a worker: fitting takes up to seconds, drawing much milliseconds.
    pub fn is_heavy(&self, output: &Output) -> bool {
        let has_long_names = match self.kind {
            ResultKind::Prediction(_) => return true,
            // Those that are drawn are among them.
            ResultKind::Chart(_) => {
                let names = output.columns.iter().map(|column| column.name.len());
                chart::names_bytes(output.rows, names.sum()) > INLINE_NAMES_BYTES_MAX
            }
            ResultKind::Number | ResultKind::String => false,
        };
        has_long_names || output.bytes > INLINE_BYTES_MAX
    }

    /// Computes; see [`Policy::is_heavy`].
    pub fn release(&self, output: &Output) -> Result<Released, Cause> {
        if let Some(member) = self.releases_unit() {
            return Err(unit_released(member));
        }
        // Nobody are fewer than so many, too. Who was told that there is no row would know of each one that is withheld that there is somebody.
        if let (Some(privacy), 0) = (&self.privacy, output.rows) {
            return Err(withheld(privacy));
        }
        let rows = self.rows_that_may_leave(output)?;
        let mut json = Vec::with_capacity(64);
        let insight = match &self.kind {
            ResultKind::Number | ResultKind::String => {
                self.write_value(&mut json, output)?;
                Insight::Value(json)
            }
            ResultKind::Chart(visualization) => {
                chart::write(
                    &mut json,
                    output,
                    &self.columns(output),
                    visualization,
                    &rows,
                )?;
                Insight::Chart(json)
            }
            ResultKind::Prediction(wanted) => {
                let columns = self.columns(output);
                Insight::Forecast(prediction::forecast(output, &columns, wanted, &rows)?)
            }
        };
        // Last: of a result without a row nothing else is wrong.
        let freshness = self.freshness_of(output, &rows)?;
        Ok(Released {
            insight,
            freshness,
            rows: rows.len(),
        })
    }

    /// The same for a test that nobody is answered by. `None`: a chart of which privacy withholds every row at the moment, and in which nothing else is wrong.
    /// A chart may be without a row; a number may not.
    pub fn tested(&self, output: &Output) -> Result<Option<Released>, Cause> {
        let (withheld, drawn, privacy) = match (self.release(output), &self.kind, &self.privacy) {
            (Err(cause @ Cause::Private { .. }), ResultKind::Chart(drawn), Some(privacy)) => {
                (cause, drawn, privacy)
            }
            (released, ..) => return released.map(Some),
        };
        // Some sources do not say columns without rows.
        if output.columns.is_empty() {
            return Err(withheld);
        }
        let Some(column) = output.column(&privacy.privacy_unit_column) else {
            return Err(Cause::no_column(&privacy.privacy_unit_column));
        };
        // What counts nothing never lets anything out.
        let counts = output.cells(column).any(|cell| cell.as_f64().is_some());
        if output.rows > 0 && !counts {
            return Err(withheld);
        }
        chart::write(&mut Vec::new(), output, &self.columns(output), drawn, &[])?;
        self.freshness_of(output, &[])?;
        Ok(None)
    }

    /// The member that names the column which privacy counts by. What is saved has none any more; what was saved before may.
    pub(crate) fn releases_unit(&self) -> Option<&'static str> {
        let privacy = self.privacy.as_ref()?;
        match &self.kind {
            ResultKind::Chart(drawn) => privacy.named_by(&drawn.columns()),
            ResultKind::Prediction(wanted) => privacy.named_by(&wanted.columns()),
            ResultKind::Number | ResultKind::String => None,
        }
    }

    /// Columns that are neither about freshness nor about privacy.
    fn columns(&self, output: &Output) -> Vec<usize> {
        let hidden = |name: &str| {
            self.freshness
                .as_ref()
                .is_some_and(|freshness| freshness.column == name)
                || self
                    .privacy
                    .as_ref()
                    .is_some_and(|privacy| privacy.privacy_unit_column == name)
        };
        (0..output.columns.len())
            .filter(|index| !hidden(&output.columns[*index].name))
            .collect()
    }

    /// The newest value of the freshness column, in the rows that leave: how new the others are is withheld with them. `None`: nobody says.
    fn freshness_of(&self, output: &Output, rows: &[usize]) -> Result<Option<i64>, Cause> {
        let Some(Freshness { column, is_owed }) = &self.freshness else {
            return Ok(None);
        };
        let column = match output.column(column) {
            Some(column) => column,
            None if *is_owed => return Err(Cause::no_column(column)),
            None => return Ok(None),
        };
        let mut newest: Option<i64> = None;
        for row in rows {
            newest = newest.max(age(output, *row, column)?);
        }
        Ok(newest)
    }

    pub(crate) fn rows_that_may_leave(&self, output: &Output) -> Result<Vec<usize>, Cause> {
        let Some(privacy) = &self.privacy else {
            return Ok((0..output.rows).collect());
        };
        let Some(column) = output.column(&privacy.privacy_unit_column) else {
            return Err(Cause::no_column(&privacy.privacy_unit_column));
        };
        let large_enough = |cell: Cell<'_>| {
            cell.as_f64()
                .is_some_and(|units| units >= f64::from(privacy.min_group_size))
        };
        let rows: Vec<usize> = output
            .cells(column)
            .enumerate()
            .filter(|(_, cell)| large_enough(*cell))
            .map(|(row, _)| row)
            .collect();
        if rows.is_empty() && output.rows > 0 {
            return Err(withheld(privacy));
        }
        Ok(rows)
    }

    fn write_value(&self, out: &mut Vec<u8>, output: &Output) -> Result<(), Cause> {
        let columns = self.columns(output);
        let [column] = columns[..] else {
            return Err(bad(format!(
                "the calculation returned {} values where exactly one is expected",
                columns.len()
            )));
        };
        match output.rows {
            0 => return Err(no_row()),
            1 => {}
            rows => {
                return Err(bad(format!(
                    "the calculation returned {rows} rows where exactly one is expected"
                )));
            }
        }
        let cell = output.cell(0, column);
        let written = match &self.kind {
            ResultKind::Number => write_number(out, &cell),
            _ => write_text(out, &cell),
        };
        match written {
            true => Ok(()),
            false => {
                let kind = match (&self.kind, output.columns[column].kind) {
                    // One that is finite was written.
                    (ResultKind::Number, ColumnKind::Float64 | ColumnKind::Decimal) => "not finite",
                    (_, kind) => kind.as_str(),
                };
                Err(bad(format!(
                    "the result is {kind} where a {} is expected",
                    self.kind.word()
                )))
            }
        }
    }
}

fn withheld(privacy: &Privacy) -> Cause {
    Cause::Private {
        min_group_size: privacy.min_group_size,
    }
}

fn unit_released(member: &str) -> Cause {
    Cause::bad_answer_in(
        "the product would release a column that its privacy withholds",
        format!(
            "{member} is the privacy_unit_column: name another column, or let privacy count by another one"
        ),
    )
}

/// When a row is from; NULL where its source does not know.
fn age(output: &Output, row: usize, column: usize) -> Result<Option<i64>, Cause> {
    let at = match output.cell(row, column) {
        Cell::Null => return Ok(None),
        // Without a zone it is taken for UTC.
        Cell::Timestamp(micros) | Cell::LocalTimestamp(micros) => Some(micros),
        Cell::Date(days) => Some(i64::from(days) * DAY_MICROS),
        Cell::Text(text) => instant(text),
        _ => None,
    };
    at.map(Some).ok_or_else(|| ageless(&output.columns[column]))
}

/// What it says instead is the seller's, and so is the column's name: a result has neither.
fn ageless(column: &Column) -> Cause {
    let (name, kind) = (&column.name, column.kind);
    let (is, found) = match kind {
        ColumnKind::Text => ("a text that is no time", "has a text that is no time"),
        _ => (kind.as_str(), "has no times"),
    };
    Cause::bad_answer_in(
        format!("the age of the data is {is} where a date or a timestamp is expected"),
        format!(
            "the column \"{name}\" {found}: make dates, timestamps or texts such as 2026-11-23T05:17:45Z of it in sql_logic, or name another freshness_column"
        ),
    )
}

/// False when it is no number.
fn write_number(out: &mut Vec<u8>, cell: &Cell<'_>) -> bool {
    match cell {
        Cell::Null => out.extend_from_slice(b"null"),
        Cell::Int64(_) => json::write_cell(out, cell),
        // NaN and the infinities are no numbers that anybody could use, and no JSON.
        Cell::Float64(value) if !value.is_finite() => return false,
        Cell::Decimal("NaN" | "Infinity" | "-Infinity") => return false,
        Cell::Float64(_) | Cell::Decimal(_) => json::write_cell(out, cell),
        Cell::Json(text) => {
            return write_raw(out, text, |first| {
                first == b'-' || first.is_ascii_digit() || first == b'n'
            });
        }
        _ => return false,
    }
    true
}

/// False when it is no text.
fn write_text(out: &mut Vec<u8>, cell: &Cell<'_>) -> bool {
    match cell {
        Cell::Null
        | Cell::Text(_)
        | Cell::Date(_)
        | Cell::Time(_)
        | Cell::Timestamp(_)
        | Cell::LocalTimestamp(_) => json::write_cell(out, cell),
        Cell::Boolean(value) => {
            out.extend_from_slice(if *value { b"\"true\"" } else { b"\"false\"" })
        }
        Cell::Json(text) => return write_raw(out, text, |first| first == b'"' || first == b'n'),
        _ => return false,
    }
    true
}

/// A JSON value as the seller wrote it, digit for digit, when it begins as expected (`n` of null).
fn write_raw(out: &mut Vec<u8>, text: &str, expected: impl Fn(u8) -> bool) -> bool {
    let Ok(raw) = serde_json::from_str::<&RawValue>(text) else {
        return false;
    };
    let raw = raw.get().trim().as_bytes();
    let fits = raw.first().is_some_and(|first| expected(*first));
    if fits {
        out.extend_from_slice(raw);
    }
    fits
}

fn bad(message: impl Into<String>) -> Cause {
    Cause::bad_answer(message)
}

fn no_row() -> Cause {
    let message = "the calculation returned no row where exactly one is expected: (SELECT …), or an aggregate, has a value where there is none";
    Fault::new(Blame::Source, FaultKind::BadAnswer, message)
        .code(NO_ROW)
        .into()
}

#[cfg(test)]
#[path = "release_tests.rs"]
mod tests;
