//! What DuckDB 1.5.5 sends of each of its types, and what it becomes.

mod common;

use common::{Talk, raw, recorded, reply};
use souk_sdk::{ColumnData, ColumnType, ErrorClass};

/// The one row of a recorded answer.
fn row(name: &str) -> Vec<String> {
    let answer = Talk::rows_of(reply(name)).ok();
    assert_eq!(answer.rows, 1, "{name}");
    (0..answer.columns.len())
        .map(|column| answer.cell(column, 0))
        .collect()
}

#[test]
fn numbers_are_exact() {
    assert_eq!(
        row("numbers"),
        [
            "-128",
            "-32768",
            "-2147483648",
            "-9223372036854775808",
            "255",
            "65535",
            "4294967295",
            "18446744073709551615",
            "-170141183460469231731687303715884105728",
            "340282366920938463463374607431768211455",
            "true",
            "0.1",
            "0.1",
            "NaN",
            "-inf",
        ]
    );
    assert_eq!(
        row("decimals"),
        [
            "-0.5",
            "12345.678",
            "-123456789012.345678",
            "99999999999999999999999999999999999999",
            "-0.00000000000000000000000000000000000001",
            "123456789012345678901234567890",
            "-255",
            "0",
        ]
    );
}

#[test]
fn times_are_exact() {
    assert_eq!(
        row("times"),
        [
            "19782",
            "-719528",
            "86400000000",
            "3723456789",
            "01:02:03+05:30",
            "1709168523456789",
            "-1000000",
            "1709168523456000",
            "2024-02-29 01:02:03.456789012",
            "1709164923000000",
            "1 year 2 months -3 days 04:05:06.7",
            "01:02:03.000000001",
        ]
    );
}

/// What was computed beforehand has lost the collation that its type has in the result. A chunk of another type is none of it still.
#[test]
fn a_collation_says_nothing_of_values() {
    assert_eq!(row("collated"), ["ax"]);
    let mut body = recorded("collated");
    let varchar = [0x65, 0, 1, 0x64, 0, 25, 0xff, 0xff, 0x66, 0];
    let at = body.windows(varchar.len()).position(|part| part == varchar);
    body[at.unwrap() + 5] = 26;
    let error = Talk::rows_of(raw(200, &[], body)).error();
    assert_eq!(error.code, "malformed_answer");
}

/// DuckDB's own text stands beside each.
#[test]
fn spans_are_written_as_duckdb_writes_them() {
    let answer = Talk::rows_of(reply("spans")).ok();
    assert_eq!(answer.rows, 7);
    for row in 0..7 {
        assert_eq!(answer.cell(1, row), answer.cell(0, row));
    }
}

#[test]
fn texts_and_bytes_come_whole() {
    assert_eq!(
        row("texts"),
        [
            "grüße, \"日本\"",
            "",
            "ab",
            "\0\u{fffd}",
            "101",
            "00000000111111111",
            "0f3c5a70-1b2d-4e6f-8a9b-c0d1e2f30415",
            "b",
            "{\"a\": [1, 2]}",
            "A",
        ]
    );
    assert_eq!(row("words255"), ["w254"]);
    assert_eq!(row("words256"), ["w255"]);
}

#[test]
fn nested_values_are_documents() {
    assert_eq!(
        row("nested"),
        [
            "[1,null,3]",
            "[[1],[],[2,3]]",
            r#"{"a":1,"b":null,"c":[{"d":"x"}]}"#,
            r#"{"k":1.50,"l":null}"#,
            r#"{"1":"x"}"#,
            "[1,2]",
            r#"{"k":1}"#,
            r#"["2024-02-29"]"#,
            r#"["qg=="]"#,
            "[0.1]",
            r#"[{"a":1}]"#,
            r#"["2024-02-29T00:02:03.000000Z"]"#,
            "[18446744073709551615]",
            r#"["1 day"]"#,
            "[true,false]",
            r#"{"b":[1]}"#,
            r#"["NaN"]"#,
        ]
    );
}

/// A document has each name once.
#[test]
fn what_has_no_names_is_a_list() {
    let answer = Talk::rows_of(reply("unnamed")).ok();
    assert_eq!(answer.columns[0].native, "STRUCT(INTEGER, VARCHAR)");
    assert_eq!(
        [0, 1, 2].map(|column| answer.cell(column, 0)),
        [r#"[1,"x"]"#, "[[1]]", "[1,2,3]"]
    );
}

#[test]
fn every_type_has_a_null() {
    let row = row("nulls");
    assert_eq!(row.len(), 18);
    assert!(row.iter().all(|cell| cell == "NULL"), "{row:?}");
}

#[test]
fn rows_keep_their_order() {
    let answer = Talk::rows_of(reply("filtered")).ok();
    assert_eq!(answer.rows, 9);
    let rows: Vec<Vec<String>> = (0..answer.chunks.len())
        .flat_map(|chunk| {
            let chunks = vec![answer.chunks[chunk].clone()];
            let one = souk_tests::wire::Answer {
                chunks,
                ..Default::default()
            };
            let ColumnData::I64s(numbers) = &one.chunks[0][0].data else {
                panic!("numbers");
            };
            let count = numbers.len();
            (0..count).map(move |row| (0..4).map(|column| one.cell(column, row)).collect())
        })
        .collect();
    let wanted = [0, 1, 2, 1_000, 1_001, 1_002, 2_000, 2_001, 2_002].map(|number: u32| {
        let even = match number % 2 {
            0 => number.to_string(),
            _ => "NULL".into(),
        };
        let letter = char::from(b'a' + (number % 26) as u8).to_string();
        [number.to_string(), "constant".into(), even, letter]
    });
    assert_eq!(rows, wanted);
}

#[test]
fn an_empty_result_has_columns() {
    let answer = Talk::rows_of(reply("empty")).ok();
    let columns: Vec<_> = answer.columns.iter().collect();
    assert_eq!(answer.rows, 0);
    assert_eq!(
        (columns[0].name.as_str(), columns[0].kind),
        ("a", ColumnType::Int64)
    );
    assert_eq!(columns[0].native, "INTEGER");
    assert_eq!(
        (columns[1].native.as_str(), columns[1].kind),
        ("INTEGER[]", ColumnType::Json)
    );
}

/// What no column has is told, and never told as another value.
#[test]
fn what_no_column_has_is_refused() {
    for (name, code) in [
        ("infinite_date", "infinite_time"),
        ("infinite_timestamp", "infinite_time"),
        ("distant", "distant_time"),
        ("variant", "unsupported_type"),
        ("state", "unsupported_type"),
    ] {
        let error = Talk::rows_of(reply(name)).error();
        assert_eq!(
            (error.class, error.code.as_str()),
            (ErrorClass::Source, code)
        );
    }
    // As WKB.
    let answer = Talk::rows_of(reply("geometry")).ok();
    assert_eq!(answer.columns[0].kind, ColumnType::Bytes);
}
