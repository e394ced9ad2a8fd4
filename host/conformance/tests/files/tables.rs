//! Two tables in each format that has them. `stock` is the same in all: numbers, a text, days and times, NULLs. `goods` has what a format has
//! beyond that.

use std::sync::Arc;

use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    Float32Array, Float64Array, Int8Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray, Time32MillisecondArray, Time64MicrosecondArray, Time64NanosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, UInt32Array,
    UInt64Array,
};
use arrow_ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

const ROWS: i64 = 60;
/// Rows of a batch and of a row group: there are several.
const BATCH_ROWS: usize = 16;
/// Rows of a page of Parquet: a row group has several.
const PAGE_ROWS: usize = 5;
/// 2026-01-01 in days since 1970, and its beginning in microseconds.
const DAY: i32 = 20_454;
const MIDNIGHT: i64 = DAY as i64 * 86_400_000_000;

/// Of every type that a text has here, with NULLs where they may be.
pub fn stock() -> String {
    let line = |n: i64| {
        let price = match n % 5 {
            0 => String::new(),
            _ => format!("{}.{:02}", n, n % 100),
        };
        format!(
            "{n},sku {n},{price},2026-01-{:02},2026-01-01T{:02}:00:00Z,2026-01-01 00:{:02}:00,{}\n",
            n % 28 + 1,
            n % 24,
            n % 60,
            n % 2 == 0
        )
    };
    let lines: String = (1..=ROWS).map(line).collect();
    format!("id,sku,price,day,at,local,sold\n{lines}")
}

/// The same, an object a line.
pub fn stock_lines() -> String {
    let csv = stock();
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let object = |cells: Vec<&str>| {
        let members = names.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
        let members = members.map(|(name, cell)| match *name {
            "id" | "price" | "sold" => format!("\"{name}\":{cell}"),
            _ => format!("\"{name}\":\"{cell}\""),
        });
        format!("{{{}}}\n", members.collect::<Vec<_>>().join(","))
    };
    lines.map(object).collect()
}

/// The same in columns, each of which may hold NULL.
pub fn stock_columns() -> RecordBatch {
    let cents = (1..=ROWS).map(|n| (n % 5 > 0).then_some(i128::from(n * 100 + n % 100)));
    let cents: Decimal128Array = cents.collect();
    let days = (1..=60).map(|n| DAY + n % 28);
    let hours = (1..=ROWS).map(|n| MIDNIGHT + n % 24 * 3_600_000_000);
    let minutes = (1..=ROWS).map(|n| MIDNIGHT + n % 60 * 60_000_000);
    batch(vec![
        ("id", array(Int64Array::from_iter_values(1..=ROWS))),
        (
            "sku",
            array(StringArray::from_iter_values(
                (1..=ROWS).map(|n| format!("sku {n}")),
            )),
        ),
        (
            "price",
            array(cents.with_precision_and_scale(10, 2).unwrap()),
        ),
        ("day", array(Date32Array::from_iter_values(days))),
        (
            "at",
            array(TimestampMicrosecondArray::from_iter_values(hours).with_timezone("UTC")),
        ),
        (
            "local",
            array(TimestampMicrosecondArray::from_iter_values(minutes)),
        ),
        (
            "sold",
            array(
                (1..=ROWS)
                    .map(|n| Some(n % 2 == 0))
                    .collect::<BooleanArray>(),
            ),
        ),
    ])
}

/// Beyond what has 64 bits with a sign.
fn number(n: i64) -> u64 {
    u64::MAX - (ROWS - n).unsigned_abs()
}

fn weight(n: i64) -> Option<f64> {
    (n % 9 > 0).then_some(n as f64 / 8.0)
}

/// In units of the tenth digit behind the point, of 38 digits.
fn fee(n: i64) -> i128 {
    let fee = 12_345_678_901_234_567_890_123_456_789_012_345_000 + i128::from(n);
    if n % 2 == 0 { fee } else { -fee }
}

/// Signs that have a meaning in a pattern are among them.
fn code(n: i64) -> Option<&'static str> {
    [Some("a_1"), Some("a%2"), Some("b!3"), None][n as usize % 4]
}

/// Numbers of 20 and of 38 digits, powers of ten, lists and objects.
pub fn goods_lines() -> String {
    let line = |n: i64| {
        let weight = weight(n).map_or("null".to_owned(), |weight| format!("{weight:e}"));
        let code = code(n).map_or("null".to_owned(), |code| format!("\"{code}\""));
        let units = fee(n).unsigned_abs();
        let sign = if n % 2 == 0 { "" } else { "-" };
        let unit = 10_000_000_000;
        let millis = n * 1_001;
        format!(
            "{{\"number\":{},\"weight\":{weight},\"fee\":{sign}{}.{:010},\"seen\":\"2026-01-01 00:{:02}:{:02}.{:03}\",\"moved\":\"2026-01-01T{:02}:{:02}:00.000001+01:00\",\"code\":{code},\"tags\":[{n},null],\"about\":{{\"a\":\"x\\\"y\",\"b\":1.50}}}}\n",
            number(n),
            units / unit,
            units % unit,
            millis / 60_000,
            millis / 1_000 % 60,
            millis % 1_000,
            1 + n / 60,
            n % 60,
        )
    };
    (1..=ROWS).map(line).collect()
}

/// Types of Parquet and Arrow that texts do not have. The kit orders and filters by the first eight.
pub fn goods_columns() -> RecordBatch {
    let fees: Decimal128Array = (1..=ROWS).map(|n| Some(fee(n))).collect();
    let opens = (1..=ROWS).map(|n| (n % 7 > 0).then_some(n * 1_234_567_890));
    let closes = (1..=ROWS).map(|n| (n % 5 > 0).then_some(n as i32 * 1_234_567));
    let rings = (1..=ROWS).map(|n| (n % 3 > 0).then_some(n * 1_234_567_891_000));
    let seen = (1..=ROWS).map(|n| MIDNIGHT / 1_000 + n * 1_001);
    let moved = (1..=ROWS).map(|n| (n % 4 > 0).then_some(MIDNIGHT * 1_000 + n * 60_000_001_000));
    let moved: TimestampNanosecondArray = moved.collect();
    let tags = (1..=ROWS).map(|n| (n % 6 > 0).then(|| vec![Some(n), None]));
    let about = StructArray::try_from(vec![
        ("a", array((1..=ROWS).map(code).collect::<StringArray>())),
        (
            "b",
            array(fees.clone().with_precision_and_scale(38, 10).unwrap()),
        ),
    ]);
    batch(vec![
        (
            "number",
            array(UInt64Array::from_iter_values((1..=ROWS).map(number))),
        ),
        ("fee", array(fees.with_precision_and_scale(38, 10).unwrap())),
        (
            "weight",
            array((1..=ROWS).map(weight).collect::<Float64Array>()),
        ),
        ("opens", array(opens.collect::<Time64MicrosecondArray>())),
        ("closes", array(closes.collect::<Time32MillisecondArray>())),
        ("rings", array(rings.collect::<Time64NanosecondArray>())),
        ("moved", array(moved.with_timezone("Europe/Berlin"))),
        (
            "code",
            array((1..=ROWS).map(code).collect::<DictionaryArray<Int32Type>>()),
        ),
        (
            "seen",
            array(TimestampMillisecondArray::from_iter_values(seen)),
        ),
        (
            "count",
            array(UInt32Array::from_iter_values(
                (1..=ROWS).map(|n| u32::MAX - n as u32),
            )),
        ),
        (
            "small",
            array(Int8Array::from_iter_values((1..=ROWS).map(|n| -n as i8))),
        ),
        (
            "ratio",
            array(Float32Array::from_iter_values(
                (1..=ROWS).map(|n| n as f32 / 10.0),
            )),
        ),
        (
            "photo",
            array(BinaryArray::from_iter_values(
                (1..=ROWS).map(|n| [0, n as u8, 0xff]),
            )),
        ),
        (
            "tags",
            array(ListArray::from_iter_primitive::<Int64Type, _, _>(tags)),
        ),
        ("about", array(about.unwrap())),
    ])
}

pub fn parquet(rows: &RecordBatch) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(BATCH_ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
    writer.write(rows).unwrap();
    writer.into_inner().unwrap()
}

pub fn arrow(rows: &RecordBatch) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &rows.schema()).unwrap();
    for start in (0..rows.num_rows()).step_by(BATCH_ROWS) {
        let length = BATCH_ROWS.min(rows.num_rows() - start);
        writer.write(&rows.slice(start, length)).unwrap();
    }
    writer.into_inner().unwrap()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let columns = columns.into_iter();
    let columns = columns.map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn array(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}
