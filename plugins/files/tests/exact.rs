//! Values to their last digit: the least and the greatest of each type, and NULL, in each format that has it; and what has no rows, or many columns.

mod common;

use common::{Answer, array, arrow, ask, batch, file, parquet};
use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::{ArrowPrimitiveType, Float16Type, Int8Type, i256};
use datafusion::parquet::data_type::{Int96, Int96Type};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;
use souk_sdk::ColumnType::{
    self, Boolean, Bytes, Date, Decimal, Float64, Int64, Json, LocalTimestamp, Text, Time,
    Timestamp,
};
use std::sync::Arc;

type F16 = <Float16Type as ArrowPrimitiveType>::Native;

/// 0001-01-01 and 9999-12-31 in days, and the first and the last microsecond of these years.
const DAYS: [i32; 2] = [-719_162, 2_932_896];
const MICROS: [i64; 2] = [-62_135_596_800_000_000, 253_402_300_799_999_999];

/// A column of three rows: the least value, the greatest, and NULL.
struct Case {
    name: &'static str,
    array: ArrayRef,
    kind: ColumnType,
    told: [String; 2],
}

fn case(name: &'static str, array: ArrayRef, kind: ColumnType, told: [impl ToString; 2]) -> Case {
    let told = told.map(|told| told.to_string());
    Case {
        name,
        array,
        kind,
        told,
    }
}

fn three<A: From<Vec<Option<T>>> + Array + 'static, T>([least, greatest]: [T; 2]) -> ArrayRef {
    array(A::from(vec![Some(least), Some(greatest), None]))
}

fn decimal(digits: u8, scale: i8, values: [i128; 2]) -> ArrayRef {
    let values = Decimal128Array::from_iter(values.map(Some).into_iter().chain([None]));
    array(values.with_precision_and_scale(digits, scale).unwrap())
}

/// What Parquet has, too.
fn of_both() -> Vec<Case> {
    let nines = |count| "9".repeat(count);
    let all = 10_i128.pow(38) - 1;
    let wide = [nines(76), "1".to_owned()].map(|text| i256::from_string(&text));
    let wide = Decimal256Array::from_iter(wide.into_iter().chain([None]));
    let wide = wide.with_precision_and_scale(76, 38).unwrap();
    let small = F16::from_bits(1);
    let in_zone = TimestampMicrosecondArray::from_iter(MICROS.map(Some).into_iter().chain([None]));
    let lists = [Some(vec![]), Some(vec![None, Some(1)]), None];
    let lists = ListArray::from_iter_primitive::<Int8Type, Vec<_>, _>(lists);
    vec![
        case(
            "b",
            three::<BooleanArray, _>([false, true]),
            Boolean,
            ["false", "true"],
        ),
        case(
            "i8",
            three::<Int8Array, _>([i8::MIN, i8::MAX]),
            Int64,
            [i8::MIN, i8::MAX],
        ),
        case(
            "i16",
            three::<Int16Array, _>([i16::MIN, i16::MAX]),
            Int64,
            [i16::MIN, i16::MAX],
        ),
        case(
            "i32",
            three::<Int32Array, _>([i32::MIN, i32::MAX]),
            Int64,
            [i32::MIN, i32::MAX],
        ),
        case(
            "i64",
            three::<Int64Array, _>([i64::MIN, i64::MAX]),
            Int64,
            [i64::MIN, i64::MAX],
        ),
        case(
            "u8",
            three::<UInt8Array, _>([0, u8::MAX]),
            Int64,
            [0, u8::MAX],
        ),
        case(
            "u16",
            three::<UInt16Array, _>([0, u16::MAX]),
            Int64,
            [0, u16::MAX],
        ),
        case(
            "u32",
            three::<UInt32Array, _>([0, u32::MAX]),
            Int64,
            [0, u32::MAX],
        ),
        case(
            "u64",
            three::<UInt64Array, _>([0, u64::MAX]),
            Decimal,
            [0, u64::MAX],
        ),
        case(
            "f16",
            three::<Float16Array, _>([F16::MIN, small]),
            Float64,
            [-65_504.0, f64::from(small)],
        ),
        case(
            "f32",
            three::<Float32Array, _>([f32::MIN, 16_777_216.0]),
            Float64,
            [f32::MIN.to_string(), "16777216".to_owned()],
        ),
        case(
            "f64",
            three::<Float64Array, _>([f64::MIN, f64::from_bits(1)]),
            Float64,
            [f64::MIN, f64::from_bits(1)],
        ),
        case(
            "none",
            three::<Float64Array, _>([f64::NEG_INFINITY, f64::NAN]),
            Float64,
            ["-inf", "NaN"],
        ),
        // A zero has no sign, so that it is one.
        case(
            "zero",
            three::<Float64Array, _>([-0.0, 0.0]),
            Float64,
            ["0", "0"],
        ),
        case("d1", decimal(1, 0, [-9, 9]), Decimal, ["-9", "9"]),
        case(
            "d9",
            decimal(9, 9, [-999_999_999, 1]),
            Decimal,
            ["-0.999999999", "0.000000001"],
        ),
        case(
            "d18",
            decimal(18, 3, [-999_999_999_999_999_999, 0]),
            Decimal,
            ["-999999999999999.999", "0.000"],
        ),
        case("d38", decimal(38, 0, [-all, all]), Decimal, [-all, all]),
        case(
            "d38s",
            decimal(38, 38, [-all, 1]),
            Decimal,
            [
                format!("-0.{}", nines(38)),
                format!("0.{}1", "0".repeat(37)),
            ],
        ),
        case(
            "d76",
            array(wide),
            Decimal,
            [
                format!("{}.{}", nines(38), nines(38)),
                format!("0.{}1", "0".repeat(37)),
            ],
        ),
        case(
            "text",
            three::<StringArray, _>(["", "\u{0}é\u{10ffff}"]),
            Text,
            ["", "\u{0}é\u{10ffff}"],
        ),
        case(
            "bin",
            three::<BinaryArray, _>([&b""[..], b"\x00\x7f"]),
            Bytes,
            ["", "\u{0}\u{7f}"],
        ),
        case("day", three::<Date32Array, _>(DAYS), Date, DAYS),
        case(
            "t_ms",
            three::<Time32MillisecondArray, _>([0, 86_399_999]),
            Time,
            [0, 86_399_999_000_i64],
        ),
        case(
            "t_us",
            three::<Time64MicrosecondArray, _>([0, 86_399_999_999]),
            Time,
            [0, 86_399_999_999_i64],
        ),
        case(
            "t_ns",
            three::<Time64NanosecondArray, _>([0, 86_399_999_999_000]),
            Time,
            [0, 86_399_999_999_i64],
        ),
        case(
            "ms",
            three::<TimestampMillisecondArray, _>(MICROS.map(|micros| micros.div_euclid(1_000))),
            LocalTimestamp,
            [MICROS[0], MICROS[1] - 999],
        ),
        case(
            "us",
            three::<TimestampMicrosecondArray, _>(MICROS),
            LocalTimestamp,
            MICROS,
        ),
        case(
            "ns",
            three::<TimestampNanosecondArray, _>([
                -9_223_372_036_854_775_000,
                9_223_372_036_854_775_000,
            ]),
            LocalTimestamp,
            [-9_223_372_036_854_775_i64, 9_223_372_036_854_775],
        ),
        case(
            "tz",
            array(in_zone.with_timezone("+05:30")),
            Timestamp,
            MICROS,
        ),
        case("list", array(lists), Json, ["[]", "[null,1]"]),
    ]
}

/// What Arrow has beyond that.
fn of_arrow() -> Vec<Case> {
    let numbers = Int64Array::from(vec![i64::MIN, i64::MAX]);
    let keys = Int8Array::from(vec![Some(0), Some(1), None]);
    let dictionary = DictionaryArray::<Int8Type>::try_new(keys, array(numbers)).unwrap();
    let of_nine = Decimal32Array::from(vec![Some(-999_999_999), Some(1), None]);
    let of_eighteen = Decimal64Array::from(vec![Some(-999_999_999_999_999_999), Some(1), None]);
    let day = 86_400_000;
    let seconds = MICROS.map(|micros| micros.div_euclid(1_000_000));
    let in_zone = TimestampSecondArray::from(vec![Some(seconds[0]), Some(seconds[1]), None]);
    let told = [MICROS[0], MICROS[1] - 999_999];
    let bytes = [&b""[..], b"\x00\x7f"];
    vec![
        case(
            "d32",
            array(of_nine.with_precision_and_scale(9, 9).unwrap()),
            Decimal,
            ["-0.999999999", "0.000000001"],
        ),
        case(
            "d64",
            array(of_eighteen.with_precision_and_scale(18, 0).unwrap()),
            Decimal,
            [-999_999_999_999_999_999_i64, 1],
        ),
        case(
            "hundreds",
            decimal(5, -2, [-12_345, 1]),
            Decimal,
            ["-1234500", "100"],
        ),
        case(
            "large",
            three::<LargeStringArray, _>(["", "l"]),
            Text,
            ["", "l"],
        ),
        case(
            "view",
            three::<StringViewArray, _>(["", "a view that is long enough"]),
            Text,
            ["", "a view that is long enough"],
        ),
        case(
            "large_bin",
            three::<LargeBinaryArray, _>(bytes),
            Bytes,
            ["", "\u{0}\u{7f}"],
        ),
        case(
            "view_bin",
            three::<BinaryViewArray, _>(bytes),
            Bytes,
            ["", "\u{0}\u{7f}"],
        ),
        case(
            "day_ms",
            three::<Date64Array, _>(DAYS.map(|days| i64::from(days) * day)),
            Date,
            DAYS,
        ),
        case(
            "t_s",
            three::<Time32SecondArray, _>([0, 86_399]),
            Time,
            [0, 86_399_000_000_i64],
        ),
        case(
            "s",
            three::<TimestampSecondArray, _>(seconds),
            LocalTimestamp,
            told,
        ),
        case(
            "s_tz",
            array(in_zone.with_timezone("Europe/Berlin")),
            Timestamp,
            told,
        ),
        case("dict", array(dictionary), Int64, [i64::MIN, i64::MAX]),
        case(
            "runs",
            array(
                RunArray::<datafusion::arrow::datatypes::Int32Type>::from_iter([
                    Some("r"),
                    Some("s"),
                    None,
                ]),
            ),
            Text,
            ["r", "s"],
        ),
    ]
}

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
