//! Statements: queries only, with values bound to them, and nothing of them passed over.

mod common;

use common::{LIMITS, ORDERS, ask, ask_with, file};
use souk_sdk::{ColumnType, ErrorClass, Value};

#[test]
fn only_queries_are_run() {
    let (directory, mut session) = file("orders.csv", ORDERS.as_bytes());
    let other = directory.path().join("other.csv");
    std::fs::write(&other, "x\n1\n").unwrap();
    for text in [
        "DELETE FROM orders",
        "DROP TABLE orders",
        "INSERT INTO orders VALUES (1)",
        "UPDATE orders SET id = 1",
        "CREATE TABLE t AS SELECT 1",
        "CREATE VIEW v AS SELECT 1",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/data/other.csv'",
        "COPY orders TO '/data/out.csv'",
        "COPY (SELECT 1) TO '/data/out.parquet'",
        "SET datafusion.execution.batch_size = 1",
        "SHOW ALL",
        "EXPLAIN ANALYZE SELECT 1",
        "PREPARE p AS SELECT 1",
        "SELECT 1 INTO t",
        "BEGIN",
        "WITH x AS (INSERT INTO orders VALUES (1)) SELECT 1",
        "SELECT 1; DROP TABLE orders",
    ] {
        let error = ask(&mut session, text)
            .err()
            .unwrap_or_else(|| panic!("{text}"));
        let is_unread = text.starts_with("WITH") || text.contains(';');
        let expected = match is_unread {
            true => "not_implemented",
            false => "statement_refused",
        };
        assert_eq!(error.code, expected, "{text}: {error:?}");
    }
    // Where it could be written, as it cannot in a component.
    let copy = directory.path().join("copy.csv");
    let copies = format!("COPY orders TO '{}'", copy.display());
    let error = ask(&mut session, &copies).err().unwrap();
    assert_eq!(error.code, "statement_refused");
    for text in [
        "SELECT * FROM '/data/other.csv'".to_owned(),
        format!("SELECT * FROM '{}'", other.display()),
        "SELECT * FROM other".to_owned(),
        "SELECT * FROM information_schema.tables".to_owned(),
        "SELECT * FROM read_csv('/data/other.csv')".to_owned(),
    ] {
        assert!(ask(&mut session, &text).is_err(), "{text}");
    }
    assert_eq!(
        ask(&mut session, "SELECT count(*) FROM orders")
            .unwrap()
            .lines(),
        ["3"]
    );
    let kept = std::fs::read_to_string(directory.path().join("orders.csv"));
    assert_eq!(kept.unwrap(), ORDERS);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn names_that_are_not_there_are_told() {
    let (_directory, mut session) = file("orders.csv", ORDERS.as_bytes());
    for (text, class, code) in [
        (
            "SELECT * FROM absent",
            ErrorClass::NotFound,
            "table_not_found",
        ),
        (
            "SELECT absent FROM orders",
            ErrorClass::NotFound,
            "column_not_found",
        ),
        (
            "SELECT absent(id) FROM orders",
            ErrorClass::NotFound,
            "function_not_found",
        ),
        ("SELECT 1 +", ErrorClass::Source, "syntax_error"),
        ("SELECT 'x", ErrorClass::Source, "syntax_error"),
    ] {
        let error = ask(&mut session, text).err().unwrap();
        assert_eq!(
            (error.class, error.code.as_str()),
            (class, code),
            "{text}: {error:?}"
        );
    }
}

#[test]
fn values_are_bound_with_their_types() {
    let (_directory, mut session) = file("orders.csv", ORDERS.as_bytes());
    for (condition, value, lines) in [
        ("id = $1", Value::Int64(2), 1),
        ("price = $1", Value::Decimal("10.5".into()), 1),
        ("price > $1", Value::Float64(2.25), 1),
        ("sku = $1", Value::Text("007".into()), 1),
        ("placed = $1", Value::Date(20454), 1),
        ("at <= $1", Value::Timestamp(1_767_268_800_000_000), 2),
        ("paid = $1", Value::Boolean(true), 1),
        ("id = $1", Value::Null(Some(ColumnType::Int64)), 0),
        ("sku LIKE $1 ESCAPE '!'", Value::Text("0%".into()), 1),
    ] {
        let text = format!("SELECT id FROM orders AS s WHERE {condition}");
        let answer = ask_with(&mut session, &text, vec![value], LIMITS).unwrap();
        assert_eq!(answer.rows.len(), lines, "{condition}");
    }
    let few = ask_with(
        &mut session,
        "SELECT $1 + $2",
        vec![Value::Int64(1)],
        LIMITS,
    );
    assert_eq!(few.err().unwrap().code, "parameter_count");
    let page = "SELECT s.\"id\" FROM (\nSELECT * FROM orders\n) AS s\nWHERE (s.\"id\", s.\"sku\") > ($1, $2)\nORDER BY s.\"id\", s.\"sku\"\nLIMIT $3 OFFSET $4";
    let values = vec![
        Value::Int64(1),
        Value::Text("007".into()),
        Value::Int64(10),
        Value::Int64(0),
    ];
    let answer = ask_with(&mut session, page, values, LIMITS).unwrap();
    assert_eq!(answer.lines(), ["2", "3"]);
}

/// Hosts write prefixes with an escape of their own.
#[test]
fn patterns_are_escaped_by_any_sign() {
    let names = "n\n50%\n50x\na_b\naxb\nwhy!\nback\\slash\n";
    let (_directory, mut session) = file("t.csv", names.as_bytes());
    for (pattern, lines) in [
        ("50!%%", &["50%"][..]),
        ("a!_b%", &["a_b"]),
        ("why!!%", &["why!"]),
        ("back\\%", &["back\\slash"]),
        ("a_b", &["a_b", "axb"]),
        ("!!", &[]),
    ] {
        let text = "SELECT n FROM t WHERE n LIKE $1 ESCAPE '!' ORDER BY n";
        let answer = ask_with(
            &mut session,
            text,
            vec![Value::Text(pattern.into())],
            LIMITS,
        )
        .unwrap();
        assert_eq!(answer.lines(), lines, "{pattern}");
    }
    let text = "SELECT n FROM t WHERE n NOT LIKE '%''%%' ESCAPE '''' AND n ILIKE 'WHY%'";
    assert_eq!(ask(&mut session, text).unwrap().lines(), ["why!"]);
    // What stands between quotes is not read a second time.
    for literal in [r"'a''''b'", r"'a\''b'", r"'a\'", r"'\\'", r"E'\'\'b'"] {
        let text = format!("SELECT {literal} LIKE {literal} ESCAPE '!'");
        let answer = ask(&mut session, &text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!(answer.lines(), ["true"], "{text}");
    }
}

/// `SIMILAR TO` is about the whole text, and `%` and `_` are what they are to `LIKE`.
#[test]
fn patterns_are_similar_to_whole_texts() {
    let (_directory, mut session) = file(
        "t.csv",
        "s\nabc\nab.c\na%c\nxabc\nab\n\"a\nc\"\n".as_bytes(),
    );
    for (condition, wanted) in [
        ("s SIMILAR TO 'b'", 0),
        ("s SIMILAR TO 'abc'", 1),
        ("s SIMILAR TO 'a%'", 5),
        ("s SIMILAR TO 'a_c'", 3),
        ("s SIMILAR TO 'ab.c'", 1),
        ("s SIMILAR TO 'a(b|%)c'", 4),
        ("s SIMILAR TO '[a-b]+'", 1),
        ("s SIMILAR TO 'x?ab(c)?'", 3),
        (r"s SIMILAR TO 'a\%c'", 1),
        ("s SIMILAR TO 'a!%c' ESCAPE '!'", 1),
        ("s NOT SIMILAR TO 'a%'", 1),
    ] {
        let sql = format!("SELECT count(*) FROM t WHERE {condition}");
        let answer = ask(&mut session, &sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(answer.lines(), [wanted.to_string()], "{sql}");
    }
}

/// What DataFusion reads and passes over is computed or refused.
#[test]
fn nothing_that_is_asked_is_passed_over() {
    let (_directory, mut session) = file(
        "t.csv",
        "s,day\néabc,2026-01-31\nx,2026-02-01\n,\n".as_bytes(),
    );
    for (sql, lines) in [
        ("SELECT CAST(s AS varchar(2)) FROM t", ["éa", "x", "~"]),
        ("SELECT s::char(3) FROM t", ["éab", "x", "~"]),
        (
            "SELECT TRY_CAST(day AS varchar(4)) FROM t",
            ["2026", "2026", "~"],
        ),
        (
            "SELECT CAST(upper(CAST(s AS varchar(3))) AS varchar(2)) FROM t",
            ["ÉA", "X", "~"],
        ),
        ("SELECT CAST(s AS varchar) FROM t", ["éabc", "x", "~"]),
        (
            "SELECT to_char(day, '%d.%m.%Y') FROM t",
            ["31.01.2026", "01.02.2026", "~"],
        ),
    ] {
        let answer = ask(&mut session, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(answer.lines(), lines, "{sql}");
    }
    for (sql, code) in [
        (
            "SELECT s FROM t TABLESAMPLE BERNOULLI (10)",
            "not_implemented",
        ),
        (
            "SELECT s FROM (SELECT s FROM t) x TABLESAMPLE SYSTEM (10)",
            "not_implemented",
        ),
        (
            "SELECT * FROM generate_series(1, 3) WITH ORDINALITY",
            "not_implemented",
        ),
        (
            "SELECT s FROM t WHERE s SIMILAR TO s",
            "pattern_not_written",
        ),
        (
            "SELECT to_char(day, 'YYYY-MM-DD') FROM t",
            "format_without_percent",
        ),
        (
            "SELECT date_format(day, 'YYYY') FROM t",
            "format_without_percent",
        ),
    ] {
        let error = ask(&mut session, sql)
            .err()
            .unwrap_or_else(|| panic!("{sql}"));
        let told = (error.class, error.code.as_str());
        assert_eq!(told, (ErrorClass::Source, code), "{sql}: {error:?}");
    }
}

/// What is cut is named as what is not: a statement without AS keeps the names that its clients know. Where those would be the same twice, it is answered.
#[test]
fn what_is_cut_has_the_name_of_its_text() {
    let names = |sql: &str| -> Vec<String> {
        // Columns that a session has described once are not described again.
        let (_directory, mut session) = file("t.csv", "s\nabc\n".as_bytes());
        let answer = ask(&mut session, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let columns = answer.columns.iter();
        columns.map(|column| column.name.clone()).collect()
    };
    for of in [
        "CAST(s AS {}) FROM t",
        "upper(s::{}), count(*) FROM t GROUP BY s::{}",
        "* FROM (SELECT s::{} FROM t) x",
        "CAST(s AS {}) FROM t UNION SELECT 'x'",
    ] {
        let sql = |kind: &str| format!("SELECT {}", of.replace("{}", kind));
        assert_eq!(names(&sql("varchar(2)")), names(&sql("varchar")), "{of}");
    }
    let both = names("SELECT s, CAST(s AS varchar(2)) FROM t");
    assert_eq!((both.len(), both[0].as_str()), (2, "s"));
}

/// A literal with a point is the decimal that it says, not the nearest float.
#[test]
fn decimals_are_compared_exactly() {
    let (_directory, mut session) = file(
        "t.csv",
        b"n\n12345678901234567890.01\n12345678901234567890.02\n",
    );
    let answer = ask(
        &mut session,
        "SELECT count(*) FROM t WHERE n > 12345678901234567890.01",
    )
    .unwrap();
    assert_eq!(answer.lines(), ["1"]);
}
