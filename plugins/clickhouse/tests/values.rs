//! Answers of the real engine (26.9, recorded from `recorded/statements.sql`), to the last digit.

mod common;

use common::{Talk, rows};
use souk_sdk::{ColumnType, ErrorClass};
use souk_tests::wire::Answer;

macro_rules! recorded {
    ($name:literal) => {
        Talk::usual().rows_of(rows(
            &include_bytes!(concat!("recorded/", $name, ".bin"))[..],
        ))
    };
}

fn first_row(answer: &Answer) -> Vec<String> {
    (0..answer.columns.len())
        .map(|column| answer.cell(column, 0))
        .collect()
}

fn kinds(answer: &Answer) -> Vec<ColumnType> {
    answer.columns.iter().map(|column| column.kind).collect()
}

#[test]
fn integers() {
    use ColumnType::{Decimal, Int64};
    let answer = recorded!("integers").ok();
    assert_eq!(
        first_row(&answer),
        [
            "-128",
            "255",
            "-32768",
            "65535",
            "-2147483648",
            "4294967295",
            "-9223372036854775808",
            "18446744073709551615",
            "-170141183460469231731687303715884105728",
            "340282366920938463463374607431768211455",
            "-57896044618658097711785492504343953926634992332820282019728792003956564819968",
            "115792089237316195423570985008687907853269984665640564039457584007913129639935",
        ]
    );
    assert_eq!(kinds(&answer), [vec![Int64; 7], vec![Decimal; 5]].concat());
}

#[test]
fn floats() {
    let answer = recorded!("floats").ok();
    assert_eq!(
        first_row(&answer),
        [
            "0.1",
            "0.1",
            "NaN",
            "-inf",
            "inf",
            "-0.0",
            "1.7976931348623157e308",
            "1.5"
        ]
    );
}

#[test]
fn decimals() {
    let answer = recorded!("decimals").ok();
    assert_eq!(
        first_row(&answer),
        [
            "-12.340",
            "0.000000001",
            "12345678901234567890.00100",
            "-0.00000000000000000000000000000000000000000000000000000000000000000001",
            "7",
        ]
    );
    assert_eq!(answer.columns[3].native, "Decimal(76, 68)");
}

#[test]
fn texts() {
    let answer = recorded!("texts").ok();
    assert_eq!(
        first_row(&answer),
        [
            "",
            "grüße \"quoted\" \\ 日本 😀",
            "ab",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "b'x",
            "z",
            "192.168.0.1",
            "2001:db8::1",
            "low",
            "true",
            "false",
            "3",
        ]
    );
}

/// Texts are looked at together, and each has to be one by itself.
#[test]
fn each_text_is_utf8() {
    let of = |values: &[&[u8]]| {
        let mut body = b"\x01\x01a\x06String".to_vec();
        for value in values {
            body.push(value.len() as u8);
            body.extend_from_slice(value);
        }
        Talk::usual().rows_of(rows(body))
    };
    let long = "x".repeat(100);
    let values = ["a", "grüße", "", long.as_str(), "日本"];
    let answer = of(&values.map(str::as_bytes)).ok();
    let cells = [0, 1, 2, 3, 4].map(|row| answer.cell(0, row));
    assert_eq!(cells, values);
    let last = [&long.as_bytes()[..99], b"\xff"].concat();
    let halves: [&[u8]; 2] = [b"a\xc3", b"\xa9b"];
    for broken in [&[&last[..]][..], &halves] {
        assert_eq!(of(broken).error().code, "broken_text");
    }
}

/// Days, then microseconds; what has more digits is text.
#[test]
fn days_and_moments() {
    let answer = recorded!("days").ok();
    assert_eq!(
        first_row(&answer),
        [
            "65535",
            "-25567",
            "1795165200000000",
            "1795161600000001",
            "-500000",
            "2026-11-20T08:00:00.123456789Z",
            "1795161600000000",
            "1795161600250000",
        ]
    );
}

#[test]
fn nulls() {
    let answer = recorded!("nulls").ok();
    assert_eq!(first_row(&answer), vec!["NULL"; 11]);
    assert!(answer.columns.iter().all(|column| column.nullable));
}

/// Whatever its type is, a NULL is one byte, and what stands behind it is read from its own place. (By hand, in the words of the format: of so many
/// types there is no recorded answer.)
#[test]
fn every_type_has_a_null() {
    use ColumnType::{Boolean, Date, Decimal, Float64, Int64, Json, Text, Timestamp};
    let types = [
        ("Bool", Boolean),
        ("Int8", Int64),
        ("UInt8", Int64),
        ("Int16", Int64),
        ("UInt16", Int64),
        ("Int32", Int64),
        ("UInt32", Int64),
        ("Int64", Int64),
        ("UInt64", Decimal),
        ("Int128", Decimal),
        ("UInt128", Decimal),
        ("Int256", Decimal),
        ("UInt256", Decimal),
        ("Float32", Float64),
        ("Float64", Float64),
        ("BFloat16", Float64),
        ("Decimal(9, 2)", Decimal),
        ("Decimal(18, 2)", Decimal),
        ("Decimal(38, 5)", Decimal),
        ("Decimal(76, 10)", Decimal),
        ("String", Text),
        ("FixedString(3)", Text),
        ("UUID", Text),
        ("Date", Date),
        ("Date32", Date),
        ("DateTime", Timestamp),
        ("DateTime('Asia/Tokyo')", Timestamp),
        ("DateTime64(6)", Timestamp),
        ("DateTime64(3, 'UTC')", Timestamp),
        ("DateTime64(9)", Text),
        ("Time", Text),
        ("Time64(6)", Text),
        ("Enum8('a' = 1)", Text),
        ("Enum16('z' = 300)", Text),
        ("IPv4", Text),
        ("IPv6", Text),
        ("IntervalDay", Int64),
        ("Nothing", Text),
        ("Tuple(UInt8, String)", Json),
    ];
    let sized = |out: &mut Vec<u8>, text: &str| {
        out.push(u8::try_from(text.len()).unwrap());
        out.extend_from_slice(text.as_bytes());
    };
    // In a dictionary, too.
    let mut names: Vec<String> = types
        .iter()
        .map(|(name, _)| format!("Nullable({name})"))
        .collect();
    names.push("LowCardinality(Nullable(String))".into());
    names.push("String".into());
    let mut body = vec![u8::try_from(names.len()).unwrap()];
    for number in 0..names.len() {
        sized(&mut body, &format!("c{number}"));
    }
    for name in &names {
        sized(&mut body, name);
    }
    for row in ["first", "second"] {
        body.resize(body.len() + names.len() - 1, 1);
        sized(&mut body, row);
    }
    let answer = Talk::usual().rows_of(rows(body)).ok();
    assert_eq!(answer.rows, 2);
    for (at, name) in names[..names.len() - 1].iter().enumerate() {
        let found = [answer.cell(at, 0), answer.cell(at, 1)];
        assert_eq!(found, ["NULL", "NULL"], "{name}");
        assert!(answer.columns[at].nullable, "{name}");
    }
    for (at, (name, kind)) in types.iter().enumerate() {
        assert_eq!(answer.columns[at].kind, *kind, "{name}");
    }
    let last = names.len() - 1;
    assert_eq!(
        [answer.cell(last, 0), answer.cell(last, 1)],
        ["first", "second"]
    );
    assert!(!answer.columns[last].nullable);
}

#[test]
fn nested_values_are_json() {
    let answer = recorded!("nested").ok();
    assert_eq!(
        first_row(&answer),
        [
            "[1,null,3]",
            "[]",
            "[[\"x\"],[]]",
            "[1,\"two\",null]",
            r#"{"n":1,"odd name":[["k\"",18446744073709551615]]}"#,
            r#"{"a":1.5,"b":"NaN"}"#,
            r#"{"7":["2024-02-29"]}"#,
            "5",
            "[1.5,2.0]",
            "[1.50]",
            "[\"2026-11-20T08:00:00.500000Z\"]",
            "[\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\"]",
            "[true,false]",
        ]
    );
    assert_eq!(kinds(&answer), [ColumnType::Json; 13]);
    for column in 0..13 {
        serde_json::from_str::<serde_json::Value>(&answer.cell(column, 0)).unwrap();
    }
    let answer = recorded!("json").ok();
    assert_eq!(answer.columns[0].kind, ColumnType::Json);
    let json: serde_json::Value = serde_json::from_str(&answer.cell(0, 0)).unwrap();
    assert_eq!(json["a"]["c"], "x");
}

#[test]
fn times_are_spans() {
    let answer = recorded!("times").ok();
    assert_eq!(
        first_row(&answer),
        ["10:20:30.123456789", "-00:00:05", "[\"00:00:01.5\"]"]
    );
}

/// Types without a value of their own are refused, with what to write instead.
#[test]
fn what_cannot_be_read_is_refused() {
    let error = recorded!("state").error();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::Source, "column_type")
    );
    assert!(error.message.contains("finalizeAggregation"), "{error:?}");
    let error = recorded!("dynamic").error();
    assert_eq!(
        (error.code.as_str(), error.detail.as_deref()),
        ("column_type", Some("Dynamic"))
    );
}

#[test]
fn many_rows_none_and_two_hundred_columns() {
    let answer = recorded!("rows").ok();
    assert_eq!(answer.rows, 100);
    for row in 0..100 {
        let number = row + 1;
        assert_eq!(answer.cell(0, row), number.to_string());
        assert_eq!(answer.cell(1, row), "xxxxx");
        assert_eq!(answer.cell(2, row) == "NULL", number % 3 == 0);
    }
    let answer = recorded!("empty").ok();
    assert_eq!((answer.rows, answer.columns.len()), (0, 2));
    let answer = recorded!("wide").ok();
    assert_eq!(answer.columns.len(), 200);
    assert_eq!(answer.cell(199, 0), "199");
}
