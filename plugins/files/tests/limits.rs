//! Rows, bytes, time, memory and depth have bounds, and a session goes on after each.

mod common;

use common::{LIMITS, array, ask, ask_with, batch, directory, file, numbers, open, parquet, tar};
use datafusion::arrow::array::{Int64Array, StringArray};
use souk_connector_files::Session;
use souk_sdk::{ErrorClass, Limits};
use std::time::Instant;

#[test]
fn limits_are_held() {
    let numbers: String = (0..5_000).map(|n| format!("{n}\n")).collect();
    let (_directory, mut session) = file("t.csv", format!("n\n{numbers}").as_bytes());
    let error = ask(&mut session, "SELECT * FROM t").err().unwrap();
    assert_eq!(
        (error.class, error.code.as_str()),
        (ErrorClass::LimitExceeded, "rows_limit")
    );
    let limits = Limits {
        rows_max: 5_000,
        bytes_max: 1_000,
        ..LIMITS
    };
    let error = ask_with(&mut session, "SELECT * FROM t", Vec::new(), limits)
        .err()
        .unwrap();
    assert_eq!(error.code, "bytes_limit");
    let error = ask(&mut session, "SELECT repeat('x', 5000000)")
        .err()
        .unwrap();
    assert_eq!(error.code, "bytes_limit");
}

/// A statement that has 300 ms, and would take much longer, ends with them.
fn is_stopped(session: &mut Session, text: &str) {
    let limits = Limits {
        timeout_ms: 300,
        ..LIMITS
    };
    let begun = Instant::now();
    let error = ask_with(session, text, Vec::new(), limits).err().unwrap();
    assert_eq!(error.code, "statement_timeout", "{text}: {error:?}");
    let took = begun.elapsed().as_millis();
    assert!(took < 20_000, "{text}: {took} ms");
}

/// Whatever makes many rows of few, or rows without an end, ends with the time that it has.
#[test]
fn time_is_held() {
    let numbers: String = (0..2_000).map(|n| format!("{n}\n")).collect();
    let (_directory, mut session) = file("t.csv", format!("n\n{numbers}").as_bytes());
    for text in [
        "SELECT count(*) FROM t a, t b, t c WHERE a.n + b.n + c.n = 7",
        "SELECT sum(a.n) FROM t a CROSS JOIN t b CROSS JOIN t c",
        "SELECT count(*) FROM t a JOIN t b ON a.n > b.n JOIN t c ON b.n > c.n",
        "SELECT count(*) FROM generate_series(1, 100000000000)",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "SELECT count(*) FROM (SELECT unnest(range(0, 5000)) FROM t) x, t b",
        "SELECT count(*) FROM (SELECT value FROM generate_series(1, 100000000000) UNION ALL SELECT 1) x",
    ] {
        is_stopped(&mut session, text);
    }
    assert_eq!(
        ask(&mut session, "SELECT count(*) FROM t").unwrap().lines(),
        ["2000"]
    );
}

/// A row that is looked for is compared with all others before anything is known of it.
#[test]
fn time_is_held_where_rows_are_looked_for() {
    let numbers: String = (0..200_000).map(|n| format!("{n}\n")).collect();
    let (_directory, mut session) = file("t.csv", format!("n\n{numbers}").as_bytes());
    for looks in [
        "EXISTS (SELECT 1 FROM t b WHERE a.n / 1000000 = b.n / 1000000)",
        "NOT EXISTS (SELECT 1 FROM t b WHERE a.n / 1000000 = b.n / 1000000)",
        "a.n / 1000000 IN (SELECT b.n / 1000000 FROM t b)",
        "a.n / 1000000 NOT IN (SELECT b.n / 1000000 FROM t b)",
        "(a.n = 10 OR EXISTS (SELECT 1 FROM t b WHERE a.n / 1000000 = b.n / 1000000))",
        "EXISTS (SELECT 1 FROM t b WHERE a.n / 1000000 = b.n / 1000000 AND a.n + b.n = -1)",
        "EXISTS (SELECT 1 FROM t b WHERE a.n % 1 = b.n % 1)",
        "EXISTS (SELECT 1 FROM t b WHERE a.n - b.n > 1000000)",
        "NOT EXISTS (SELECT 1 FROM t b WHERE a.n - b.n > 1000000)",
    ] {
        is_stopped(
            &mut session,
            &format!("SELECT count(*) FROM t a WHERE {looks}"),
        );
    }
    for (looks, rows) in [
        ("EXISTS (SELECT 1 FROM t b WHERE a.n = 2 * b.n)", "100000"),
        (
            "NOT EXISTS (SELECT 1 FROM t b WHERE a.n = 2 * b.n)",
            "100000",
        ),
        ("a.n IN (SELECT 3 * b.n FROM t b)", "66667"),
        ("a.n NOT IN (SELECT 3 * b.n FROM t b)", "133333"),
        ("(a.n = 1 OR a.n IN (SELECT 3 * b.n FROM t b))", "66668"),
    ] {
        let text = format!("SELECT count(*) FROM t a WHERE {looks}");
        assert_eq!(ask(&mut session, &text).unwrap().lines(), [rows], "{text}");
    }
}

/// What needs more memory than there is fails, and the session goes on.
#[test]
fn memory_is_held() {
    let (_directory, mut session) = file("t.csv", b"n\n1\n");
    for text in [
        "SELECT count(*) FROM (SELECT concat(repeat('x', 500), CAST(v AS text)) AS w FROM generate_series(1, 2000000) g(v) GROUP BY 1) x",
        "SELECT length(w) FROM (SELECT concat(repeat('x', 500), CAST(v AS text)) AS w FROM generate_series(1, 2000000) g(v)) x ORDER BY w",
    ] {
        let error = ask(&mut session, text).err().unwrap();
        assert_eq!(error.code, "out_of_memory", "{text}: {error:?}");
    }
    assert_eq!(
        ask(&mut session, "SELECT count(*) FROM t").unwrap().lines(),
        ["1"]
    );
}

/// Where rows are only asked for a partner (`IN`, `EXISTS`), the few that are looked for are kept, and not all that a join makes.
#[test]
fn the_smaller_side_is_kept() {
    const COLUMNS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let shops = batch(vec![("shop", numbers(100))]);
    let of = |count: i64| {
        array(Int64Array::from_iter_values(
            (0..600_000).map(|n| n % count),
        ))
    };
    // Sixteen bytes each while they are kept.
    let short = array(StringArray::from_iter_values((0..600_000).map(|_| "short")));
    let mut lines = vec![("sale", of(150_000)), ("of_shop", of(100))];
    lines.extend(COLUMNS.map(|name| (name, short.clone())));
    let lines = batch(lines);
    let archive = tar(&[
        ("shops.parquet", &parquet(&shops)[..]),
        ("lines.parquet", &parquet(&lines)),
    ]);
    let directory = directory(&[("sales.tar", &archive)]);
    let mut session = open(directory.path(), "sales.tar").unwrap();
    let all = COLUMNS.map(|name| format!("min({name})")).join(", ");
    let few = "SELECT sale FROM lines GROUP BY sale HAVING sum(of_shop) > 395";
    let found = format!("EXISTS (SELECT FROM ({few}) f WHERE f.sale = l.sale)");
    for (condition, count) in [
        (format!("l.sale IN ({few})"), "6000"),
        (found.clone(), "6000"),
        (format!("NOT {found}"), "594000"),
        (format!("(l.sale IN ({few}) OR l.sale < 2)"), "6008"),
    ] {
        let text = format!(
            "SELECT count(*), {all} FROM shops s JOIN lines l ON s.shop = l.of_shop + 1 WHERE {condition}"
        );
        let answer = ask(&mut session, &text);
        let answer = answer.unwrap_or_else(|error| panic!("{condition}: {error:?}"));
        assert_eq!(answer.rows[0][0].as_deref(), Some(count), "{condition}");
    }
    // Few rows stay the side that is kept, however many partners are asked for after one another.
    let partner = "IN (SELECT lpad(CAST(sale AS text), 200, 'x') FROM lines)";
    let shop = "lpad(CAST(shop AS text), 200, 'x')";
    let text = format!("SELECT count(*) FROM shops WHERE {shop} {partner} AND {shop} {partner}");
    let answer = ask(&mut session, &text);
    let answer = answer.unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(answer.rows[0][0].as_deref(), Some("100"));
}

/// The same rows on whichever side they are kept, with keys that are NULL.
#[test]
fn partners_are_the_same_on_either_side() {
    let keys =
        |count: i64| Int64Array::from_iter((0..count).map(|n| (n % 5 != 0).then_some(n % 20)));
    let few = batch(vec![("n", numbers(10)), ("k", array(keys(10)))]);
    let many = batch(vec![("m", numbers(2_000)), ("k", array(keys(2_000)))]);
    let archive = tar(&[
        ("few.parquet", &parquet(&few)[..]),
        ("many.parquet", &parquet(&many)),
    ]);
    let directory = directory(&[("both.tar", &archive)]);
    let mut session = open(directory.path(), "both.tar").unwrap();
    let partner = "SELECT FROM few p WHERE p.k = m.k";
    for (condition, count) in [
        // Eight of twenty keys have a value and are among the first ten.
        ("m.k IN (SELECT k FROM few)", "800"),
        ("m.k IN (SELECT k FROM few WHERE k > 5)", "400"),
        ("m.k NOT IN (SELECT k FROM few)", "0"),
        ("m.k NOT IN (SELECT k FROM few WHERE k > 5)", "1200"),
        ("(m.k IN (SELECT k FROM few) OR m.m <= 3)", "801"),
        (&format!("EXISTS ({partner})"), "800"),
        (&format!("NOT EXISTS ({partner})"), "1200"),
        // But for the first twenty.
        (&format!("EXISTS ({partner} AND p.n < m.m)"), "792"),
        (
            &format!("NOT EXISTS ({partner} AND p.n + 1000 > m.m)"),
            "1600",
        ),
    ] {
        // Of a join, so that its sides may be others.
        for from in ["many m", "many m JOIN few f ON f.n = m.m % 10 + 1"] {
            let text = format!("SELECT count(*) FROM {from} WHERE {condition}");
            let answer = ask(&mut session, &text);
            let answer = answer.unwrap_or_else(|error| panic!("{text}: {error:?}"));
            assert_eq!(answer.lines(), [count], "{text}");
        }
    }
}

/// On a stack as large as a debug build needs: `host/conformance/tests/files.rs` has what fits into a component's.
#[test]
fn what_nests_too_deep_is_refused() {
    let nests = std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(nests);
    nests.unwrap().join().unwrap();
}

/// `WITH` of so many, each of the last.
fn chain(count: usize, next: impl Fn(usize) -> String) -> String {
    let parts = (1..count).map(|at| format!(", c{at} AS ({})", next(at - 1)));
    format!("WITH c0 AS (SELECT 1 AS x){}", parts.collect::<String>())
}

fn nests() {
    let (_directory, mut session) = file("t.csv", b"n\n1\n");
    for text in [
        format!("SELECT {}1", "1+".repeat(5_000)),
        format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000)),
        format!("SELECT {}true", "NOT ".repeat(5_000)),
        format!("SELECT {}1{}", "abs(".repeat(500), ")".repeat(500)),
        format!("SELECT 1 {}", "UNION ALL SELECT 1 ".repeat(500)),
        format!("SELECT 1 {}", "IN (true) ".repeat(5_000)),
        format!("SELECT 'a' {}", "ILIKE 'a' ".repeat(5_000)),
        format!("SELECT now() {}", "AT TIME ZONE 'UTC' ".repeat(5_000)),
        format!("SELECT 'a' {}", "COLLATE \"C\" ".repeat(5_000)),
        format!(
            "SELECT count(*) FROM {}t",
            (0..5_000).map(|n| format!("t a{n}, ")).collect::<String>()
        ),
        format!(
            "{} SELECT x FROM c499",
            chain(500, |last| format!("SELECT x FROM c{last}"))
        ),
        format!(
            "{} SELECT x FROM c30",
            chain(31, |last| format!("SELECT p.x FROM c{last} p, c{last} q"))
        ),
    ] {
        let error = ask(&mut session, &text).err().unwrap();
        let is_told = ["statement_too_deep", "syntax_error"].contains(&error.code.as_str());
        assert!(is_told, "{}: {error:?}", &text[..60]);
        let is_recursion = text.contains("((") || text.contains("abs(");
        assert!(
            is_recursion || error.code == "statement_too_deep",
            "{}: {error:?}",
            &text[..60]
        );
    }
    let text = format!(
        "{} SELECT x FROM c99",
        chain(100, |last| format!("SELECT x FROM c{last}"))
    );
    assert_eq!(ask(&mut session, &text).unwrap().lines(), ["1"]);
    let text = format!(
        "SELECT count(*) FROM (SELECT 1 {}) AS x",
        "UNION ALL SELECT 1 ".repeat(200)
    );
    assert_eq!(ask(&mut session, &text).unwrap().lines(), ["201"]);
    let text = format!("SELECT {}1", "1+".repeat(390));
    assert_eq!(ask(&mut session, &text).unwrap().lines(), ["391"]);
}
