//! Each type's values, exactly.

mod common;

use common::{Talk, column, number, page, reply, result};
use serde_json::{Value as Json, json};
use souk_sdk::ColumnType;

/// The columns of a result, and the first row's cells.
fn told(columns: &[Json], row: Json) -> Vec<(ColumnType, String)> {
    let answer = Talk::usual().rows_of([page(columns, json!([row]))]).ok();
    let columns = answer.columns.iter().enumerate();
    columns
        .map(|(place, column)| (column.kind, answer.cell(place, 0)))
        .collect()
}

fn one(kind: &str, value: &str) -> (ColumnType, String) {
    told(&[column("C", kind, json!({"scale": 9}))], json!([value])).remove(0)
}

#[test]
fn every_digit_of_numbers_is_kept() {
    let columns = [
        number("A", 18, 0),
        number("B", 38, 0),
        number("C", 38, 37),
        number("D", 10, 2),
    ];
    let row = json!([
        "-999999999999999999",
        "99999999999999999999999999999999999999",
        "-1.2345678901234567890123456789012345678",
        "1.50"
    ]);
    let told = told(&columns, row.clone());
    let kinds: Vec<ColumnType> = told.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(
        kinds,
        [
            ColumnType::Int64,
            ColumnType::Decimal,
            ColumnType::Decimal,
            ColumnType::Decimal
        ]
    );
    let texts: Vec<Json> = told.into_iter().map(|(_, text)| text.into()).collect();
    assert_eq!(Json::from(texts), row);
    for (text, wanted) in [
        ("0.1", "0.1"),
        ("1.7976931348623157e+308", "1.7976931348623157e308"),
        ("NaN", "NaN"),
        ("inf", "inf"),
        ("-inf", "-inf"),
    ] {
        assert_eq!(one("real", text), (ColumnType::Float64, wanted.into()));
    }
}

#[test]
fn other_values_are_what_they_are() {
    for (kind, text, column, wanted) in [
        (
            "text",
            "grüße \"x\" \\ 日本\n",
            ColumnType::Text,
            "grüße \"x\" \\ 日本\n",
        ),
        ("text", "", ColumnType::Text, ""),
        ("boolean", "true", ColumnType::Boolean, "true"),
        ("boolean", "0", ColumnType::Boolean, "false"),
        ("binary", "414200", ColumnType::Bytes, "AB\0"),
        ("date", "18262", ColumnType::Date, "18262"),
        ("date", "2020-01-01", ColumnType::Date, "18262"),
        ("time", "82919.500000000", ColumnType::Time, "82919500000"),
        (
            "timestamp_ntz",
            "1611871777.123456000",
            ColumnType::LocalTimestamp,
            "1611871777123456",
        ),
        (
            "timestamp_ltz",
            "2021-01-28T22:09:37.123456000+00:00",
            ColumnType::Timestamp,
            "1611871777123456",
        ),
        (
            "timestamp_tz",
            "1616173619.000000000 960",
            ColumnType::Timestamp,
            "1616173619000000",
        ),
        ("variant", "{\"a\":1.50}", ColumnType::Json, "{\"a\":1.50}"),
        ("variant", "<x/>", ColumnType::Json, "\"<x/>\""),
        ("array", "[1,undefined]", ColumnType::Json, "[1,null]"),
        ("object", "{\"f\":NaN}", ColumnType::Json, "{\"f\":\"NaN\"}"),
        (
            "vector",
            "[1.100000,2.200000]",
            ColumnType::Json,
            "[1.100000,2.200000]",
        ),
        (
            "geography",
            "POINT(1 2)",
            ColumnType::Json,
            "\"POINT(1 2)\"",
        ),
        ("of_tomorrow", "x", ColumnType::Text, "x"),
    ] {
        assert_eq!(one(kind, text), (column, wanted.into()), "{kind} {text}");
    }
    // As Snowflake says it.
    let place = column("C", "object", json!({"extTypeName": "GEOGRAPHY"}));
    let told = told(&[place], json!(["POINT(1 2)"]));
    assert_eq!(told, [(ColumnType::Json, "\"POINT(1 2)\"".to_owned())]);
}

/// NULL in every type; a result without rows has its columns; two hundred of them are no matter.
#[test]
fn nothing_is_nothing() {
    let kinds = [
        "fixed",
        "real",
        "text",
        "boolean",
        "binary",
        "date",
        "time",
        "timestamp_ntz",
        "timestamp_ltz",
        "timestamp_tz",
        "variant",
        "object",
        "array",
        "vector",
        "geography",
    ];
    let columns: Vec<Json> = kinds
        .iter()
        .map(|kind| column(kind, kind, json!({})))
        .collect();
    let nulls = told(&columns, vec![Json::Null; kinds.len()].into());
    assert!(nulls.iter().all(|(_, text)| text == "NULL"), "{nulls:?}");

    let empty = Talk::usual().rows_of([page(&columns, json!([]))]).ok();
    assert_eq!((empty.rows, empty.columns.len()), (0, kinds.len()));
    // Without a word of its parts, too.
    let mut none = result(&columns, json!([]), &[]);
    none["resultSetMetaData"]["partitionInfo"].take();
    none["resultSetMetaData"]
        .as_object_mut()
        .unwrap()
        .remove("partitionInfo");
    assert_eq!(Talk::usual().rows_of([reply(200, none)]).ok().rows, 0);

    let wide: Vec<Json> = (0..200).map(|n| number(&format!("C{n}"), 9, 0)).collect();
    let row: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let told = told(&wide, row.into());
    assert!(
        told.iter()
            .enumerate()
            .all(|(n, (_, text))| *text == n.to_string())
    );
}
