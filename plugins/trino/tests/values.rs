//! What becomes of each type's values: nothing is rounded, and nothing is guessed.

mod common;

use common::{Talk, column, page};
use serde_json::{Value as Json, json};
use souk_sdk::ColumnType;

/// The one value of a column, and what the column is.
fn read(kind: &str, cell: Json) -> (ColumnType, String) {
    let answer = Talk::usual().rows_of([page(None, &[column("v", kind)], json!([[cell], [null]]))]);
    let answer = answer.ok();
    assert_eq!(answer.cell(0, 1), "NULL", "{kind}");
    assert_eq!(answer.columns[0].native, kind);
    (answer.columns[0].kind, answer.cell(0, 0))
}

fn refused(kind: &str, cell: Json) -> String {
    Talk::usual()
        .rows_of([page(Some(1), &[column("v", kind)], json!([[cell]]))])
        .error()
        .code
}

#[test]
fn every_type_is_exact() {
    use ColumnType::*;
    for (kind, cell, wanted) in [
        ("boolean", json!(true), (Boolean, "true")),
        ("tinyint", json!(-128), (Int64, "-128")),
        ("bigint", json!(i64::MIN), (Int64, "-9223372036854775808")),
        ("bigint", json!(i64::MAX), (Int64, "9223372036854775807")),
        ("real", json!(0.1), (Float64, "0.1")),
        ("double", json!(1e308), (Float64, "1e308")),
        ("double", json!(-0.0), (Float64, "-0.0")),
        ("double", json!("NaN"), (Float64, "NaN")),
        ("double", json!("-Infinity"), (Float64, "-inf")),
        (
            "decimal(38,0)",
            json!("99999999999999999999999999999999999999"),
            (Decimal, "99999999999999999999999999999999999999"),
        ),
        ("decimal(20,5)", json!("-0.00100"), (Decimal, "-0.00100")),
        ("varchar(3)", json!("ä\"\n"), (Text, "ä\"\n")),
        ("char(4)", json!("ab  "), (Text, "ab  ")),
        ("varbinary", json!("/wBh"), (Bytes, "\u{fffd}\0a")),
        (
            "json",
            json!("{\"a\":[1,null]}"),
            (Json, "{\"a\":[1,null]}"),
        ),
        ("date", json!("2024-02-29"), (Date, "19782")),
        ("date", json!("-0044-03-15"), (Date, "-735525")),
        ("date", json!("+12345-01-01"), (Date, "3789391")),
        ("time(0)", json!("23:59:59"), (Time, "86399000000")),
        ("time(6)", json!("00:00:00.000001"), (Time, "1")),
        (
            "time(9)",
            json!("00:00:00.000000001"),
            (Text, "00:00:00.000000001"),
        ),
        (
            "time(3) with time zone",
            json!("12:00:00.000+01:00"),
            (Text, "12:00:00.000+01:00"),
        ),
        (
            "timestamp(3)",
            json!("1970-01-01 00:00:00.500"),
            (LocalTimestamp, "500000"),
        ),
        (
            "timestamp(0)",
            json!("1969-12-31 23:59:59"),
            (LocalTimestamp, "-1000000"),
        ),
        (
            "timestamp(6)",
            json!("+99999-12-31 23:59:59.999999"),
            (LocalTimestamp, "3093527980799999999"),
        ),
        (
            "timestamp(12)",
            json!("1970-01-01 00:00:00.123456789012"),
            (Text, "1970-01-01 00:00:00.123456789012"),
        ),
        (
            "timestamp(6) with time zone",
            json!("1970-01-01 00:00:00.000001 UTC"),
            (Timestamp, "1"),
        ),
        (
            "timestamp(3) with time zone",
            json!("1970-01-01 01:00:00.000 +01:00"),
            (Timestamp, "0"),
        ),
        (
            "timestamp(0) with time zone",
            json!("1969-12-31 18:30:00 -05:30"),
            (Timestamp, "0"),
        ),
        (
            "timestamp(9) with time zone",
            json!("1970-01-01 00:00:00.000000001 UTC"),
            (Text, "1970-01-01 00:00:00.000000001 UTC"),
        ),
        (
            "interval day to second",
            json!("2 00:00:00.000"),
            (Text, "2 00:00:00.000"),
        ),
        (
            "uuid",
            json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
            (Text, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ),
        ("ipaddress", json!("::1"), (Text, "::1")),
        ("HyperLogLog", json!("AwIA"), (Text, "AwIA")),
        (
            "of_tomorrow(7)",
            json!({"a": [1.50]}),
            (Text, "{\"a\":[1.5]}"),
        ),
        ("array(bigint)", json!([1, null]), (Json, "[1,null]")),
        (
            "array(decimal(38,1))",
            json!(["12345678901234567890.0"]),
            (Json, "[12345678901234567890.0]"),
        ),
        (
            "array(double)",
            json!([0.1, "NaN", "Infinity"]),
            (Json, "[0.1,\"NaN\",\"Infinity\"]"),
        ),
        (
            "array(timestamp(6) with time zone)",
            json!(["1970-01-01 01:00:00.000000 +01:00"]),
            (Json, "[\"1970-01-01T00:00:00.000000Z\"]"),
        ),
        (
            "array(json)",
            json!(["{\"a\":1.0}"]),
            (Json, "[{\"a\":1.0}]"),
        ),
        (
            "row(a bigint, \"b c\" decimal(3,2))",
            json!([1, "1.50"]),
            (Json, "{\"a\":1,\"b c\":1.50}"),
        ),
        ("row(bigint, varchar)", json!([1, "x"]), (Json, "[1,\"x\"]")),
        ("row(a bigint, a bigint)", json!([1, 2]), (Json, "[1,2]")),
        (
            "row(a row(b array(date)))",
            json!([[["2024-02-29"]]]),
            (Json, "{\"a\":{\"b\":[\"2024-02-29\"]}}"),
        ),
    ] {
        assert_eq!(read(kind, cell), (wanted.0, wanted.1.to_owned()), "{kind}");
    }
    // Members in the order of the answer, which a JSON value of this test would not keep.
    let map = |members: &str| {
        let kind = r#"{"name":"v","type":"array(map(varchar,decimal(2,1)))"}"#;
        let body = format!(r#"{{"id":"q","columns":[{kind}],"data":[[[{{{members}}}]]]}}"#);
        Talk::usual().rows_of([common::raw(200, &[], body)])
    };
    let answer = map(r#""b":"1.0","a":null,"c":"2.0""#).ok();
    assert_eq!(answer.cell(0, 0), "[{\"b\":1.0,\"a\":null,\"c\":2.0}]");
    // Of two that are written the same most readers of JSON keep one.
    let error = map(r#""b":"1.0","a":null,"\u0062":"2.0""#).error();
    assert_eq!(error.code, "doubled_key");
}

/// A moment on the clock of a region is told by a text that may mean two: it is refused, with the way out.
#[test]
fn regions_are_refused() {
    let of = |cell: &str| refused("timestamp(3) with time zone", json!(cell));
    assert_eq!(
        of("2026-10-25 02:30:00.000 Europe/Berlin"),
        "zone_of_a_region"
    );
    assert_eq!(of("2026-10-25 02:30:00.000 GMT+2"), "zone_of_a_region");
    assert_eq!(of("2026-10-25 02:30:00.000 +1:00"), "malformed_answer");
    assert_eq!(of("2026-10-25 02:30:00.000"), "malformed_answer");
    assert_eq!(of("2026-10-25"), "malformed_answer");
    assert_eq!(refused("date", json!("+100000-01-01")), "year_out_of_range");
    // In UTC it is the year before.
    assert_eq!(of("-99999-01-01 00:00:00 +01:00"), "year_out_of_range");
}

/// A value that is none of its type is the source's failure.
#[test]
fn what_does_not_fit_its_type_is_refused() {
    for (kind, cell) in [
        ("boolean", json!("true")),
        ("boolean", json!(1)),
        ("bigint", json!("1")),
        ("bigint", json!(1.5)),
        ("bigint", json!(9223372036854775808_u64)),
        ("double", json!("x")),
        ("double", json!(true)),
        ("double", json!([])),
        ("decimal(3,1)", json!(1.5)),
        ("decimal(3,1)", json!("1e5")),
        ("decimal(3,1)", json!("")),
        ("decimal(3,1)", json!("-")),
        ("decimal(3,1)", json!("1.")),
        ("varchar", json!(7)),
        ("varchar", json!({})),
        ("varbinary", json!("=")),
        ("json", json!("{")),
        ("date", json!("2023-02-29")),
        ("date", json!("2023-2-1")),
        ("date", json!("2023-02")),
        ("date", json!("")),
        ("time(3)", json!("24:00:00")),
        ("time(3)", json!("1:00:00")),
        ("time(3)", json!("12:00:00.")),
        ("time(6)", json!("12:00:00.0000001")),
        ("timestamp(3)", json!("2024-01-01T00:00:00")),
        ("timestamp(3)", json!("2024-01-01 00:00:00 UTC")),
        ("array(bigint)", json!({})),
        ("array(bigint)", json!(["1"])),
        ("map(varchar,bigint)", json!([])),
        ("row(a bigint)", json!([])),
        ("row(a bigint)", json!([1, 2])),
    ] {
        assert_eq!(
            refused(kind, cell.clone()),
            "malformed_answer",
            "{kind} {cell}"
        );
    }
    let spooled = json!({"encoding": "json", "segments": []});
    let columns = [column("v", "bigint")];
    for rows in [json!([[]]), json!([[1, 2]]), json!([1]), spooled] {
        let error = Talk::usual().rows_of([page(None, &columns, rows)]).error();
        assert_eq!(error.code, "malformed_answer");
    }
}

/// Two hundred columns, and none at all of rows.
#[test]
fn results_are_wide_and_empty() {
    let columns: Vec<Json> = (0..200)
        .map(|at| column(&format!("c{at}"), "bigint"))
        .collect();
    let row: Vec<i32> = (0..200).collect();
    let answer = Talk::usual()
        .rows_of([page(None, &columns, json!([row]))])
        .ok();
    assert_eq!(
        (answer.columns.len(), answer.cell(199, 0).as_str()),
        (200, "199")
    );
    let answer = Talk::usual()
        .rows_of([page(None, &columns, json!([]))])
        .ok();
    assert_eq!((answer.columns.len(), answer.rows), (200, 0));
    // What has no columns is no answer to a query.
    let nothing = common::reply(common::results(None, json!({})));
    assert_eq!(
        Talk::usual().rows_of([nothing]).error().code,
        "malformed_answer"
    );
}
