//! The release policy: what of a source's answer may leave, and in which shape.
//!
//! One calculation releases one insight: exactly one row with one value. A chart releases the
//! columns that it draws, a prediction the forecast and not its history. Whatever else a connector
//! or a seller's API returned stays here. Charts are built by the host; nothing that a seller wrote
//! is ever passed on as markup or code.

use serde_json::value::RawValue;
use souk_domain::time::{DAY_MICROS, Timestamp};
use souk_sandbox::{Blame, Cell, ColumnKind, Fault, FaultKind, Limits, Output, json};

use crate::definition::{DEFAULT_HORIZON, DEFAULT_LEVEL, Prediction, Privacy, Visualization};
use crate::failure::Cause;
use crate::forecast::{self, Frequency, HISTORY_MAX};

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
/// Names in all marks: as many as a chart may have, with names of a thousand letters.
const CHART_NAMES_BYTES_MAX: usize = 16 << 20;

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
    /// A column with the age of the data: reported beside the result, not in it.
    pub freshness: Option<String>,
    pub privacy: Option<Privacy>,
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

#[derive(Debug)]
pub struct Forecast {
    pub model: &'static str,
    pub level: f64,
    pub points: Vec<Point>,
}

/// The bounds of an interval, and what is expected.
#[derive(Debug)]
pub struct Point {
    /// A date where the series has dates, without a zone where it has none, else an instant.
    pub at: String,
    pub value: f64,
    pub lower: f64,
    pub upper: f64,
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
                names_bytes(output.rows, names.sum()) > INLINE_NAMES_BYTES_MAX
            }
            ResultKind::Number | ResultKind::String => false,
        };
        has_long_names || output.bytes > INLINE_BYTES_MAX
    }

    /// Computes; see [`Policy::is_heavy`].
    pub fn release(&self, output: &Output) -> Result<Released, Cause> {
        let freshness = self.freshness_of(output);
        let rows = self.rows_that_may_leave(output)?;
        let mut json = Vec::with_capacity(64);
        let insight = match &self.kind {
            ResultKind::Number | ResultKind::String => {
                self.write_value(&mut json, output)?;
                Insight::Value(json)
            }
            ResultKind::Chart(visualization) => {
                self.write_chart(&mut json, output, visualization, &rows)?;
                Insight::Chart(json)
            }
            ResultKind::Prediction(prediction) => {
                Insight::Forecast(self.forecast(output, prediction, &rows)?)
            }
        };
        Ok(Released {
            insight,
            freshness,
            rows: rows.len(),
        })
    }

    /// Columns that are neither about freshness nor about privacy.
    fn columns(&self, output: &Output) -> Vec<usize> {
        let hidden = |name: &str| {
            self.freshness.as_deref() == Some(name)
                || self
                    .privacy
                    .as_ref()
                    .is_some_and(|privacy| privacy.privacy_unit_column == name)
        };
        (0..output.columns.len())
            .filter(|index| !hidden(&output.columns[*index].name))
            .collect()
    }

    /// The newest value of the freshness column.
    fn freshness_of(&self, output: &Output) -> Option<i64> {
        let column = output.column(self.freshness.as_deref()?)?;
        let instants = output.cells(column).filter_map(|cell| match cell {
            // Without a zone it is taken for UTC.
            Cell::Timestamp(micros) | Cell::LocalTimestamp(micros) => Some(micros),
            Cell::Date(days) => Some(i64::from(days) * DAY_MICROS),
            Cell::Text(text) => text
                .parse::<jiff::Timestamp>()
                .ok()
                .map(|at| at.as_microsecond()),
            _ => None,
        });
        instants.max()
    }

    pub(crate) fn rows_that_may_leave(&self, output: &Output) -> Result<Vec<usize>, Cause> {
        let Some(Privacy {
            min_group_size,
            privacy_unit_column,
        }) = &self.privacy
        else {
            return Ok((0..output.rows).collect());
        };
        let Some(column) = output.column(privacy_unit_column) else {
            return Err(missing(privacy_unit_column));
        };
        let large_enough = |cell: Cell<'_>| {
            cell.as_f64()
                .is_some_and(|units| units >= f64::from(*min_group_size))
        };
        let rows: Vec<usize> = output
            .cells(column)
            .enumerate()
            .filter(|(_, cell)| large_enough(*cell))
            .map(|(row, _)| row)
            .collect();
        if rows.is_empty() && output.rows > 0 {
            return Err(Cause::Private {
                min_group_size: *min_group_size,
            });
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
                let kind = match output.columns[column].kind {
                    ColumnKind::Float64 | ColumnKind::Decimal => "not finite",
                    kind => kind.as_str(),
                };
                Err(bad(format!(
                    "the result is {kind} where a {} is expected",
                    self.kind.word()
                )))
            }
        }
    }

    /// A complete Vega-Lite specification. A column's name is data to it, never a path into data.
    fn write_chart(
        &self,
        out: &mut Vec<u8>,
        output: &Output,
        wanted: &Visualization,
        rows: &[usize],
    ) -> Result<(), Cause> {
        let columns = self.columns(output);
        let find = |name: &Option<String>| match name {
            Some(name) => output.column(name).map(Some).ok_or_else(|| missing(name)),
            None => Ok(None),
        };
        let first = |wanted: &dyn Fn(ColumnKind) -> bool, except: Option<usize>| {
            columns
                .iter()
                .copied()
                .find(|index| Some(*index) != except && wanted(output.columns[*index].kind))
        };
        let x = find(&wanted.x)?
            .or_else(|| first(&|_| true, None))
            .ok_or_else(|| bad("the query returned no columns"))?;
        let y = find(&wanted.y)?
            .or_else(|| first(&|kind| kind.is_numeric(), Some(x)))
            .ok_or_else(|| bad("the query returned no column of numbers to draw"))?;
        let series = find(&wanted.series)?;
        let kind = |index: usize| output.columns[index].kind;
        let mark = match wanted.mark.as_deref() {
            Some(mark) => mark,
            None if kind(x).is_temporal() => "line",
            None => "bar",
        };

        let name = |index: usize| output.columns[index].name.as_str();
        let channel = |index: usize| {
            let mut encoding = serde_json::json!({"field": field_path(name(index)), "type": measure(kind(index)), "title": name(index)});
            // The source's own order is kept; Vega would sort names by the alphabet.
            if measure(kind(index)) == "nominal" {
                encoding["sort"] = serde_json::Value::Null;
            }
            encoding
        };
        let mut encoding = serde_json::Map::new();
        // A pie has no axes.
        let (horizontal, vertical) = if mark == "arc" {
            ("color", "theta")
        } else {
            ("x", "y")
        };
        encoding.insert(horizontal.into(), channel(x));
        encoding.insert(vertical.into(), channel(y));
        let mut drawn = vec![x, y];
        if let Some(series) = series {
            let place = if mark == "arc" { "row" } else { "color" };
            encoding.insert(place.into(), channel(series));
            drawn.push(series);
        }
        drawn.sort_unstable();
        drawn.dedup();
        let published: Vec<json::Field> = drawn
            .into_iter()
            .map(|index| json::Field::new(index, name(index)))
            .collect();
        let row_bytes: usize = published.iter().map(json::Field::key_bytes).sum();
        let names = names_bytes(rows.len(), row_bytes);
        if names > CHART_NAMES_BYTES_MAX {
            return Err(bad(format!(
                "the names of the columns that the chart draws take {names} bytes in {} rows, where {CHART_NAMES_BYTES_MAX} are allowed",
                rows.len()
            )));
        }
        let mut spec = serde_json::json!({
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            "mark": {"type": mark, "tooltip": true},
            "encoding": encoding,
        });
        if let Some(title) = &wanted.title {
            spec["title"] = title.as_str().into();
        }

        let text = spec.to_string();
        out.extend_from_slice(text.strip_suffix('}').unwrap_or(&text).as_bytes());
        out.extend_from_slice(b",\"data\":{\"values\":");
        write_rows(out, output, &published, rows);
        out.extend_from_slice(b"}}");
        Ok(())
    }

    fn forecast(
        &self,
        output: &Output,
        wanted: &Prediction,
        rows: &[usize],
    ) -> Result<Forecast, Cause> {
        let columns = self.columns(output);
        let choose = |name: &Option<String>, fits: fn(ColumnKind) -> bool, what: &str| match name {
            Some(name) => match output.column(name) {
                Some(index) if fits(output.columns[index].kind) => Ok(index),
                Some(index) => Err(bad(format!(
                    "the column \"{name}\" is {} where {what} is expected",
                    output.columns[index].kind.as_str()
                ))),
                None => Err(missing(name)),
            },
            None => columns
                .iter()
                .copied()
                .find(|index| fits(output.columns[*index].kind))
                .ok_or_else(|| bad(format!("the query returned no column of {what}"))),
        };
        let time = choose(&wanted.time_column, is_time, "dates or timestamps")?;
        let value = choose(&wanted.value_column, ColumnKind::is_numeric, "numbers")?;
        let is_date = output.columns[time].kind == ColumnKind::Date
            || rows.first().is_some_and(
                |row| matches!(output.cell(*row, time), Cell::Text(text) if text.len() == 10),
            );
        let mut series = series(output, time, value, rows)?;
        series.sort_by_key(|(at, _)| *at);
        series.dedup_by_key(|(at, _)| *at);

        let horizon = wanted.horizon.unwrap_or(DEFAULT_HORIZON);
        let level = wanted.level.unwrap_or(DEFAULT_LEVEL);
        let frequency = match &wanted.frequency {
            Some(word) => Frequency::of(word).ok_or_else(|| bad("the frequency is unknown"))?,
            None => Frequency::nearest(median_distance(&series)),
        };
        let history: Vec<f64> = series.iter().map(|(_, value)| *value).collect();
        let forecasted = forecast::forecast(&history, frequency, horizon, level)
            .map_err(|error| bad(error.to_string()))?;

        let last = series.last().map_or(0, |(at, _)| *at);
        let mut points = Vec::with_capacity(forecasted.points.len());
        for (index, point) in forecasted.points.iter().enumerate() {
            let at = frequency
                .step(last, index as u32 + 1)
                .ok_or_else(|| bad("the forecast leaves the calendar"))?;
            let mut at = Timestamp::from_micros(at).to_string();
            if is_date {
                at.truncate(10);
            } else if output.columns[time].kind == ColumnKind::LocalTimestamp {
                at.truncate(at.len() - 1);
            }
            points.push(Point {
                at,
                value: point.value,
                lower: point.lower,
                upper: point.upper,
            });
        }
        Ok(Forecast {
            model: forecasted.model,
            level,
            points,
        })
    }
}

/// What names take in all rows, which have them all.
fn names_bytes(rows: usize, row_bytes: usize) -> usize {
    rows.saturating_mul(row_bytes)
}

/// Times also come as text: SQLite has no type for them.
fn is_time(kind: ColumnKind) -> bool {
    kind.is_temporal() || kind == ColumnKind::Text
}

fn series(
    output: &Output,
    time: usize,
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
            Cell::Text(text) => {
                instant(text).ok_or_else(|| bad(no_time(&output.columns[time].name)))?
            }
            _ => return Err(bad("the series has a row without a time")),
        };
        // A point without a value says nothing about the value.
        if let Some(value) = value.as_f64() {
            series.push((at, value));
        }
    }
    Ok(series)
}

fn no_time(column: &str) -> String {
    format!(
        "the column \"{column}\" has a text that is no time: write times as 2026-11-23 or 2026-11-23T05:17:45Z, or name another time_column"
    )
}

/// ISO 8601 with or without a time and an offset; without one it is UTC. Also `2026-01` and `2026`.
fn instant(text: &str) -> Option<i64> {
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Some(at.as_microsecond());
    }
    let padded = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        _ => text.to_owned(),
    };
    let civil: jiff::civil::DateTime = padded.parse().ok()?;
    Some(
        civil
            .to_zoned(jiff::tz::TimeZone::UTC)
            .ok()?
            .timestamp()
            .as_microsecond(),
    )
}

fn median_distance(series: &[(i64, f64)]) -> i64 {
    let mut distances: Vec<i64> = series
        .windows(2)
        .map(|pair| pair[1].0 - pair[0].0)
        .collect();
    distances.sort_unstable();
    distances
        .get(distances.len() / 2)
        .copied()
        .unwrap_or(DAY_MICROS)
}

/// Consecutive rows are written in one go, which is all of them unless privacy took some out.
fn write_rows(out: &mut Vec<u8>, output: &Output, fields: &[json::Field], rows: &[usize]) {
    if rows.len() == output.rows {
        return json::write_rows(out, output, fields, 0..output.rows);
    }
    out.push(b'[');
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let mut one = Vec::new();
        json::write_rows(&mut one, output, fields, *row..*row + 1);
        out.extend_from_slice(&one[1..one.len() - 1]);
    }
    out.push(b']');
}

/// A column's name as Vega reads it: dots, brackets and quotes would lead into an object.
fn field_path(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    for char in name.chars() {
        if matches!(char, '\\' | '.' | '[' | ']' | '\'' | '"') {
            path.push('\\');
        }
        path.push(char);
    }
    path
}

fn measure(kind: ColumnKind) -> &'static str {
    match kind {
        kind if kind.is_temporal() => "temporal",
        kind if kind.is_numeric() => "quantitative",
        _ => "nominal",
    }
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
    let message = "the calculation returned no row where exactly one is expected";
    Fault::new(Blame::Source, FaultKind::BadAnswer, message)
        .code(NO_ROW)
        .into()
}

fn missing(column: &str) -> Cause {
    bad(format!("the query returned no column \"{column}\""))
}

#[cfg(test)]
#[path = "release_tests.rs"]
mod tests;
