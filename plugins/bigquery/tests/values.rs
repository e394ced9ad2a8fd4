//! Cells as BigQuery sends them, to the last digit.

mod common;

use common::{ORDER, Talk, field, ordered, page, raw, reply};
use serde_json::{Value as Json, json};
use souk_sdk::ColumnType;
use souk_tests::wire::Answer;

/// A column of this type with these cells, and a NULL behind them.
fn column(described: Json, cells: &[Json]) -> Answer {
    let mut rows: Vec<Json> = cells.iter().map(|cell| json!([cell])).collect();
    rows.push(json!([null]));
    let total = rows.len();
    Talk::usual().rows_of(ordered(
        &page(json!([described]), &rows, total, None),
        &ORDER,
    ))
}

fn texts(answer: &Answer) -> Vec<String> {
    let rows = 0..answer.rows as usize;
    rows.map(|row| answer.cell(0, row)).collect()
}

/// Every type, its extremes, and NULL.
#[test]
fn scalars_keep_every_digit() {
    let numeric = "-99999999999999999999999999999.999999999";
    let big = "0.00000000000000000000000000000000000001";
    for (kind, column_type, cells, wanted) in [
        (
            "INTEGER",
            ColumnType::Int64,
            vec!["-9223372036854775808", "9223372036854775807"],
            vec!["-9223372036854775808", "9223372036854775807"],
        ),
        ("INT64", ColumnType::Int64, vec!["7"], vec!["7"]),
        (
            "FLOAT",
            ColumnType::Float64,
            vec!["0.1", "1.0E10", "NaN", "-Infinity"],
            vec!["0.1", "10000000000.0", "NaN", "-inf"],
        ),
        (
            "NUMERIC",
            ColumnType::Decimal,
            vec![numeric, "12.50"],
            vec![numeric, "12.50"],
        ),
        ("BIGNUMERIC", ColumnType::Decimal, vec![big], vec![big]),
        (
            "BOOLEAN",
            ColumnType::Boolean,
            vec!["true", "false"],
            vec!["true", "false"],
        ),
        (
            "STRING",
            ColumnType::Text,
            vec!["", "grüße \"quoted\" \\ 日本 😀\n"],
            vec!["", "grüße \"quoted\" \\ 日本 😀\n"],
        ),
        ("BYTES", ColumnType::Bytes, vec!["", "YWI="], vec!["", "ab"]),
        (
            "DATE",
            ColumnType::Date,
            vec!["0001-01-01", "1970-01-02", "9999-12-31"],
            vec!["-719162", "1", "2932896"],
        ),
        (
            "TIME",
            ColumnType::Time,
            vec!["00:00:00", "23:59:59.999999"],
            vec!["0", "86399999999"],
        ),
        (
            "DATETIME",
            ColumnType::LocalTimestamp,
            vec!["1970-01-01T00:00:01", "1969-12-31T23:59:59.999999"],
            vec!["1000000", "-1"],
        ),
        (
            "TIMESTAMP",
            ColumnType::Timestamp,
            vec!["-62135596800000000", "1"],
            vec!["-62135596800000000", "1"],
        ),
        (
            "JSON",
            ColumnType::Json,
            vec![r#"{"a":[1.50,null]}"#, "null"],
            vec![r#"{"a":[1.50,null]}"#, "null"],
        ),
        (
            "GEOGRAPHY",
            ColumnType::Text,
            vec!["POINT(1 2)"],
            vec!["POINT(1 2)"],
        ),
        (
            "INTERVAL",
            ColumnType::Text,
            vec!["1-2 3 4:5:6.789"],
            vec!["1-2 3 4:5:6.789"],
        ),
        (
            "RANGE",
            ColumnType::Text,
            vec!["[2020-01-01, UNBOUNDED)"],
            vec!["[2020-01-01, UNBOUNDED)"],
        ),
    ] {
        let cells: Vec<Json> = cells.into_iter().map(Json::from).collect();
        let answer = column(field("v", kind), &cells).ok();
        let mut wanted = wanted;
        wanted.push("NULL");
        assert_eq!(texts(&answer), wanted, "{kind}");
        assert_eq!(answer.columns[0].kind, column_type, "{kind}");
        assert!(answer.columns[0].nullable);
    }
}

/// Ranges of moments have their bounds in microseconds, as Google's own clients read them; of days and clocks they are texts already.
#[test]
fn ranges_of_moments_are_read() {
    let range = |element: &str| json!({"name": "v", "type": "RANGE", "mode": "NULLABLE", "rangeElementType": {"type": element}});
    for (element, cell, wanted) in [
        (
            "TIMESTAMP",
            "[1234567, 1234789)",
            "[1970-01-01T00:00:01.234567Z, 1970-01-01T00:00:01.234789Z)",
        ),
        (
            "TIMESTAMP",
            "[UNBOUNDED, -1)",
            "[UNBOUNDED, 1969-12-31T23:59:59.999999Z)",
        ),
        (
            "DATETIME",
            "[2009-06-17T13:45:30, UNBOUNDED)",
            "[2009-06-17T13:45:30, UNBOUNDED)",
        ),
        (
            "DATE",
            "[2009-06-17, 2019-06-17)",
            "[2009-06-17, 2019-06-17)",
        ),
    ] {
        let answer = column(range(element), &[json!(cell)]).ok();
        assert_eq!(texts(&answer), [wanted, "NULL"], "{element}");
        assert_eq!(answer.columns[0].kind, ColumnType::Text);
        assert_eq!(answer.columns[0].native, format!("RANGE<{element}>"));
    }
    let mut many = range("TIMESTAMP");
    many["mode"] = json!("REPEATED");
    let answer = column(many, &[json!([{"v": "[0, UNBOUNDED)"}])]).ok();
    let wanted = r#"["[1970-01-01T00:00:00.000000Z, UNBOUNDED)"]"#;
    assert_eq!(texts(&answer), [wanted, "[]"]);
    for wrong in ["", "[1, 2]", "[1)", "[1,2)", "[1, 2, 3)", "[a, 2)"] {
        let error = column(range("TIMESTAMP"), &[json!(wrong)]).error();
        assert_eq!(error.code, "malformed_answer", "{wrong}");
    }
}

/// Arrays and structs are JSON, in which every value is written as a column of it is.
#[test]
fn what_is_nested_is_json() {
    let mut fields: Vec<Json> = [
        ("i", "INTEGER"),
        ("n", "NUMERIC"),
        ("f", "FLOAT"),
        ("b", "BOOLEAN"),
        ("s", "STRING"),
        ("y", "BYTES"),
        ("d", "DATE"),
        ("c", "TIME"),
        ("l", "DATETIME"),
        ("m", "TIMESTAMP"),
        ("j", "JSON"),
        ("x", "FLOAT"),
        ("o", "STRING"),
    ]
    .iter()
    .map(|(name, kind)| field(name, kind))
    .collect();
    fields.push(json!({"name": "a", "type": "RECORD", "mode": "REPEATED", "fields": [{"name": "k", "type": "STRING", "mode": "REPEATED"}]}));
    let inner = json!({"v": {"f": [{"v": [{"v": "p"}, {"v": "q\"r"}]}]}});
    let cells: Vec<Json> = [
        json!("9223372036854775807"),
        json!("1.50"),
        json!("0.5"),
        json!("true"),
        json!("a\"b"),
        json!("/w=="),
        json!("2024-02-29"),
        json!("12:00:00.5"),
        json!("2024-02-29T12:00:00"),
        json!("1"),
        json!("{\"z\": 1}"),
        json!("NaN"),
        json!(null),
        json!([inner]),
    ]
    .iter()
    .map(|cell| json!({"v": cell}))
    .collect();
    let described = json!({"name": "v", "type": "RECORD", "mode": "NULLABLE", "fields": fields});
    let answer = column(described, &[json!({"f": cells})]).ok();
    assert_eq!(
        texts(&answer),
        [
            r#"{"i":9223372036854775807,"n":1.50,"f":0.5,"b":true,"s":"a\"b","y":"/w==","d":"2024-02-29","c":"12:00:00.500000","l":"2024-02-29T12:00:00.000000","m":"1970-01-01T00:00:00.000001Z","j":{"z": 1},"x":"NaN","o":null,"a":[{"k":["p","q\"r"]}]}"#,
            "NULL"
        ]
    );
    let described = json!({"name": "v", "type": "INTEGER", "mode": "REPEATED"});
    let answer = column(described, &[json!([]), json!([{"v": "1"}, {"v": null}])]).ok();
    // An array is not NULL.
    assert_eq!(texts(&answer), ["[]", "[1,null]", "[]"]);
    assert!(!answer.columns[0].nullable);
}

/// What does not fit its type is refused, and nothing else is made of it.
#[test]
fn what_is_malformed_is_refused() {
    for (kind, cell) in [
        ("INTEGER", json!("1.5")),
        ("INTEGER", json!("9223372036854775808")),
        ("INTEGER", json!({"f": []})),
        ("NUMERIC", json!("1e5")),
        ("NUMERIC", json!("-")),
        ("NUMERIC", json!("1.")),
        ("NUMERIC", json!("007")),
        ("FLOAT", json!("much")),
        ("BOOLEAN", json!("yes")),
        ("BYTES", json!("=")),
        ("DATE", json!("2023-02-29")),
        ("TIME", json!("24:00:00")),
        ("TIME", json!("12")),
        ("TIME", json!("23:59:60.5")),
        ("DATETIME", json!("2024-02-29T12:00:00Z")),
        ("TIMESTAMP", json!("1.5E9")),
        ("TIMESTAMP", json!(i64::MAX.to_string())),
        ("JSON", json!("{")),
        ("RECORD", json!("x")),
        ("STRING", json!([1])),
    ] {
        let error = column(field("v", kind), std::slice::from_ref(&cell)).error();
        assert_eq!(error.code, "malformed_answer", "{kind} {cell}");
    }
    // Rows that are not as wide as the schema.
    for cells in [json!([]), json!(["1", "2"])] {
        let answer = page(json!([field("n", "INTEGER")]), &[cells], 1, None);
        assert_eq!(
            Talk::usual().rows_of(reply(answer)).error().code,
            "malformed_answer"
        );
    }
}

/// Numbers and truth may stand as such, and keep their digits.
#[test]
fn numbers_may_be_no_texts() {
    for (kind, cell, wanted) in [
        ("INTEGER", "-7", "-7"),
        ("TIMESTAMP", "7", "7"),
        ("STRING", "7", "7"),
        ("BOOLEAN", "true", "true"),
        ("NUMERIC", "1.50", "1.50"),
        // A parsed one would be off by its last digit.
        ("FLOAT", "122.416294033786585", "122.41629403378658"),
        ("FLOAT", "7", "7.0"),
        ("JSON", "1.50", "1.50"),
    ] {
        let body = format!(
            r#"{{"schema":{{"fields":[{}]}},"totalRows":"1","rows":[{{"f":[{{"v":{cell}}}]}}],"jobComplete":true}}"#,
            field("v", kind)
        );
        let answer = Talk::usual().rows_of(raw(200, &[], body)).ok();
        assert_eq!(texts(&answer), [wanted], "{kind}");
    }
    for (kind, cell) in [
        ("INTEGER", json!(1.5)),
        ("INTEGER", json!(u64::MAX)),
        ("BOOLEAN", json!(1)),
        ("DATE", json!(true)),
    ] {
        let error = column(field("v", kind), &[cell]).error();
        assert_eq!(error.code, "malformed_answer", "{kind}");
    }
}

/// Of a row and of a cell one member matters, which each has once.
#[test]
fn rows_have_their_cells_once() {
    let read = |row: &str| {
        let body = format!(
            r#"{{"schema":{{"fields":[{}]}},"totalRows":"1","rows":[{row}],"jobComplete":true}}"#,
            field("v", "STRING")
        );
        Talk::usual().rows_of(raw(200, &[], body))
    };
    for row in [
        r#"{"f":[{"v":"a"}]}"#,
        r#"{"e":[1],"f":[{"u":{"v":"b"},"v":"a","w":"c"}],"g":null}"#,
        r#"{"f":[{"v":"a","w":{"v":1}}],"g":[null]}"#,
        r#"{ "f" : [ { "v" : "a" } ] }"#,
        r#"{"\u0066":[{"\u0076":"\u0061"}]}"#,
    ] {
        assert_eq!(texts(&read(row).ok()), ["a"], "{row}");
    }
    for row in [
        "{}",
        "7",
        "null",
        r#"{"f":[{"v":"a"}],"f":[{"v":"a"}]}"#,
        r#"{"f":[{"v":"a","v":"a"}]}"#,
        r#"{"f":[{}]}"#,
        r#"{"f":["a"]}"#,
        r#"{"f":{"v":"a"}}"#,
    ] {
        assert_eq!(read(row).error().code, "malformed_answer", "{row}");
    }
}

/// A row of 200 columns is whole, whichever of them are NULL.
#[test]
fn two_hundred_columns_are_read() {
    let kind = |n: usize| ["INTEGER", "STRING", "NUMERIC"][n % 3];
    let text = |n: usize| match (n % 5, kind(n)) {
        (4, _) => None,
        (_, "INTEGER") => Some(n.to_string()),
        (_, "STRING") => Some(format!("v{n}")),
        _ => Some(format!("{n}.50")),
    };
    let fields: Vec<Json> = (0..200).map(|n| field(&format!("c{n}"), kind(n))).collect();
    let cells: Vec<Json> = (0..200).map(|n| json!(text(n))).collect();
    let wide = page(json!(fields), &[json!(cells)], 1, None);
    let answer = Talk::usual().rows_of(ordered(&wide, &ORDER)).ok();
    assert_eq!((answer.rows, answer.columns.len()), (1, 200));
    for n in 0..200 {
        let wanted = text(n).unwrap_or_else(|| "NULL".into());
        assert_eq!(answer.column(&format!("c{n}")), n);
        assert_eq!(answer.cell(n, 0), wanted, "c{n}");
    }
}

/// Long results come in batches.
#[test]
fn many_rows_come_in_batches() {
    let rows: Vec<Json> = (0..20_000).map(|n| json!([n.to_string()])).collect();
    let answer = page(json!([field("n", "INTEGER")]), &rows, rows.len(), None);
    let answer = Talk::usual().rows_of(reply(answer)).ok();
    assert_eq!((answer.rows, answer.chunks.len()), (20_000, 3));
}
