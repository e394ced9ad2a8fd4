//! A result as columns in Arrow's physical layout, as they crossed the boundary. Everything in an
//! `Output` has been checked (`validate`), so reading it cannot fail. Knows nothing of JSON.

use std::sync::Arc;

use wasmtime::component::{ComponentType, Lift, Lower};

use crate::memory::HeldMemory;

/// Of times of day the last is 24:00:00, which ISO 8601 and PostgreSQL have.
pub(crate) const DAY_MICROS: i64 = 86_400_000_000;

/// How the values of a column are laid out and what they mean.
#[derive(ComponentType, Lift, Lower, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[component(enum)]
#[repr(u8)]
pub enum ColumnKind {
    #[component(name = "boolean")]
    Boolean,
    #[component(name = "int64")]
    Int64,
    #[component(name = "float64")]
    Float64,
    /// An exact number as text.
    #[component(name = "decimal")]
    Decimal,
    #[component(name = "text")]
    Text,
    #[component(name = "bytes")]
    Bytes,
    #[component(name = "date")]
    Date,
    #[component(name = "time")]
    Time,
    #[component(name = "timestamp")]
    Timestamp,
    #[component(name = "local-timestamp")]
    LocalTimestamp,
    #[component(name = "json")]
    Json,
}

impl ColumnKind {
    /// The kind of that word.
    pub fn of(word: &str) -> Option<ColumnKind> {
        use ColumnKind::*;
        [
            Boolean,
            Int64,
            Float64,
            Decimal,
            Text,
            Bytes,
            Date,
            Time,
            Timestamp,
            LocalTimestamp,
            Json,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == word)
    }

    /// What it is called to users of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            ColumnKind::Boolean => "boolean",
            ColumnKind::Int64 => "int64",
            ColumnKind::Float64 => "float64",
            ColumnKind::Decimal => "decimal",
            ColumnKind::Text => "text",
            ColumnKind::Bytes => "bytes",
            ColumnKind::Date => "date",
            ColumnKind::Time => "time",
            ColumnKind::Timestamp => "timestamp",
            ColumnKind::LocalTimestamp => "local_timestamp",
            ColumnKind::Json => "json",
        }
    }

    /// Whether values of this kind can be read as a number.
    pub fn is_numeric(self) -> bool {
        matches!(
            self,
            ColumnKind::Int64 | ColumnKind::Float64 | ColumnKind::Decimal
        )
    }

    /// Whether values of this kind lie on a time axis.
    pub fn is_temporal(self) -> bool {
        matches!(
            self,
            ColumnKind::Date | ColumnKind::Timestamp | ColumnKind::LocalTimestamp
        )
    }
}

#[derive(ComponentType, Lift, Clone, Debug, PartialEq, Eq, Hash)]
#[component(record)]
pub struct Column {
    pub name: String,
    pub kind: ColumnKind,
    pub nullable: bool,
    /// The source's own name of the type: `int4`, `numeric(10,2)`.
    pub native: String,
}

#[derive(ComponentType, Lift, Clone, Debug)]
#[component(record)]
pub struct VarLen {
    pub offsets: Vec<i32>,
    pub bytes: Vec<u8>,
}

#[derive(ComponentType, Lift, Clone, Debug)]
#[component(variant)]
pub enum ColumnData {
    #[component(name = "bits")]
    Bits(Vec<u8>),
    #[component(name = "i32s")]
    I32s(Vec<i32>),
    #[component(name = "i64s")]
    I64s(Vec<i64>),
    #[component(name = "f64s")]
    F64s(Vec<f64>),
    #[component(name = "var-len")]
    VarLen(VarLen),
}

#[derive(ComponentType, Lift, Clone, Debug)]
#[component(record)]
pub struct Chunk {
    /// One bit per row, least significant first, 1 = not NULL. Absent: no row is NULL.
    pub validity: Option<Vec<u8>>,
    pub data: ColumnData,
}

#[derive(ComponentType, Lift, Clone, Debug)]
#[component(record)]
pub struct Batch {
    pub rows: u32,
    pub chunks: Vec<Chunk>,
}

/// The whole, checked result of one request.
#[derive(Clone, Debug, Default)]
pub struct Output {
    pub columns: Arc<[Column]>,
    pub batches: Vec<Batch>,
    pub rows: usize,
    /// Bytes of column data, as counted against the request's limit.
    pub bytes: usize,
    /// How many rows come before each batch.
    starts: Vec<usize>,
    /// On whose account it is held, if it is large.
    pub(crate) held: Option<Arc<HeldMemory>>,
}

/// One value, borrowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    Boolean(bool),
    Int64(i64),
    Float64(f64),
    Decimal(&'a str),
    Text(&'a str),
    Bytes(&'a [u8]),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since the epoch, UTC.
    Timestamp(i64),
    /// Microseconds since 1970-01-01T00:00:00 on the source's own clock.
    LocalTimestamp(i64),
    Json(&'a str),
}

impl Cell<'_> {
    pub fn is_null(&self) -> bool {
        matches!(self, Cell::Null)
    }

    /// The nearest float of a number, for charts and forecasts; `None` for what is no finite number.
    pub fn as_f64(&self) -> Option<f64> {
        let number = match self {
            Cell::Int64(value) => *value as f64,
            Cell::Float64(value) => *value,
            Cell::Decimal(text) => text.parse().ok()?,
            _ => return None,
        };
        number.is_finite().then_some(number)
    }

    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Cell::Int64(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Cell::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    /// The text of text, JSON and exact numbers.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Cell::Text(text) | Cell::Json(text) | Cell::Decimal(text) => Some(text),
            _ => None,
        }
    }
}

impl Output {
    pub fn new(columns: Arc<[Column]>, batches: Vec<Batch>, bytes: usize) -> Output {
        let mut rows = 0;
        let starts = batches
            .iter()
            .map(|batch| {
                let start = rows;
                rows += batch.rows as usize;
                start
            })
            .collect();
        Output {
            columns,
            batches,
            rows,
            bytes,
            starts,
            held: None,
        }
    }

    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The value at `row` (over all batches) and `column`; `Null` outside the result.
    pub fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let Some(kind) = self.columns.get(column).map(|column| column.kind) else {
            return Cell::Null;
        };
        let at = self.starts.partition_point(|start| *start <= row);
        let Some((batch, start)) = at
            .checked_sub(1)
            .and_then(|at| Some((self.batches.get(at)?, self.starts[at])))
        else {
            return Cell::Null;
        };
        if row - start >= batch.rows as usize {
            return Cell::Null;
        }
        batch
            .chunks
            .get(column)
            .map_or(Cell::Null, |chunk| chunk.cell(kind, row - start))
    }

    /// All values of one column, top to bottom.
    pub fn cells(&self, column: usize) -> impl Iterator<Item = Cell<'_>> {
        let kind = self.columns.get(column).map(|column| column.kind);
        self.batches.iter().flat_map(move |batch| {
            (0..batch.rows as usize).map(move |row| match (kind, batch.chunks.get(column)) {
                (Some(kind), Some(chunk)) => chunk.cell(kind, row),
                _ => Cell::Null,
            })
        })
    }

    /// Leaves the first `rows` rows out. What stays of the batch in which the first row is that stays is copied.
    pub fn skip(&mut self, rows: usize) {
        let mut left = rows.min(self.rows);
        let mut batches = std::mem::take(&mut self.batches);
        batches.retain_mut(|batch| {
            let gone = left.min(batch.rows as usize);
            left -= gone;
            if gone > 0 && gone < batch.rows as usize {
                for chunk in &mut batch.chunks {
                    chunk.skip(gone, batch.rows as usize);
                }
            }
            batch.rows -= gone as u32;
            batch.rows > 0
        });
        let held = self.held.take();
        *self = Output::new(self.columns.clone(), batches, self.bytes);
        self.held = held;
    }

    /// Keeps the first `rows` rows. Cheap: nothing is copied, whole batches are dropped.
    pub fn truncate(&mut self, rows: usize) {
        let mut first = 0;
        self.batches.retain_mut(|batch| {
            let keep = rows.saturating_sub(first).min(batch.rows as usize);
            first += keep;
            batch.rows = keep as u32;
            keep > 0
        });
        self.starts.truncate(self.batches.len());
        self.rows = self.rows.min(rows);
    }
}

impl Chunk {
    /// Leaves out the first of `all` values.
    fn skip(&mut self, gone: usize, all: usize) {
        let bits_behind = |bits: &[u8]| {
            let mut behind = vec![0; (all - gone).div_ceil(8)];
            for row in (gone..all).filter(|row| bit(bits, *row)) {
                let place = row - gone;
                behind[place >> 3] |= 1 << (place & 7);
            }
            behind
        };
        self.validity = self.validity.as_deref().map(bits_behind);
        match &mut self.data {
            ColumnData::Bits(bits) => *bits = bits_behind(bits),
            ColumnData::I32s(values) => drop(values.drain(..gone)),
            ColumnData::I64s(values) => drop(values.drain(..gone)),
            ColumnData::F64s(values) => drop(values.drain(..gone)),
            ColumnData::VarLen(values) => {
                let start = values.offsets[gone];
                values.bytes.drain(..start as usize);
                values.offsets.drain(..gone);
                values
                    .offsets
                    .iter_mut()
                    .for_each(|offset| *offset -= start);
            }
        }
    }

    pub fn is_null(&self, row: usize) -> bool {
        self.validity.as_ref().is_some_and(|bits| !bit(bits, row))
    }

    fn cell(&self, kind: ColumnKind, row: usize) -> Cell<'_> {
        if self.is_null(row) {
            return Cell::Null;
        }
        match (&self.data, kind) {
            (ColumnData::Bits(bits), _) => Cell::Boolean(bit(bits, row)),
            (ColumnData::I32s(days), _) => Cell::Date(days[row]),
            (ColumnData::I64s(values), ColumnKind::Time) => Cell::Time(values[row]),
            (ColumnData::I64s(values), ColumnKind::Timestamp) => Cell::Timestamp(values[row]),
            (ColumnData::I64s(values), ColumnKind::LocalTimestamp) => {
                Cell::LocalTimestamp(values[row])
            }
            (ColumnData::I64s(values), _) => Cell::Int64(values[row]),
            (ColumnData::F64s(values), _) => Cell::Float64(values[row]),
            (ColumnData::VarLen(values), ColumnKind::Bytes) => Cell::Bytes(values.at(row)),
            (ColumnData::VarLen(values), _) => {
                // Checked when the batch arrived; a second failure would be a bug of this crate.
                let text = std::str::from_utf8(values.at(row)).unwrap_or_default();
                match kind {
                    ColumnKind::Decimal => Cell::Decimal(text),
                    ColumnKind::Json => Cell::Json(text),
                    _ => Cell::Text(text),
                }
            }
        }
    }
}

impl VarLen {
    #[inline]
    pub fn at(&self, row: usize) -> &[u8] {
        &self.bytes[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

#[inline]
pub(crate) fn bit(bits: &[u8], row: usize) -> bool {
    bits[row >> 3] & (1 << (row & 7)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that are left out are gone from every layout, and those that stay are what they were, over batches too.
    #[test]
    fn rows_are_left_out() {
        let column = |name: &str, kind| Column {
            name: name.into(),
            kind,
            nullable: true,
            native: String::new(),
        };
        let chunk = |data| Chunk {
            validity: None,
            data,
        };
        let batch = |first: i64, rows: usize| {
            let numbers = || first..first + rows as i64;
            let bits = |holds: fn(i64) -> bool| {
                let mut bits = vec![0u8; rows.div_ceil(8)];
                for (place, _) in numbers().enumerate().filter(|(_, number)| holds(*number)) {
                    bits[place >> 3] |= 1 << (place & 7);
                }
                bits
            };
            let (mut offsets, mut bytes) = (vec![0], Vec::new());
            for number in numbers() {
                bytes.extend_from_slice(number.to_string().as_bytes());
                offsets.push(bytes.len() as i32);
            }
            Batch {
                rows: rows as u32,
                chunks: vec![
                    chunk(ColumnData::Bits(bits(|number| number % 3 == 0))),
                    Chunk {
                        validity: Some(bits(|number| number % 5 != 0)),
                        data: ColumnData::I64s(numbers().collect()),
                    },
                    chunk(ColumnData::VarLen(VarLen { offsets, bytes })),
                    chunk(ColumnData::I32s(
                        numbers().map(|number| number as i32).collect(),
                    )),
                    chunk(ColumnData::F64s(
                        numbers().map(|number| number as f64).collect(),
                    )),
                ],
            }
        };
        let columns: Arc<[Column]> = vec![
            column("b", ColumnKind::Boolean),
            column("n", ColumnKind::Int64),
            column("t", ColumnKind::Text),
            column("d", ColumnKind::Date),
            column("f", ColumnKind::Float64),
        ]
        .into();
        let whole = Output::new(columns, vec![batch(0, 11), batch(11, 20)], 0);
        for gone in [0, 1, 8, 10, 11, 12, 19, 30, 31, 100] {
            let mut rest = whole.clone();
            rest.skip(gone);
            assert_eq!(rest.rows, 31usize.saturating_sub(gone), "{gone}");
            for row in 0..rest.rows {
                for column in 0..5 {
                    assert_eq!(
                        rest.cell(row, column),
                        whole.cell(row + gone, column),
                        "{gone} {row} {column}"
                    );
                }
            }
        }
    }
}
