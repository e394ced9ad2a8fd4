//! What a statement computes has all of its digits, or is refused: no number begins anew at the other end of its type.

use crate::common::extremes::{is, is_refused, is_refused_as, sessions};
use crate::common::{ask, file};
use souk_sdk::ColumnType::{Decimal, Int64, Text};
use souk_sdk::ErrorClass;

#[test]
fn whole_numbers_that_outgrow_their_type_are_refused() {
    for (_directory, mut session) in sessions() {
        for sql in [
            "SELECT 9223372036854775807 + 1",
            "SELECT 9223372036854775807 * 9223372036854775807",
            "SELECT -(-9223372036854775807 - 1)",
            "SELECT n + 1 FROM t",
            "SELECT 2 * n FROM t",
            "SELECT n * n / n FROM t",
            "SELECT 0 - n - n FROM t",
            "SELECT -n - 2 FROM t",
            "SELECT -(-n - 1) FROM t",
            "SELECT (-n - 1) / -1 FROM t",
            "SELECT i + i FROM t",
            "SELECT s * s FROM t",
            "SELECT u + u FROM t",
            "SELECT 0 - u * u FROM t",
            "SELECT n FROM t WHERE n + 1 > 0",
            "SELECT n FROM t WHERE n BETWEEN 1 AND 2 * n",
            "SELECT n FROM t ORDER BY n * 3",
            "SELECT count(*) FROM t GROUP BY n + 1",
            "SELECT max(n + 1) FROM t",
            "SELECT count(*) FROM t HAVING max(n) + 1 > 0",
            "SELECT (SELECT max(n) FROM t) + 1",
            "SELECT lag(n + 1) OVER (ORDER BY n) FROM t",
            "SELECT CASE WHEN n > 5 THEN n + 1 ELSE 0 END FROM t",
            "SELECT coalesce(n + 1, 0) FROM t",
            "SELECT a.n FROM t a JOIN t b ON a.n + 1 = b.n",
            "SELECT a.n FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.n + 1 = a.n)",
            "WITH RECURSIVE r(n) AS (SELECT 9223372036854775800 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        ] {
            is_refused(&mut session, sql);
        }
        for (sql, kind, lines) in [
            (
                "SELECT n - 1 FROM t",
                Int64,
                &["9223372036854775806", "0"][..],
            ),
            (
                "SELECT -n - 1 FROM t",
                Int64,
                &["-9223372036854775808", "-2"],
            ),
            (
                "SELECT n / 2 * 2 + 1 FROM t",
                Int64,
                &["9223372036854775807", "1"],
            ),
            ("SELECT i + 1 FROM t", Int64, &["2147483648", "2"]),
            (
                "SELECT u - 2 FROM t",
                Decimal,
                &["18446744073709551613", "-1"],
            ),
            (
                "SELECT CASE WHEN n < 5 THEN n + 1 ELSE 0 END FROM t",
                Int64,
                &["0", "2"],
            ),
            ("SELECT n + NULL FROM t", Int64, &["~", "~"]),
            (
                "SELECT sum(n - 1), max(n - 1) FROM t GROUP BY n - 1 ORDER BY n - 1",
                Int64,
                &["0|0", "9223372036854775806|9223372036854775806"],
            ),
            (
                "SELECT CAST(n AS decimal(38, 0)) + 1 FROM t",
                Decimal,
                &["9223372036854775808", "2"],
            ),
            (
                "SELECT max(day) - min(day) FROM (SELECT DATE '2026-01-31' AS day UNION ALL SELECT DATE '2026-01-01') x",
                Int64,
                &["30"],
            ),
        ] {
            is(&mut session, sql, kind, lines);
        }
    }
}

/// Columns that are computed are called as before.
#[test]
fn what_is_computed_keeps_its_name() {
    let (_directory, mut session) = file("t.csv", b"n\n1\n");
    let sql = "SELECT n + 1, -n, n * 2 - n % 2, sum(n + 1) OVER (ORDER BY n * 2) FROM t";
    let answer = ask(&mut session, sql).unwrap();
    let names: Vec<&str> = answer
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(
        names[..3],
        [
            "t.n + Int64(1)",
            "(- t.n)",
            "t.n * Int64(2) - t.n % Int64(2)"
        ]
    );
    assert_eq!(answer.lines(), ["2|-1|1|2"]);
    let sql = "SELECT n + 1 AS a, x.\"t.n + Int64(1)\" FROM t, (SELECT n + 1 FROM t) x";
    let answer = ask(&mut session, sql).unwrap();
    assert_eq!(
        (answer.columns[0].name.as_str(), answer.lines()),
        ("a", vec!["2|2".to_owned()])
    );
}

/// A statement of many steps is taken, on a stack as large as a debug build needs.
#[test]
fn long_sums_are_taken() {
    let taken = std::thread::Builder::new().stack_size(64 << 20).spawn(long);
    taken.unwrap().join().unwrap();
}

fn long() {
    let (_directory, mut session) = file("t.csv", b"n\n1\n2\n");
    for step in ["+ n ", "- 1 ", "* 1 ", "+ 1 - 1 ", "* 2 / 2 "] {
        let steps = step.repeat(390 / step.matches(['+', '-', '*', '/']).count());
        let sql = format!("SELECT count(*) FROM t WHERE n {steps} > -1000");
        let answer = ask(&mut session, &sql).unwrap_or_else(|error| panic!("{step}: {error:?}"));
        assert_eq!(answer.lines(), ["2"], "{step}");
    }
}

/// Conditions within conditions, of which each is asked for its value: they do not multiply.
#[test]
fn nested_conditions_are_taken() {
    let taken = std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(nested);
    taken.unwrap().join().unwrap();
}

fn nested() {
    let (_directory, mut session) = file("t.csv", b"n\n1\n2\n");
    let one = "(n <> 0 AND 10 / n > 1)";
    let mut nested = one.to_owned();
    for _ in 0..12 {
        nested = format!("(({nested} IS NULL OR n = 7) AND {one})");
    }
    let sql = format!("SELECT {nested} AS it FROM t ORDER BY n");
    let answer = ask(&mut session, &sql).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(answer.lines(), ["false", "false"]);
}

/// What is drawn by lot is drawn once for each row, also beside what can fail: half of the rows are half of them, and not a quarter.
#[test]
fn lots_are_drawn_once() {
    let (_directory, mut session) = file("t.csv", b"n\n1\n");
    let rows = "generate_series(1, 10000) AS s(n)";
    for sql in [
        format!(
            "SELECT count(*) FILTER (WHERE it) FROM (SELECT random() < 0.5 AND 10 / n >= 0 AS it, n FROM {rows}) AS x"
        ),
        format!(
            "SELECT count(*) FILTER (WHERE NOT it) FROM (SELECT random() < 0.5 OR 10 / n < 0 AS it, n FROM {rows}) AS x"
        ),
        format!("SELECT count(10 / n) FILTER (WHERE random() < 0.5) FROM {rows}"),
        format!("SELECT count(*) FROM {rows} WHERE random() < 0.5 AND 10 / n >= 0"),
    ] {
        let answer = ask(&mut session, &sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let count: i32 = answer.lines()[0].parse().unwrap();
        // By chance it is so far off less than once in 10^80 times.
        assert!((4_000..6_000).contains(&count), "{sql}: {count}");
    }
}

/// More digits than the type says are written, too.
#[test]
fn decimals_are_written_whole_as_texts() {
    let large = "CAST('10000000000000000000' AS decimal(38, 0))";
    let product = format!("1{}", "0".repeat(38));
    for (_directory, mut session) in sessions() {
        for (sql, lines) in [
            (
                "SELECT CAST(d + 1 AS text) FROM t".to_owned(),
                &[product.as_str(), "2"][..],
            ),
            (
                "SELECT arrow_cast(d + 1, 'Utf8') FROM t".to_owned(),
                &[&product, "2"],
            ),
            (
                "SELECT arrow_try_cast(d + 1, 'LargeUtf8') FROM t".to_owned(),
                &[&product, "2"],
            ),
            (
                "SELECT arrow_cast(d + 1, 'Dictionary(Int32, Utf8)') FROM t".to_owned(),
                &[&product, "2"],
            ),
            (
                "SELECT (d + 1) || '!' FROM t".to_owned(),
                &[&format!("{product}!"), "2!"],
            ),
            (
                "SELECT concat('#', d + 1) FROM t".to_owned(),
                &[&format!("#{product}"), "#2"],
            ),
            (
                format!("SELECT CAST({large} * {large} AS text)"),
                &[&product],
            ),
            (
                format!("SELECT string_agg({large} * {large}, ',')"),
                &[&product],
            ),
            (
                format!("SELECT TRY_CAST({large} * {large} AS varchar)"),
                &[&product],
            ),
            (
                "SELECT CAST(CAST(NULL AS decimal(5, 2)) AS text)".to_owned(),
                &["~"],
            ),
            (
                "SELECT CAST(small / 8 AS text) FROM t".to_owned(),
                &["12499.8750000000", "0.1250000000"],
            ),
            (
                "SELECT CAST(1.50 AS text) || CAST(small AS text) FROM t".to_owned(),
                &["1.5099999", "1.501"],
            ),
        ] {
            is(&mut session, &sql, Text, lines);
        }
    }
}

/// A cast that is called a function refuses what any other does.
#[test]
fn casts_by_name_cut_nothing() {
    for (_directory, mut session) in sessions() {
        for sql in [
            "SELECT arrow_cast(n, 'Int32') FROM t",
            "SELECT arrow_cast(u, 'Int64') FROM t",
            "SELECT arrow_cast(d, 'Decimal128(5, 0)') FROM t",
            "SELECT arrow_cast(small, 'Decimal128(5, 2)') FROM t",
        ] {
            is_refused_as(&mut session, sql, "statement_failed");
        }
        is(
            &mut session,
            "SELECT arrow_try_cast(n, 'Int32') FROM t",
            Int64,
            &["~", "1"],
        );
    }
}

/// What a filter meets while Parquet is read is the statement's fault, not the file's.
#[test]
fn what_fails_in_a_filter_is_told() {
    for (_directory, mut session) in sessions() {
        is_refused(&mut session, "SELECT s FROM t WHERE n * 2 > 5");
        let error = ask(&mut session, "SELECT s FROM t WHERE 1 / (n - n) = 1")
            .err()
            .unwrap();
        assert_eq!(
            (error.class, error.code.as_str()),
            (ErrorClass::Source, "statement_failed"),
            "{error:?}"
        );
    }
}
