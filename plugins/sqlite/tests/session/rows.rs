//! What a query is answered, and what its parameters become.

use crate::{ask, open, query, shop, strings};
use rusqlite::Connection;
use souk_sdk::{ColumnData, ColumnType, Value};

#[test]
fn rows_come_as_columns_of_their_types() {
    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let answer = ask(
        &mut session,
        query(
            "SELECT id, region, amount, placed_on, paid FROM orders ORDER BY id",
            vec![],
        ),
    )
    .unwrap();
    let kinds: Vec<_> = answer
        .columns
        .unwrap()
        .into_iter()
        .map(|column| (column.name, column.kind, column.native))
        .collect();
    let expected = [
        ("id", ColumnType::Int64, "INTEGER"),
        ("region", ColumnType::Text, "TEXT"),
        ("amount", ColumnType::Decimal, "DECIMAL(10,2)"),
        ("placed_on", ColumnType::Date, "DATE"),
        ("paid", ColumnType::Boolean, "BOOLEAN"),
    ];
    assert_eq!(
        kinds,
        expected.map(|(name, kind, native)| (name.to_string(), kind, native.to_string()))
    );
    assert_eq!(answer.data[0], ColumnData::I64s(vec![1, 2, 3]));
    assert_eq!(strings(&answer.data[2]), ["10", "2.5", ""]);
    assert_eq!(answer.data[4], ColumnData::Bits(vec![1]));
}

/// A shape is described once a session; when the values change its types it is described again.
#[test]
fn a_shape_is_described_once() {
    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let select = |value| query("SELECT ?1 AS x", vec![value]);
    let first = ask(&mut session, select(Value::Int64(1))).unwrap();
    assert_eq!(first.columns.unwrap()[0].kind, ColumnType::Int64);
    let second = ask(&mut session, select(Value::Int64(2))).unwrap();
    assert_eq!((second.shape, second.columns), (first.shape, None));
    let other = ask(&mut session, query("SELECT 1 AS y", vec![])).unwrap();
    assert_ne!(other.shape, first.shape);
    let third = ask(&mut session, select(Value::Text("a".into()))).unwrap();
    assert_eq!(
        (third.shape, third.columns.unwrap()[0].kind),
        (first.shape, ColumnType::Text)
    );
}

/// A row of 200 columns is whole, each column with its name and type.
#[test]
fn two_hundred_columns_are_read() {
    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let selected: Vec<String> = (0..200)
        .map(|n| match n % 3 {
            0 => format!("{n} AS c{n}"),
            1 => format!("'v{n}' AS c{n}"),
            _ => format!("{n} / 8.0 AS c{n}"),
        })
        .collect();
    let text = format!("SELECT {}", selected.join(", "));
    let answer = ask(&mut session, query(&text, vec![])).unwrap();
    let columns = answer.columns.unwrap();
    assert_eq!(
        (answer.rows, columns.len(), answer.data.len()),
        (1, 200, 200)
    );
    for (n, (column, data)) in columns.iter().zip(&answer.data).enumerate() {
        assert_eq!(column.name, format!("c{n}"));
        match n % 3 {
            0 => assert_eq!(*data, ColumnData::I64s(vec![n as i64]), "c{n}"),
            1 => assert_eq!(strings(data), [format!("v{n}")]),
            _ => assert_eq!(*data, ColumnData::F64s(vec![n as f64 / 8.0]), "c{n}"),
        }
    }
}

/// Many statements in turn are prepared once each: what is prepared anew is described anew. Of more than are remembered those that are asked most stay.
#[test]
fn statements_are_prepared_once() {
    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let mut is_new = |number: u32| {
        let select = query(&format!("SELECT {number} AS n"), vec![]);
        ask(&mut session, select).unwrap().columns.is_some()
    };
    assert!((0..200).all(&mut is_new));
    assert!(!(0..200).any(&mut is_new));
    for number in 200..600 {
        assert!(is_new(number) && !is_new(0), "{number}");
    }
    assert!(is_new(1), "it went");
}

/// More statements than a session remembers: every answer still has the right columns.
#[test]
fn many_statements_are_answered_right() {
    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let mut known = std::collections::HashMap::new();
    for i in (0..300).chain(0..300) {
        let answer = ask(&mut session, query(&format!("SELECT {i} AS c{i}"), vec![])).unwrap();
        if let Some(columns) = answer.columns {
            known.insert(answer.shape, columns);
        }
        assert_eq!(known[&answer.shape][0].name, format!("c{i}"));
        assert_eq!(answer.data[0], ColumnData::I64s(vec![i]));
    }
}

#[test]
fn parameters_are_bound_as_sqlite_stores_them() {
    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let cases = [
        (Value::Null(None), "null"),
        (Value::Boolean(true), "integer:1"),
        (Value::Int64(i64::MIN), "integer:-9223372036854775808"),
        (Value::Float64(0.5), "real:0.5"),
        (Value::Decimal("7".into()), "integer:7"),
        (Value::Decimal("2.50".into()), "real:2.5"),
        (Value::Text("a'b".into()), "text:a'b"),
        (Value::Bytes(b"x".to_vec()), "blob:x"),
        (Value::Date(1), "text:1970-01-02"),
        (
            Value::Timestamp(1_500_000),
            "text:1970-01-01 00:00:01.500000",
        ),
        (Value::LocalTimestamp(1_000_000), "text:1970-01-01 00:00:01"),
        (Value::Time(30_600_000_000), "text:08:30:00"),
        (Value::Json("{}".into()), "text:{}"),
    ];
    for (value, expected) in cases {
        let text = "SELECT typeof(?1) || ifnull(':' || CAST(?1 AS TEXT), '')";
        let answer = ask(&mut session, query(text, vec![value])).unwrap();
        assert_eq!(strings(&answer.data[0]), [expected]);
    }
    let one = ask(
        &mut session,
        query(
            "SELECT count(*) FROM orders WHERE amount = ? AND placed_on < ?",
            vec![Value::Decimal("10.00".into()), Value::Date(30_000)],
        ),
    );
    assert_eq!(one.unwrap().data[0], ColumnData::I64s(vec![1]));
    let missing = ask(&mut session, query("SELECT ?", vec![])).unwrap_err();
    assert_eq!(missing.code, "parameter_count");
}

#[test]
fn full_text_and_json_work() {
    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let found = ask(
        &mut session,
        query(
            "SELECT body FROM notes WHERE notes MATCH ?",
            vec![Value::Text("apple".into())],
        ),
    )
    .unwrap();
    assert_eq!(strings(&found.data[0]), ["a red apple"]);
    let json = ask(
        &mut session,
        query("SELECT value FROM json_each('[1,2]')", vec![]),
    )
    .unwrap();
    assert_eq!(json.data[0], ColumnData::I64s(vec![1, 2]));
}

/// Texts are UTF-8 outside whatever they are in the file, and one that is none counts as bytes wherever it stands among others.
#[test]
fn texts_are_read_from_any_encoding() {
    let directory = tempfile::tempdir().unwrap();
    let wide = Connection::open(directory.path().join("wide.db")).unwrap();
    wide.execute_batch(
        "PRAGMA encoding = 'UTF-16'; CREATE TABLE t (a); INSERT INTO t VALUES ('zwölf'), (''), ('\u{1f34e}')",
    )
    .unwrap();
    let mut session = open(directory.path(), "wide.db").unwrap();
    let answer = ask(
        &mut session,
        query("SELECT a FROM t ORDER BY rowid", vec![]),
    )
    .unwrap();
    assert_eq!(strings(&answer.data[0]), ["zwölf", "", "\u{1f34e}"]);

    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let mut kinds = |text: &str| {
        let answer = ask(&mut session, query(text, vec![])).unwrap();
        answer.columns.unwrap()[0].kind
    };
    let broken = "CAST(x'c3' AS TEXT)";
    // Both halves of one character, which are no characters.
    let halves = format!("SELECT {broken} UNION ALL SELECT CAST(x'a9' AS TEXT)");
    assert_eq!(kinds(&halves), ColumnType::Bytes);
    let among = format!("SELECT 'a' UNION ALL SELECT {broken} UNION ALL SELECT 'é'");
    assert_eq!(kinds(&among), ColumnType::Json);
    assert_eq!(kinds("SELECT 'a' UNION ALL SELECT 'é'"), ColumnType::Text);
}
