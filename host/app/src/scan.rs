//! Scanning a column of an asset's result: which values it has, as far as so many rows show it. For the asset's owner.
//!
//! The source is asked for the rows, at most [`ROWS_MAX`] of them, and everything is counted here, in the lanes that serve companies by turns.
//! Rows that an asset's privacy withholds are withheld from a scan too. Start reading at [`scan`].

use std::cmp::Ordering;
use std::time::Instant;

use serde_json::value::RawValue;
use souk_domain::fields::FieldError;
use souk_domain::parameters::Raw;
use souk_domain::sql::{self, Dialect, RowSource};
use souk_sandbox::{
    Blame, Cell, ColumnKind, Fault, FaultKind, Limits, Output, Query, Request, json,
};
use souk_store::Cached;

use crate::App;
use crate::binding::{self, declared};
use crate::connections::source::source;
use crate::failure::{Cause, Failure, abandoned};
use crate::products::{Action, AssetSnapshot};
use crate::release::Policy;
use crate::run;

pub const ROWS_DEFAULT: u32 = 1_000;
pub const ROWS_MAX: u32 = 5_000;
/// 5,000 texts of 1.6 kB: longer ones are not looked at by their distribution.
const BYTES_MAX: u64 = 8 << 20;
/// Names of columns, when it is asked which there are.
const NAMES_BYTES_MAX: u64 = 1 << 20;
const BINS: usize = 10;
const TOP_VALUES: usize = 10;
/// Longer texts are shown by their beginning.
const SHOWN_CHARS_MAX: usize = 200;

/// What a column has, in the rows that were looked at.
#[derive(Debug)]
pub struct Scan {
    pub kind: &'static str,
    /// The source's own name of the type.
    pub native: String,
    pub rows: usize,
    /// There are more rows than were looked at.
    pub truncated: bool,
    pub nulls: usize,
    /// Different values, null not among them.
    pub distinct: usize,
    /// As JSON; `None` without a value.
    pub min: Option<Box<RawValue>>,
    pub max: Option<Box<RawValue>>,
    /// The most frequent values, among equally frequent ones the smaller first.
    pub top: Vec<Top>,
    /// Of numbers and times, ascending; empty of what has no distance.
    pub histogram: Vec<Bin>,
}

#[derive(Debug)]
pub struct Top {
    pub value: Box<RawValue>,
    pub count: usize,
}

/// Values from one bound up to, not including, the other; the last bin includes both.
#[derive(Debug)]
pub struct Bin {
    pub from: Box<RawValue>,
    pub to: Box<RawValue>,
    pub count: usize,
}

/// Scans one column of what the asset's statement finds with these parameters.
pub async fn scan(
    app: &App,
    asset: &Cached<AssetSnapshot>,
    column: &str,
    rows: u32,
    given: &[(&str, Raw<'_>)],
) -> Result<Scan, Failure> {
    let started = Instant::now();
    let refuse = |cause: Cause| {
        let cause = run::late(&asset.sold(), started.elapsed(), cause);
        Failure::before(true, cause)
    };
    let plan = &asset.plan;
    let dialect = plan.dialect.filter(|dialect| *dialect != Dialect::Opaque);
    let (Action::Query { text, bindings }, Some(dialect)) = (&plan.action, dialect) else {
        let message =
            "belongs to an asset that is no SQL: only the result of SQL has columns to scan";
        let error = FieldError::new("column", "unsupported", message);
        return Err(refuse(Cause::Parameters(vec![error])));
    };
    let bound = binding::bind(&plan.parameters, plan.dialect, given)
        .map_err(|errors| refuse(Cause::Parameters(errors)))?;
    let bound: Vec<_> = bindings
        .iter()
        .filter_map(|index| Some(declared(plan.parameters.get(*index)?, bound.get(*index)?)))
        .collect();
    let deadline = started + asset.timeout;
    let row = &asset.row;
    let source = source(app, &row.company_id, &row.written.connection_id)
        .await
        .map_err(|error| refuse(error.into()))?;
    let ask = async |text: String, limits: Limits| {
        let request = Request::Query(Query {
            text: text.into(),
            parameters: bound.clone(),
            limits,
        });
        app.sandbox.run(source.shared(), request, deadline).await
    };

    let statement = RowSource::Statement(text);
    let names = ask(
        sql::columns(dialect, &statement),
        Limits::new(1, NAMES_BYTES_MAX),
    )
    .await
    .map_err(|fault| refuse(fault.into()))?;
    // An empty result may come without its columns.
    if !names.columns.is_empty() && names.column(column).is_none() {
        return Err(refuse(no_such(column, &names)));
    }
    let unit = plan.policy.privacy.as_ref();
    let unit = unit.map(|privacy| privacy.privacy_unit_column.as_str());
    let wanted: Vec<&str> = [column]
        .into_iter()
        .chain(unit.filter(|unit| *unit != column))
        .collect();
    let text = sql::sample(dialect, text, &wanted, rows + 1);
    let output = ask(text, Limits::new(rows + 1, BYTES_MAX)).await;
    let output = output.map_err(|fault| refuse(too_large(fault)))?;
    let policy = plan.policy.clone();
    let counted = app.sandbox.compute(row.company_id.as_str(), move || {
        count(output, rows as usize, &policy)
    });
    // It may have to wait for its turn.
    let late = |_| {
        let message = "the scan was not computed in time";
        refuse(Fault::new(Blame::Host, FaultKind::Timeout, message).into())
    };
    let counted = tokio::time::timeout_at(deadline.into(), counted)
        .await
        .map_err(late)?;
    counted.ok_or_else(|| refuse(abandoned()))?.map_err(refuse)
}

fn no_such(column: &str, names: &Output) -> Cause {
    let shown = names.columns.iter().take(50);
    let shown: Vec<&str> = shown.map(|column| column.name.as_str()).collect();
    let message = format!(
        "the result has no column {column:?}; it has {}",
        shown.join(", ")
    );
    Cause::Parameters(vec![FieldError::new("column", "unknown", message)])
}

fn too_large(fault: Fault) -> Cause {
    match fault.kind {
        FaultKind::LimitExceeded => Cause::Parameters(vec![FieldError::new(
            "limit",
            "too_large",
            format!("so many rows have more than {BYTES_MAX} bytes: scan fewer"),
        )]),
        _ => fault.into(),
    }
}

/// What the first column of the output has in its first `rows` rows.
fn count(mut output: Output, rows: usize, policy: &Policy) -> Result<Scan, Cause> {
    let truncated = output.rows > rows;
    output.truncate(rows);
    let kept = policy.rows_that_may_leave(&output)?;
    let (kind, native) = match output.columns.first() {
        Some(column) => (column.kind, column.native.clone()),
        None => (ColumnKind::Text, String::new()),
    };
    let mut values: Vec<Cell<'_>> = kept
        .iter()
        .map(|row| output.cell(*row, 0))
        .filter(|cell| !cell.is_null())
        .collect();
    let nulls = kept.len() - values.len();
    values.sort_by(order);
    let mut groups: Vec<(Cell<'_>, usize)> = Vec::new();
    for cell in &values {
        match groups.last_mut() {
            Some((last, count)) if order(last, cell).is_eq() => *count += 1,
            _ => groups.push((*cell, 1)),
        }
    }
    let distinct = groups.len();
    // Stable: equally frequent values stay in their order.
    groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    groups.truncate(TOP_VALUES);
    let top = groups.iter().map(|(cell, count)| Top {
        value: shown(cell),
        count: *count,
    });
    Ok(Scan {
        kind: kind.as_str(),
        native,
        rows: kept.len(),
        truncated,
        nulls,
        distinct,
        min: values.first().map(shown),
        max: values.last().map(shown),
        top: top.collect(),
        histogram: histogram(&values),
    })
}

/// Values of one column have one kind; where a connector mixes them, they are told apart by it.
fn order(a: &Cell<'_>, b: &Cell<'_>) -> Ordering {
    match (a, b) {
        (Cell::Boolean(a), Cell::Boolean(b)) => a.cmp(b),
        (Cell::Int64(a), Cell::Int64(b)) => a.cmp(b),
        (Cell::Float64(a), Cell::Float64(b)) => a.total_cmp(b),
        (Cell::Decimal(x), Cell::Decimal(y)) => {
            let of = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
            of(x).total_cmp(&of(y)).then_with(|| x.cmp(y))
        }
        (Cell::Text(a), Cell::Text(b)) | (Cell::Json(a), Cell::Json(b)) => a.cmp(b),
        (Cell::Bytes(a), Cell::Bytes(b)) => a.cmp(b),
        (Cell::Date(a), Cell::Date(b)) => a.cmp(b),
        (Cell::Time(a), Cell::Time(b))
        | (Cell::Timestamp(a), Cell::Timestamp(b))
        | (Cell::LocalTimestamp(a), Cell::LocalTimestamp(b)) => a.cmp(b),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn rank(cell: &Cell<'_>) -> u8 {
    match cell {
        Cell::Null => 0,
        Cell::Boolean(_) => 1,
        Cell::Int64(_) => 2,
        Cell::Float64(_) => 3,
        Cell::Decimal(_) => 4,
        Cell::Text(_) => 5,
        Cell::Bytes(_) => 6,
        Cell::Date(_) => 7,
        Cell::Time(_) => 8,
        Cell::Timestamp(_) => 9,
        Cell::LocalTimestamp(_) => 10,
        Cell::Json(_) => 11,
    }
}

/// A value as JSON, a long one by its beginning.
fn shown(cell: &Cell<'_>) -> Box<RawValue> {
    let mut out = Vec::new();
    let cut = cell
        .as_str()
        .and_then(|text| Some((text, text.char_indices().nth(SHOWN_CHARS_MAX)?.0)));
    match (cut, cell) {
        (Some((text, end)), Cell::Text(_) | Cell::Json(_)) => {
            json::write_string(&mut out, format!("{}…", &text[..end]).as_bytes());
        }
        (_, Cell::Bytes(bytes)) if bytes.len() > SHOWN_CHARS_MAX => {
            json::write_cell(&mut out, &Cell::Bytes(&bytes[..SHOWN_CHARS_MAX]));
        }
        _ => json::write_cell(&mut out, cell),
    }
    raw(out)
}

/// What a connector's JSON may be that is none is shown as null.
fn raw(out: Vec<u8>) -> Box<RawValue> {
    let text = String::from_utf8(out).unwrap_or_default();
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Bins of equal width over sorted values; one where there is one value.
fn histogram(values: &[Cell<'_>]) -> Vec<Bin> {
    let placed: Vec<f64> = values.iter().filter_map(place).collect();
    let (Some(first), Some(last)) = (placed.first(), placed.last()) else {
        return Vec::new();
    };
    let (first, width) = (*first, (last - first) / BINS as f64);
    if !width.is_finite() {
        return Vec::new();
    }
    let bins = if width > 0.0 { BINS } else { 1 };
    let mut counts = vec![0; bins];
    for value in &placed {
        let bin = ((value - first) / width) as usize;
        counts[bin.min(bins - 1)] += 1;
    }
    let bound = |number: usize| {
        let at = match number == bins {
            true => *last,
            false => first + width * number as f64,
        };
        let mut out = Vec::new();
        match values.first() {
            Some(Cell::Date(_) | Cell::Timestamp(_)) => {
                json::write_cell(&mut out, &Cell::Timestamp(at as i64));
            }
            Some(Cell::LocalTimestamp(_)) => {
                json::write_cell(&mut out, &Cell::LocalTimestamp(at as i64));
            }
            Some(Cell::Time(_)) => json::write_cell(&mut out, &Cell::Time(at as i64)),
            _ => json::write_cell(&mut out, &Cell::Float64(at)),
        }
        raw(out)
    };
    let bin = |(number, count): (usize, usize)| Bin {
        from: bound(number),
        to: bound(number + 1),
        count,
    };
    counts.into_iter().enumerate().map(bin).collect()
}

/// Where a value lies on its axis: numbers as they are, times in microseconds.
fn place(cell: &Cell<'_>) -> Option<f64> {
    const DAY: f64 = 86_400e6;
    match cell {
        Cell::Date(days) => Some(f64::from(*days) * DAY),
        Cell::Time(micros) | Cell::Timestamp(micros) | Cell::LocalTimestamp(micros) => {
            Some(*micros as f64)
        }
        other => other.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Privacy;
    use crate::release::ResultKind;
    use souk_sandbox::{Batch, Chunk, Column, ColumnData, VarLen};

    fn column(name: &str, kind: ColumnKind) -> Column {
        Column {
            name: name.into(),
            kind,
            nullable: true,
            native: "own".into(),
        }
    }

    fn output(columns: Vec<(Column, Chunk)>, rows: u32) -> Output {
        let (columns, chunks): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        Output::new(columns.into(), vec![Batch { rows, chunks }], 0)
    }

    fn numbers(values: &[i64]) -> Chunk {
        Chunk {
            validity: None,
            data: ColumnData::I64s(values.to_vec()),
        }
    }

    fn policy(privacy: Option<Privacy>) -> Policy {
        Policy {
            kind: ResultKind::Number,
            freshness: None,
            privacy,
        }
    }

    fn bins(scan: &Scan) -> Vec<(&str, &str, usize)> {
        let bins = scan.histogram.iter();
        bins.map(|bin| (bin.from.get(), bin.to.get(), bin.count))
            .collect()
    }

    /// Every figure is that of the rows that were looked at, counted one by one.
    #[test]
    fn figures_are_those_of_the_rows() {
        let values: Vec<i64> = (0..200).map(|n| n * 37 % 101).collect();
        // Every fifth is null.
        let validity = (0..25).map(|byte| {
            (0..8).fold(0_u8, |bits, bit| {
                bits | (u8::from((byte * 8 + bit) % 5 != 0) << bit)
            })
        });
        let chunk = Chunk {
            validity: Some(validity.collect()),
            data: ColumnData::I64s(values.clone()),
        };
        for limit in [1, 50, 199, 200, 300] {
            let given = output(vec![(column("n", ColumnKind::Int64), chunk.clone())], 200);
            let scan = count(given, limit, &policy(None)).unwrap();
            let looked_at = limit.min(200);
            let mut seen: Vec<i64> = (0..looked_at)
                .filter(|n| n % 5 != 0)
                .map(|n| values[n])
                .collect();
            seen.sort_unstable();
            assert_eq!((scan.rows, scan.truncated), (looked_at, limit < 200));
            assert_eq!(scan.nulls, looked_at - seen.len());
            let min = seen.first().map(ToString::to_string);
            let max = seen.last().map(ToString::to_string);
            assert_eq!(scan.min.as_ref().map(|min| min.get().to_owned()), min);
            assert_eq!(scan.max.as_ref().map(|max| max.get().to_owned()), max);
            let total: usize = scan.histogram.iter().map(|bin| bin.count).sum();
            assert_eq!(total, seen.len());
            for top in &scan.top {
                let value: i64 = top.value.get().parse().unwrap();
                let there = seen.iter().filter(|seen| **seen == value).count();
                assert_eq!(top.count, there);
            }
            seen.dedup();
            assert_eq!(scan.distinct, seen.len());
            assert_eq!(scan.top.len(), seen.len().min(10));
            assert!(
                scan.top
                    .is_sorted_by_key(|top| std::cmp::Reverse(top.count))
            );
        }
    }

    /// Bins have one width, hold each value once, and name their bounds as the column names values.
    #[test]
    fn histograms_have_bounds() {
        let of = |kind, data| {
            let chunk = Chunk {
                validity: None,
                data,
            };
            let rows = match &chunk.data {
                ColumnData::I32s(values) => values.len(),
                ColumnData::F64s(values) => values.len(),
                ColumnData::I64s(values) => values.len(),
                _ => 2,
            };
            let given = output(vec![(column("c", kind), chunk)], rows as u32);
            count(given, 100, &policy(None)).unwrap()
        };
        let scan = of(
            ColumnKind::Float64,
            ColumnData::F64s(vec![0.0, 10.0, 0.5, 9.5, 10.0]),
        );
        let found = bins(&scan);
        assert_eq!(found.len(), 10);
        assert_eq!((found[0].2, found[9].2), (2, 3));
        assert_eq!((found[0].0, found[9].1), ("0.0", "10.0"));
        let same = of(ColumnKind::Int64, ColumnData::I64s(vec![7, 7]));
        assert_eq!(bins(&same), [("7.0", "7.0", 2)]);
        let days = of(ColumnKind::Date, ColumnData::I32s(vec![0, 10]));
        assert_eq!(bins(&days)[9].1, "\"1970-01-11T00:00:00.000000Z\"");
        assert_eq!(days.min.unwrap().get(), "\"1970-01-01\"");
        // What lies too far apart to be measured, and what has no distance.
        let far = of(
            ColumnKind::Float64,
            ColumnData::F64s(vec![-1.7e308, 1.7e308]),
        );
        assert!(far.histogram.is_empty() && far.distinct == 2);
        let texts = VarLen {
            offsets: vec![0, 300, 301],
            bytes: [b"x".repeat(300), b"y".to_vec()].concat(),
        };
        let texts = of(ColumnKind::Text, ColumnData::VarLen(texts));
        assert!(texts.histogram.is_empty());
        assert_eq!(
            texts.min.unwrap().get(),
            format!("\"{}…\"", "x".repeat(200))
        );
        let none = of(ColumnKind::Int64, ColumnData::I64s(Vec::new()));
        assert!(none.min.is_none() && none.top.is_empty() && none.histogram.is_empty());
    }

    /// What privacy withholds from a result is withheld from a scan, and where nothing is left it says why.
    #[test]
    fn privacy_withholds_rows() {
        let given = |units: &[i64]| {
            output(
                vec![
                    (column("n", ColumnKind::Int64), numbers(&[1, 2, 3])),
                    (column("people", ColumnKind::Int64), numbers(units)),
                ],
                3,
            )
        };
        let privacy = policy(Some(Privacy {
            min_group_size: 10,
            privacy_unit_column: "people".into(),
        }));
        let scan = count(given(&[10, 9, 50]), 100, &privacy).unwrap();
        assert_eq!((scan.rows, scan.distinct), (2, 2));
        assert_eq!(scan.max.unwrap().get(), "3");
        let refused = count(given(&[1, 2, 3]), 100, &privacy);
        assert!(matches!(
            refused,
            Err(Cause::Private { min_group_size: 10 })
        ));
    }
}
