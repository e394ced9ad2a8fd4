//! Values to their last digit: the least and the greatest of each type, and NULL, in each format that has it; and what has no rows, or many columns.

#[path = "exact/cases.rs"]
mod cases;
mod common;

use cases::{Case, decimal, of_arrow, of_both};
use common::{Answer, array, arrow, ask, batch, file, parquet};
use datafusion::arrow::array::*;
use datafusion::parquet::data_type::{Int96, Int96Type};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;
use souk_sdk::ColumnType::{
    self, Boolean, Date, Decimal, Float64, Int64, Json, LocalTimestamp, Text, Timestamp,
};
use std::sync::Arc;

/// 0001-01-01 and 9999-12-31 in days, and the first and the last microsecond of these years.
const DAYS: [i32; 2] = [-719_162, 2_932_896];
const MICROS: [i64; 2] = [-62_135_596_800_000_000, 253_402_300_799_999_999];

fn is_exact(name: &str, bytes: &[u8], cases: &[Case]) {
    let (_directory, mut session) = file(name, bytes);
    let answer = ask(&mut session, "SELECT * FROM t").unwrap();
    assert_eq!(answer.rows.len(), 3, "{name}");
    for (at, case) in cases.iter().enumerate() {
        let Case { kind, told, .. } = case;
        let [least, greatest] = told.clone();
        assert_eq!(answer.columns[at].kind, *kind, "{name}: {}", case.name);
        assert_eq!(
            column(&answer, at),
            [Some(least), Some(greatest), None],
            "{name}: {}",
            case.name
        );
    }
    // Each by itself, behind a filter.
    for case in cases {
        let sql = format!(
            "SELECT \"{0}\" FROM t WHERE \"{0}\" IS NOT NULL AND i64 < 0",
            case.name
        );
        let answer = ask(&mut session, &sql).unwrap();
        assert_eq!(answer.kinds(), [case.kind], "{name}: {sql}");
        assert_eq!(
            column(&answer, 0),
            [Some(case.told[0].clone())],
            "{name}: {sql}"
        );
    }
}

fn column(answer: &Answer, at: usize) -> Vec<Option<String>> {
    answer.rows.iter().map(|row| row[at].clone()).collect()
}

fn rows_of(cases: &[Case]) -> RecordBatch {
    let columns = cases.iter().map(|case| (case.name, case.array.clone()));
    batch(columns.collect())
}

#[test]
fn extremes_of_parquet_are_exact() {
    let cases = of_both();
    is_exact("t.parquet", &parquet(&rows_of(&cases)), &cases);
}

#[test]
fn extremes_of_arrow_are_exact() {
    let mut cases = of_both();
    cases.extend(of_arrow());
    is_exact("t.arrow", &arrow(&rows_of(&cases), None), &cases);
}

/// Numbers and times as they are written, whatever stands in the other lines; NULL, and a name that is not there.
#[test]
fn extremes_of_json_lines_are_exact() {
    let nines = "9".repeat(38);
    let small = format!("0.{}1", "0".repeat(36));
    let lines = [
        format!(
            r#"{{"i":-9223372036854775808,"u":18446744073709551615,"d":-{nines},"s":-{small},"f":-1.5e-300,"b":false,"day":"0001-01-01","at":"0001-01-01T00:00:00Z","local":"0001-01-01 00:00:00","t":"","j":[]}}"#
        ),
        format!(
            r#"{{"i":9223372036854775807,"u":0,"d":{nines},"s":{small},"f":2e300,"b":true,"day":"9999-12-31","at":"9999-12-31T23:59:59.999999+14:00","local":"9999-12-31T23:59:59.999999","t":"\u0000\ud83d\ude00\"\\\/","j":{{"a":[null,1.50,{{}}]}}}}"#
        ),
        r#"{"i":null,"u":null,"d":null,"s":null,"f":null,"b":null,"day":null,"at":null,"local":null,"t":null,"j":null}"#.to_owned(),
        r#"{"else":1}"#.to_owned(),
    ];
    let (_directory, mut session) = file("t.jsonl", lines.join("\n").as_bytes());
    let sql = "SELECT i, u, d, s, f, b, \"day\", \"at\", \"local\", t, j FROM t";
    let answer = ask(&mut session, sql).unwrap();
    assert_eq!(
        answer.kinds(),
        [
            Int64,
            Decimal,
            Decimal,
            Decimal,
            Float64,
            Boolean,
            Date,
            Timestamp,
            LocalTimestamp,
            Text,
            Json
        ]
    );
    let [first, last] = MICROS;
    let ahead = 14 * 3_600_000_000;
    let nulls = ["~"; 11].join("|");
    assert_eq!(
        answer.lines(),
        [
            format!(
                "{}|18446744073709551615|-{nines}|-{small}|{}|false|{}|{first}|{first}||[]",
                i64::MIN,
                -1.5e-300,
                DAYS[0]
            ),
            format!(
                "{}|0|{nines}|{small}|{}|true|{}|{}|{last}|\u{0}😀\"\\/|{{\"a\":[null,1.50,{{}}]}}",
                i64::MAX,
                2e300,
                DAYS[1],
                last - ahead
            ),
            nulls.clone(),
            nulls,
        ]
    );
    let sql = "SELECT u FROM t WHERE u = 18446744073709551615 AND d < -99999999999999999999999999999999999998";
    assert_eq!(
        ask(&mut session, sql).unwrap().lines(),
        ["18446744073709551615"]
    );
}

/// Spark's times of old have nanoseconds and any year: they are read to the microsecond.
#[test]
fn old_times_of_parquet_are_read_in_any_year() {
    // A day by its number in the Julian calendar, and nanoseconds of it.
    let time = |days: i32, nanos: u64| {
        let day = u32::try_from(days + 2_440_588).unwrap();
        Int96::from(vec![nanos as u32, (nanos >> 32) as u32, day])
    };
    let times = [
        time(DAYS[0], 0),
        time(-1, 86_399_999_999_000),
        time(0, 1_999),
        time(DAYS[1], 86_399_999_999_000),
    ];
    let schema = parse_message_type("message t { OPTIONAL INT96 at; REQUIRED INT64 n; }").unwrap();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut at = group.next_column().unwrap().unwrap();
    let written = at.typed::<Int96Type>();
    let levels = [1, 1, 1, 1, 0];
    written.write_batch(&times, Some(&levels), None).unwrap();
    at.close().unwrap();
    let mut n = group.next_column().unwrap().unwrap();
    let written = n.typed::<datafusion::parquet::data_type::Int64Type>();
    written.write_batch(&[1, 2, 3, 4, 5], None, None).unwrap();
    n.close().unwrap();
    group.close().unwrap();
    let bytes = writer.into_inner().unwrap();
    let (_directory, mut session) = file("t.parquet", &bytes);
    let answer = ask(&mut session, "SELECT at FROM t ORDER BY n").unwrap();
    assert_eq!(answer.kinds(), [LocalTimestamp]);
    let [first, last] = MICROS.map(|micros| micros.to_string());
    assert_eq!(
        answer.lines(),
        [first.as_str(), "-1", "1", last.as_str(), "~"]
    );
    let sql = "SELECT n FROM t WHERE at >= '9999-12-31 23:59:59.999999'::timestamp(6)";
    assert_eq!(ask(&mut session, sql).unwrap().lines(), ["4"]);
}

/// Parquet's intervals have months, which the reader leaves out: they are refused, and the other columns are read.
#[test]
fn intervals_of_parquet_are_refused() {
    let rows = batch(vec![
        ("n", array(Int64Array::from(vec![1]))),
        ("i", array(IntervalYearMonthArray::from(vec![14]))),
    ]);
    let (_directory, mut session) = file("t.parquet", &parquet(&rows));
    for sql in ["SELECT i FROM t", "SELECT * FROM t"] {
        let error = ask(&mut session, sql).err().unwrap();
        assert_eq!(error.code, "type_unknown", "{sql}: {error:?}");
        assert_eq!(error.detail.as_deref(), Some("i"), "{sql}");
    }
    for sql in ["SELECT n FROM t", "SELECT count(*) FROM t"] {
        assert_eq!(ask(&mut session, sql).unwrap().lines(), ["1"], "{sql}");
    }
    let (_directory, mut session) = file("t.arrow", &arrow(&rows, None));
    let answer = ask(&mut session, "SELECT i FROM t").unwrap();
    assert!(answer.lines()[0].contains('1'), "{:?}", answer.lines());
}

/// Files, and products, may have more digits than their type says: none is cut off.
#[test]
fn what_has_more_digits_than_its_type_keeps_them() {
    let rows = batch(vec![
        ("d", decimal(5, 2, [-12_345_678, 99_999])),
        ("h", decimal(5, -2, [0, 123_456_789])),
    ]);
    let (_directory, mut session) = file("t.arrow", &arrow(&rows, None));
    let answer = ask(&mut session, "SELECT d, h, make_array(d) FROM t").unwrap();
    assert_eq!(
        answer.lines(),
        [
            "-123456.78|0|[-123456.78]",
            "999.99|12345678900|[999.99]",
            "~|~|[null]"
        ]
    );
    let large = "CAST('10000000000000000000' AS decimal(38, 0))";
    let product = ask(&mut session, &format!("SELECT {large} * {large}")).unwrap();
    assert_eq!(product.lines(), [format!("1{}", "0".repeat(38))]);
}

/// A table without rows has its columns and their types.
#[test]
fn what_has_no_rows_has_its_types() {
    let cases = of_both();
    let none = rows_of(&cases).slice(0, 0);
    let kinds: Vec<ColumnType> = cases.iter().map(|case| case.kind).collect();
    for (name, bytes) in [
        ("t.parquet", parquet(&none)),
        ("t.arrow", arrow(&none, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        let answer = ask(&mut session, "SELECT * FROM t").unwrap();
        assert_eq!(answer.kinds(), kinds, "{name}");
        assert_eq!(answer.rows.len(), 0, "{name}");
        let counted = ask(&mut session, "SELECT count(*), count(i64), sum(i64) FROM t").unwrap();
        assert_eq!(counted.lines(), ["0|0|~"], "{name}");
    }
    for (name, bytes, lines) in [("t.csv", "a,b\n", "0"), ("t.jsonl", "{\"a\":null}\n", "1")] {
        let (_directory, mut session) = file(name, bytes.as_bytes());
        let counted = ask(&mut session, "SELECT count(*), count(a), max(a) FROM t").unwrap();
        assert_eq!(counted.lines(), [format!("{lines}|0|~")], "{name}");
        assert_eq!(counted.kinds()[2], Text, "{name}");
    }
}

/// The two hundredth column is as good as the first.
#[test]
fn two_hundred_columns_are_read_in_each_format() {
    const COLUMNS: i64 = 200;
    let names: Vec<String> = (0..COLUMNS).map(|at| format!("c{at}")).collect();
    let values = |row: i64| (0..COLUMNS).map(move |at| row * COLUMNS + at);
    let columns = (0..COLUMNS).map(|at| array(Int64Array::from(vec![at, COLUMNS + at])));
    let rows = batch(names.iter().map(String::as_str).zip(columns).collect());
    let joined = |values: Vec<String>, between: &str| values.join(between);
    let csv = |row: i64| joined(values(row).map(|value| value.to_string()).collect(), ",");
    let object = |row: i64| {
        let members = names.iter().zip(values(row));
        let members = members.map(|(name, value)| format!("\"{name}\":{value}"));
        format!("{{{}}}\n", joined(members.collect(), ","))
    };
    for (name, bytes) in [
        ("t.parquet", parquet(&rows)),
        ("t.arrow", arrow(&rows, None)),
        (
            "t.csv",
            format!("{}\n{}\n{}\n", names.join(","), csv(0), csv(1)).into_bytes(),
        ),
        ("t.jsonl", [object(0), object(1)].concat().into_bytes()),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        let answer = ask(&mut session, "SELECT * FROM t").unwrap();
        assert_eq!(answer.columns.len(), 200, "{name}");
        let lines = [0, 1].map(|row| csv(row).replace(',', "|"));
        assert_eq!(answer.lines(), lines, "{name}");
        let some = ask(&mut session, "SELECT c199, c0 FROM t WHERE c150 > 150").unwrap();
        assert_eq!(some.lines(), ["399|200"], "{name}");
    }
}
