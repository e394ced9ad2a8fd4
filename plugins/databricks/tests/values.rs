//! Values of every type, as the API sends them and in the words that keep their digits.

mod common;

use common::{Talk, column, described, query, rows, text};
use serde_json::json;
use souk_sdk::ColumnType;
use souk_tests::wire::LIMITS;

/// The value of one column that was described as `kind`, was sent as `sent` by a column of the type `told`.
fn read(kind: &str, told: &str, sent: &str) -> Result<(ColumnType, String), String> {
    let mut talk = Talk::usual();
    let list = json!([[sent], [null]]);
    let answer = talk.rows_of(&[kind], [rows(&[column("n", told)], &list)]);
    match answer.end.clone().unwrap() {
        Ok(()) => {
            assert_eq!((answer.rows, answer.cell(0, 1)), (2, "NULL".into()));
            assert_eq!(answer.columns[0].native.to_lowercase(), kind.to_lowercase());
            Ok((answer.columns[0].kind, answer.cell(0, 0)))
        }
        Err(error) => Err(error.code),
    }
}

#[test]
fn values_are_read() {
    use ColumnType::{
        Boolean, Date, Decimal, Float64, Int64, Json, LocalTimestamp, Text, Time, Timestamp,
    };
    for (kind, told, sent, wanted, value) in [
        ("tinyint", "TINYINT", "-128", Int64, "-128"),
        (
            "bigint",
            "BIGINT",
            "-9223372036854775808",
            Int64,
            "-9223372036854775808",
        ),
        ("float", "FLOAT", "0.1", Float64, "0.1"),
        ("double", "DOUBLE", "1.0E100", Float64, "1e100"),
        ("double", "DOUBLE", "NaN", Float64, "NaN"),
        ("double", "DOUBLE", "-Infinity", Float64, "-inf"),
        (
            "decimal(38,5)",
            "DECIMAL(38,5)",
            "12345678901234567890.00100",
            Decimal,
            "12345678901234567890.00100",
        ),
        (
            "decimal(38,10)",
            "DECIMAL(38,10)",
            "0E-10",
            Decimal,
            "0.0000000000",
        ),
        ("boolean", "BOOLEAN", "true", Boolean, "true"),
        ("string", "STRING", "it's ä\n", Text, "it's ä\n"),
        ("varchar(20)", "VARCHAR(20)", "", Text, ""),
        (
            "interval day to second",
            "INTERVAL DAY TO SECOND",
            "2 03:04:05.500000000",
            Text,
            "2 03:04:05.500000000",
        ),
        ("date", "DATE", "2024-02-29", Date, "19782"),
        (
            "timestamp",
            "BIGINT",
            "1709208000000001",
            Timestamp,
            "1709208000000001",
        ),
        (
            "timestamp_ntz",
            "STRING",
            "2024-02-29 12:00:00.000001",
            LocalTimestamp,
            "1709208000000001",
        ),
        ("time(6)", "STRING", "12:00:00.5", Time, "43200500000"),
        (
            "array<decimal(3,2)>",
            "STRING",
            "[1.50,null]",
            Json,
            "[1.50,null]",
        ),
        ("variant", "STRING", "{\"a\":[1]}", Json, "{\"a\":[1]}"),
    ] {
        let read = read(kind, told, sent);
        assert_eq!(read, Ok((wanted, value.into())), "{kind} {sent}");
    }
    let bytes = read("binary", "STRING", "3q2+7w==").unwrap();
    assert_eq!(bytes.0, ColumnType::Bytes);
}

#[test]
fn what_is_no_value_is_refused() {
    for (kind, told, sent, code) in [
        ("boolean", "BOOLEAN", "1", "malformed_answer"),
        ("int", "INT", "1.0", "malformed_answer"),
        ("double", "DOUBLE", "1e999", "malformed_answer"),
        ("double", "DOUBLE", "inf", "malformed_answer"),
        ("decimal(3,1)", "DECIMAL(3,1)", "1,5", "malformed_answer"),
        ("date", "DATE", "2024-02-30", "malformed_answer"),
        ("date", "DATE", "+123456-01-01", "year_out_of_range"),
        ("timestamp", "BIGINT", "2024-02-29", "malformed_answer"),
        ("binary", "STRING", "!", "malformed_answer"),
        ("array<int>", "STRING", "[1,", "malformed_answer"),
        ("map<int,int>", "STRING", "{\"1\":1,\"1\":2}", "doubled_key"),
    ] {
        assert_eq!(read(kind, told, sent), Err(code.into()), "{kind} {sent}");
    }
}

/// What would be written as Spark keeps it is not asked for.
#[test]
fn keys_that_are_not_exact_are_refused() {
    let mut talk = Talk::usual();
    for kind in [
        "map<date,int>",
        "array<map<binary,int>>",
        "struct<a:int,... 9 more fields>",
    ] {
        let id = talk.submit(query("SELECT m FROM t", vec![], LIMITS));
        talk.hears(0, described(&[("m", kind)])).unwrap();
        assert!(talk.asked.is_empty());
        assert_eq!(
            talk.ended(id).unwrap().error().code,
            "inexact_type",
            "{kind}"
        );
    }
}

/// Columns keep their names and types, two of one name as well, and everything is asked for in one statement.
#[test]
fn words_around_a_statement_change_no_column() {
    let mut talk = Talk::usual();
    let id = talk.submit(query("SELECT * FROM t ORDER BY 1 -- all", vec![], LIMITS));
    let columns = [("a", "int"), ("a", "timestamp"), ("b`c", "struct<x:int>")];
    talk.hears(0, described(&columns)).unwrap();
    let asked = text(&talk.asked[0]);
    assert!(
        asked.starts_with("SELECT s.c0, unix_micros(s.c1), to_json(s.c2, map("),
        "{asked}"
    );
    assert!(
        asked.ends_with("\nFROM (\nSELECT * FROM t ORDER BY 1 -- all\n) AS s (c0, c1, c2)"),
        "{asked}"
    );
    let sent = [
        column("c0", "INT"),
        column("unix_micros(c1)", "BIGINT"),
        column("to_json(c2)", "STRING"),
    ];
    talk.hears(0, rows(&sent, &json!([["1", "0", "{\"x\":1}"]])))
        .unwrap();
    let answer = talk.ended(id).unwrap().ok();
    let names: Vec<_> = answer
        .columns
        .iter()
        .map(|column| (&*column.name, &*column.native))
        .collect();
    assert_eq!(names, columns);
}

/// The answer to other words does not say which columns a table has by now: it is asked each time.
#[test]
fn what_is_asked_in_other_words_is_described_each_time() {
    let mut talk = Talk::usual();
    for names in [["made_at", "sold_at"], ["sold_at", "made_at"]] {
        let id = talk.submit(query("SELECT * FROM t", vec![], LIMITS));
        assert_eq!(text(&talk.asked[0]), "DESCRIBE QUERY SELECT * FROM t");
        talk.hears(0, described(&names.map(|name| (name, "timestamp"))))
            .unwrap();
        let sent = ["c0", "c1"].map(|name| column(name, "BIGINT"));
        talk.hears(0, rows(&sent, &json!([["1", "2"]]))).unwrap();
        let answer = talk.ended(id).unwrap().ok();
        let found = answer.columns.iter().map(|column| &*column.name);
        assert!(found.eq(names));
    }
}

/// 200 columns.
#[test]
fn there_may_be_many_columns() {
    let mut talk = Talk::usual();
    let sent: Vec<_> = (0..200).map(|n| column(&format!("c{n}"), "INT")).collect();
    let cells: Vec<_> = (0..200).map(|n| n.to_string()).collect();
    let answer = talk
        .rows_of(&["int"; 200], [rows(&sent, &json!([cells]))])
        .ok();
    assert_eq!(
        (answer.columns.len(), answer.cell(199, 0)),
        (200, "199".into())
    );
}
