//! A chart: a complete Vega-Lite specification with the columns that it draws, and no others.
//!
//! Refuses to know what may leave: it is told the rows that do, and the columns that it may choose among. Start reading at [`write()`].

use serde_json::Value;
use souk_sandbox::{Column, ColumnKind, Output, json};

use crate::definition::Visualization;
use crate::failure::Cause;

/// Names in all marks: as many as a chart may have, with names of a thousand letters.
const CHART_NAMES_BYTES_MAX: usize = 16 << 20;

/// A complete Vega-Lite specification of the columns that are wanted, else of the first of `columns` that fit. A column's name is data to it, never a path
/// into data.
pub(super) fn write(
    out: &mut Vec<u8>,
    output: &Output,
    columns: &[usize],
    wanted: &Visualization,
    rows: &[usize],
) -> Result<(), Cause> {
    let find = |name: &Option<String>| match name {
        Some(name) => output
            .column(name)
            .map(Some)
            .ok_or_else(|| Cause::no_column(name)),
        None => Ok(None),
    };
    let (x, y, series) = (find(&wanted.x)?, find(&wanted.y)?, find(&wanted.series)?);
    let fit = |x: usize| {
        let free = || {
            columns
                .iter()
                .copied()
                .filter(move |index| *index != x && Some(*index) != series)
        };
        let y = y
            .or_else(|| free().find(|index| output.columns[*index].kind.is_numeric()))
            .or_else(|| {
                series.filter(|index| *index != x && output.columns[*index].kind.is_numeric())
            })
            // Without a row a source may not say that it would be one of numbers.
            .or_else(|| free().find(|_| output.rows == 0));
        Some((x, y?))
    };
    let fitting = match x {
        Some(x) => fit(x),
        // What is told apart by colours is along the axis, too, where there is nothing else.
        None => columns
            .iter()
            .copied()
            .filter(|index| Some(*index) != y && Some(*index) != series)
            .chain(series)
            .find_map(fit),
    };
    let (x, y) = fitting.ok_or_else(|| {
        Cause::bad_answer("the query returned no column of numbers to draw along another one")
    })?;
    let kind = |index: usize| output.columns[index].kind;
    let mark = match wanted.mark.as_deref() {
        Some(mark) => mark,
        None if kind(x).is_temporal() => "line",
        None => "bar",
    };

    let name = |index: usize| output.columns[index].name.as_str();
    let channel = |index: usize| channel(&output.columns[index]);
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
        // Rows of pies have headings, and no scale that would say in which zone a time is.
        let (place, encoded) = match mark {
            "arc" if is_in_utc(kind(series)) => ("row", by_name(&output.columns[series])),
            "arc" => ("row", channel(series)),
            _ => ("color", channel(series)),
        };
        encoding.insert(place.into(), encoded);
        drawn.push(series);
    }
    drawn.sort_unstable();
    drawn.dedup();
    if let Some(shared) = shared_name(&drawn, name) {
        return Err(Cause::bad_answer_in(
            "two columns that the chart draws have the same name: call one of them otherwise (AS)",
            format!("it is \"{shared}\""),
        ));
    }
    let published: Vec<json::Field> = drawn
        .into_iter()
        .map(|index| json::Field::new(index, name(index)))
        .collect();
    let row_bytes: usize = published.iter().map(json::Field::key_bytes).sum();
    let names = names_bytes(rows.len(), row_bytes);
    if names > CHART_NAMES_BYTES_MAX {
        return Err(Cause::bad_answer(format!(
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

/// The name that two of the columns have: a mark says each of its values by the name, and would say one of them only.
fn shared_name<'a>(drawn: &[usize], name: impl Fn(usize) -> &'a str) -> Option<&'a str> {
    drawn.iter().enumerate().find_map(|(place, index)| {
        let shared = name(*index);
        let mut before = drawn[..place].iter();
        before
            .any(|before| name(*before) == shared)
            .then_some(shared)
    })
}

/// How the values of a column are told apart: along an axis, or by colours.
fn channel(column: &Column) -> Value {
    let measure = measure(column.kind);
    if measure == "nominal" {
        return by_name(column);
    }
    let mut encoding = serde_json::json!({"field": field_path(&column.name), "type": measure, "title": column.name});
    // A browser whose clock is behind would show 1 April as an evening in March, and say so at the axis.
    if is_in_utc(column.kind) {
        encoding["scale"] = serde_json::json!({"type": "utc"});
    }
    encoding
}

/// The same by the values as they are written, in the source's own order: Vega would sort them by the alphabet.
fn by_name(column: &Column) -> Value {
    serde_json::json!({"field": field_path(&column.name), "type": "nominal", "title": column.name, "sort": null})
}

/// What names take in all rows, which have them all.
pub(super) fn names_bytes(rows: usize, row_bytes: usize) -> usize {
    rows.saturating_mul(row_bytes)
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

/// Whether answers write it in UTC, which JavaScript takes a date by itself for, too. What has no zone is shown as it is, by whichever clock.
fn is_in_utc(kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Date | ColumnKind::Timestamp)
}

fn measure(kind: ColumnKind) -> &'static str {
    match kind {
        kind if kind.is_temporal() => "temporal",
        kind if kind.is_numeric() => "quantitative",
        _ => "nominal",
    }
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;
