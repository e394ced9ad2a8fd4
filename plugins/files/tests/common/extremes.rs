//! A table of the greatest number of each type, and what statements on it answer, or are refused as.

use super::{array, arrow, ask, batch, file, parquet};
use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::i256;
use souk_connector_files::Session;
use souk_sdk::{ColumnType, ErrorClass};
use tempfile::TempDir;

/// The greatest number of 38 digits.
const NINES: i128 = 10_i128.pow(38) - 1;

/// Two rows: the greatest of each type, and one.
fn extremes() -> RecordBatch {
    let decimal = |digits, values: Vec<i128>| {
        let values = Decimal128Array::from(values);
        array(values.with_precision_and_scale(digits, 0).unwrap())
    };
    let wide = Decimal256Array::from(vec![i256::from_i128(NINES), i256::ONE]);
    batch(vec![
        ("n", array(Int64Array::from(vec![i64::MAX, 1]))),
        ("i", array(Int32Array::from(vec![i32::MAX, 1]))),
        ("s", array(Int8Array::from(vec![i8::MAX, 1]))),
        ("u", array(UInt64Array::from(vec![u64::MAX, 1]))),
        ("d", decimal(38, vec![NINES, 1])),
        ("small", decimal(5, vec![99_999, 1])),
        ("wide", array(wide.with_precision_and_scale(76, 0).unwrap())),
    ])
}

/// One on each format of the table.
pub fn sessions() -> [(TempDir, Session); 2] {
    let rows = extremes();
    [
        file("t.parquet", &parquet(&rows)),
        file("t.arrow", &arrow(&rows, None)),
    ]
}

pub fn is_refused(session: &mut Session, sql: &str) {
    is_refused_as(session, sql, "number_too_large");
}

pub fn is_refused_as(session: &mut Session, sql: &str, code: &str) {
    let error = ask(session, sql).err().unwrap_or_else(|| panic!("{sql}"));
    let told = (error.class, error.code.as_str());
    assert_eq!(told, (ErrorClass::Source, code), "{sql}: {error:?}");
}

pub fn is(session: &mut Session, sql: &str, kind: ColumnType, lines: &[&str]) {
    let answer = ask(session, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    assert_eq!(answer.lines(), lines, "{sql}");
    // A shape that was told before is not told again.
    if let Some(told) = answer.kinds().first() {
        assert_eq!(*told, kind, "{sql}");
    }
}
