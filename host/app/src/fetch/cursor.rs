//! Where a page ended, so that the next one begins there: sealed, because the columns of the order need not be published.
//!
//! It is a token of the master key's, which all hosts of a store have, for its endpoint. It leads on only with the filters and the order
//! that it was told for. A place is told by the values of the order's columns in the last row, so that rows which come or go before it
//! change nothing. Where the row behind it has the same values, the order does not tell them apart, and an offset among those that tie
//! is told beside; where a value cannot be compared exactly, the place is an offset alone.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use souk_domain::sql::Dialect;
use souk_sandbox::{Cell, Column, ColumnKind, Output, Value};
use souk_store::sealing::Owner;

use crate::App;
use crate::failure::Cause;
use crate::products::EndpointSnapshot;

/// Longer keys would make addresses that proxies refuse: such a place is an offset.
const KEY_BYTES_MAX: usize = 2_048;
/// What a client may send as a cursor: the longest that is told, with room.
const CURSOR_BYTES_MAX: usize = 8_192;
const VERSION: u8 = 1;
/// Values of keys that are compared on a worker, to count rows that tie: half a millisecond.
const COMPARED_MAX: usize = 5_000;

/// A place between two rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// Rows before it, as far as anybody counted.
    pub start: u64,
    /// The row before it by the columns of the order, and how many rows that tie with it come before the place.
    pub after: Option<(Vec<Value>, u32)>,
}

impl Position {
    pub fn of_start(start: u64) -> Position {
        Position { start, after: None }
    }

    /// Rows that the source has to leave out.
    pub fn offset(&self) -> u64 {
        match &self.after {
            None => self.start,
            Some((_, ties)) => u64::from(*ties),
        }
    }
}

/// What is sealed.
#[derive(Serialize, Deserialize)]
struct Sealed {
    v: u8,
    /// What it goes on with.
    w: String,
    s: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    k: Option<Vec<Key>>,
    #[serde(default)]
    t: u32,
}

/// A value of a key. Floats by their bits: JSON has no NaN.
#[derive(Serialize, Deserialize)]
enum Key {
    N,
    B(bool),
    I(i64),
    F(u64),
    M(String),
    T(String),
    X(Vec<u8>),
    D(i32),
    /// A time of day.
    C(i64),
    S(i64),
    /// A timestamp without a zone.
    L(i64),
}

/// The place behind the first `returned` rows, of more that there are. `keys`: where the order's columns are.
pub fn behind(
    dialect: Dialect,
    output: &Output,
    keys: &[usize],
    from: &Position,
    returned: usize,
) -> Position {
    let start = from.start + returned as u64;
    let key = |row| key(dialect, output, keys, row);
    let may_tie = |one: &[Value], other: &[Value]| {
        let columns = keys.iter().map(|place| output.columns.get(*place));
        let mut pairs = columns.zip(one.iter().zip(other));
        pairs.all(|(column, (one, other))| may_be_one(column, one, other))
    };
    let after = || {
        if keys.is_empty() || returned == 0 {
            return None;
        }
        let last = key(returned - 1)?;
        let next = key(returned)?;
        if next != last {
            return (!may_tie(&next, &last)).then_some((last, 0));
        }
        let mut ties = 0;
        for row in (0..returned).rev() {
            match key(row) {
                Some(same) if same == last => ties += 1,
                Some(other) if may_tie(&other, &last) => return None,
                _ => break,
            }
        }
        let before = match &from.after {
            Some((keys, before)) if ties == returned && *keys == last => *before,
            // Those that tie with all of them may have begun before the page did.
            None if ties == returned && from.start > 0 => return None,
            _ => 0,
        };
        Some((last, before.checked_add(u32::try_from(ties).ok()?)?))
    };
    Position {
        start,
        after: after(),
    }
}

/// Whether [`behind`] counts so many rows that tie that a worker would be held by it.
pub fn takes_long(dialect: Dialect, output: &Output, keys: &[usize], returned: usize) -> bool {
    let tie = || {
        let last = key(dialect, output, keys, returned - 1);
        last.is_some() && key(dialect, output, keys, returned) == last
    };
    returned.saturating_mul(keys.len()) > COMPARED_MAX && tie()
}

/// The first of these rows that has the same in these columns as the one behind it.
pub fn first_tie(
    dialect: Dialect,
    output: &Output,
    columns: &[usize],
    rows: usize,
) -> Option<usize> {
    let key = |row| key(dialect, output, columns, row);
    let mut before = key(0);
    (1..rows).find_map(|row| {
        let here = key(row);
        let ties = here.is_some() && here == before;
        before = here;
        ties.then_some(row - 1)
    })
}

/// Whether the source may take these for one, also where they are not: by their collation, or their type, texts may be that differ in the case of
/// letters or in blanks behind them, and a span of time has many texts.
fn may_be_one(column: Option<&Column>, one: &Value, other: &Value) -> bool {
    let (Value::Text(text), Value::Text(next)) = (one, other) else {
        return one == other;
    };
    fn folded(text: &str) -> impl Iterator<Item = char> {
        text.trim_end().chars().flat_map(char::to_lowercase)
    }
    let is_span = || column.is_some_and(|column| column.native.eq_ignore_ascii_case("interval"));
    folded(text).eq(folded(next)) || is_span()
}

/// Declared types of columns of a file that have bytes where they come as such.
const BYTES: [&str; 5] = ["blob", "binary", "byte", "uuid", "guid"];

/// Whether the source compares what is in this column otherwise than it comes. A file has texts for times, and of one time many; and it has texts that
/// are not UTF-8, in columns of any type and of none, which come as bytes, and bytes are greater than all texts.
fn is_otherwise(dialect: Dialect, column: &Column) -> bool {
    match (dialect, column.kind) {
        (Dialect::Sqlite, ColumnKind::Bytes) => {
            let native = column.native.to_ascii_lowercase();
            !BYTES.iter().any(|part| native.contains(part))
        }
        (Dialect::Sqlite, kind) => matches!(
            kind,
            ColumnKind::Time | ColumnKind::Timestamp | ColumnKind::LocalTimestamp
        ),
        _ => false,
    }
}

/// A number as it is whatever it was written with: `1.50` and `1.5` are one.
fn plain(decimal: &str) -> &str {
    let plain = match decimal.contains('.') && !decimal.contains(['e', 'E']) {
        true => decimal.trim_end_matches('0').trim_end_matches('.'),
        false => decimal,
    };
    match plain {
        "-0" => "0",
        plain => plain,
    }
}

/// The values of a row in these columns, if the source compares them as they are written here.
fn key(dialect: Dialect, output: &Output, keys: &[usize], row: usize) -> Option<Vec<Value>> {
    let mut bytes = 0;
    let values = keys.iter().map(|place| {
        let column = output.columns.get(*place)?;
        if is_otherwise(dialect, column) {
            return None;
        }
        let (kind, column) = (column.kind, place);
        let cell = output.cell(row, *column);
        bytes += match &cell {
            Cell::Decimal(text) | Cell::Text(text) => text.len(),
            Cell::Bytes(bytes) => 4 * bytes.len(),
            _ => 8,
        };
        // Before it is copied: it may be megabytes.
        if bytes > KEY_BYTES_MAX {
            return None;
        }
        Some(match cell {
            Cell::Null if kind != ColumnKind::Json => Value::Null(None),
            Cell::Boolean(value) => Value::Boolean(value),
            Cell::Int64(value) => Value::Int64(value),
            // Which does not equal itself, and is told apart from nothing by a comparison.
            Cell::Float64(value) if value.is_nan() => return None,
            Cell::Float64(value) => Value::Float64(value),
            Cell::Decimal(text) => Value::Decimal(plain(text).to_owned()),
            Cell::Text(text) => Value::Text(text.to_owned()),
            Cell::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            Cell::Date(days) => Value::Date(days),
            Cell::Time(micros) => Value::Time(micros),
            Cell::Timestamp(micros) => Value::Timestamp(micros),
            Cell::LocalTimestamp(micros) => Value::LocalTimestamp(micros),
            Cell::Null | Cell::Json(_) => return None,
        })
    });
    values.collect()
}

/// What a client is told of a place.
pub fn seal(
    app: &App,
    endpoint: &EndpointSnapshot,
    goes_on_with: &str,
    position: &Position,
) -> Result<String, Cause> {
    let failed = |error: String| Cause::Internal(format!("a cursor cannot be sealed: {error}"));
    let (keys, ties) = match &position.after {
        Some((keys, ties)) => (Some(keys.iter().map(Key::of).collect()), *ties),
        None => (None, 0),
    };
    let sealed = Sealed {
        v: VERSION,
        w: goes_on_with.to_owned(),
        s: position.start,
        k: keys,
        t: ties,
    };
    let plain = serde_json::to_vec(&sealed).map_err(|error| failed(error.to_string()))?;
    let subject = subject(endpoint);
    let sealed = app
        .sealer
        .seal_token(Owner::of(&endpoint.row.company_id, &subject), &plain);
    let sealed = sealed.map_err(|error| failed(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(sealed))
}

/// The place that a client was told, if it goes on with the same.
pub fn open(
    app: &App,
    endpoint: &EndpointSnapshot,
    goes_on_with: &str,
    cursor: &str,
) -> Result<Position, &'static str> {
    let sealed = unseal(app, endpoint, cursor)?;
    if sealed.w != goes_on_with {
        return Err("was told for other filters or another order: begin again without it");
    }
    Ok(sealed.position())
}

/// The place that a client was told, whatever it goes on with.
pub fn open_any(
    app: &App,
    endpoint: &EndpointSnapshot,
    cursor: &str,
) -> Result<Position, &'static str> {
    Ok(unseal(app, endpoint, cursor)?.position())
}

fn unseal(app: &App, endpoint: &EndpointSnapshot, cursor: &str) -> Result<Sealed, &'static str> {
    let read = || {
        if cursor.len() > CURSOR_BYTES_MAX {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let subject = subject(endpoint);
        let plain = app
            .sealer
            .unseal_token(Owner::of(&endpoint.row.company_id, &subject), &sealed)
            .ok()?;
        let sealed: Sealed = serde_json::from_slice(&plain).ok()?;
        (sealed.v == VERSION).then_some(sealed)
    };
    read().ok_or("is no cursor of this endpoint: follow next_url as it is")
}

fn subject(endpoint: &EndpointSnapshot) -> String {
    format!("cursor of {}", endpoint.row.id)
}

impl Sealed {
    fn position(self) -> Position {
        let keys = |keys: Vec<Key>| keys.into_iter().map(Key::value).collect();
        Position {
            start: self.s,
            after: self.k.map(|all| (keys(all), self.t)),
        }
    }
}

impl Key {
    fn of(value: &Value) -> Key {
        match value {
            Value::Null(_) => Key::N,
            Value::Boolean(value) => Key::B(*value),
            Value::Int64(value) => Key::I(*value),
            Value::Float64(value) => Key::F(value.to_bits()),
            Value::Decimal(text) => Key::M(text.clone()),
            Value::Text(text) | Value::Json(text) => Key::T(text.clone()),
            Value::Bytes(bytes) => Key::X(bytes.clone()),
            Value::Date(days) => Key::D(*days),
            Value::Time(micros) => Key::C(*micros),
            Value::Timestamp(micros) => Key::S(*micros),
            Value::LocalTimestamp(micros) => Key::L(*micros),
        }
    }

    fn value(self) -> Value {
        match self {
            Key::N => Value::Null(None),
            Key::B(value) => Value::Boolean(value),
            Key::I(value) => Value::Int64(value),
            Key::F(bits) => Value::Float64(f64::from_bits(bits)),
            Key::M(text) => Value::Decimal(text),
            Key::T(text) => Value::Text(text),
            Key::X(bytes) => Value::Bytes(bytes),
            Key::D(days) => Value::Date(days),
            Key::C(micros) => Value::Time(micros),
            Key::S(micros) => Value::Timestamp(micros),
            Key::L(micros) => Value::LocalTimestamp(micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use souk_sandbox::{Batch, Chunk, Column, ColumnData, VarLen};

    use super::*;

    fn output(kind: ColumnKind, data: ColumnData, rows: usize) -> Output {
        let column = Column {
            name: "c".to_owned(),
            kind,
            nullable: false,
            native: String::new(),
        };
        let chunk = Chunk {
            validity: None,
            data,
        };
        let batch = Batch {
            rows: rows as u32,
            chunks: vec![chunk],
        };
        Output::new(vec![column].into(), vec![batch], 0)
    }

    /// Rows that tie are counted; where they are very many, a worker does not.
    #[test]
    fn many_rows_that_tie_take_long() {
        let from = Position::of_start(0);
        let rows = COMPARED_MAX + 2;
        let tied = output(ColumnKind::Int64, ColumnData::I64s(vec![7; rows]), rows);
        assert!(takes_long(Dialect::Postgres, &tied, &[0], rows - 1));
        assert!(!takes_long(Dialect::Postgres, &tied, &[0], COMPARED_MAX));
        let place = behind(Dialect::Postgres, &tied, &[0], &from, rows - 1);
        let ties = u32::try_from(rows - 1).unwrap();
        assert_eq!(place.after, Some((vec![Value::Int64(7)], ties)));
        let counted = ColumnData::I64s((0..rows as i64).collect());
        let apart = output(ColumnKind::Int64, counted, rows);
        assert!(!takes_long(Dialect::Postgres, &apart, &[0], rows - 1));
    }

    /// A key that is too long for an address is none.
    #[test]
    fn long_keys_are_offsets() {
        let of = |length: usize| {
            let data = ColumnData::VarLen(VarLen {
                offsets: vec![0, length as i32, 2 * length as i32],
                bytes: vec![b'x'; 2 * length],
            });
            let output = output(ColumnKind::Text, data, 2);
            behind(Dialect::Postgres, &output, &[0], &Position::of_start(0), 1).after
        };
        assert!(of(KEY_BYTES_MAX).is_some());
        assert_eq!(of(KEY_BYTES_MAX + 1), None);
    }
}
