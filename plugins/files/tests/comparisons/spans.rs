//! Spans of time are compared, sorted and joined by how long they are.

use crate::common::{array, arrow, ask, batch, file, numbers, parquet, rows};
use datafusion::arrow::array::*;

/// Spans are compared by how long they are, of a day 24 hours and of a month 30 days, as PostgreSQL does.
#[test]
fn spans_are_compared_by_their_length() {
    const DAY: i64 = 86_400_000;
    let from = TimestampMillisecondArray::from(vec![0, 0, 0]);
    let till = TimestampMillisecondArray::from(vec![3_600_000, DAY, 30 * DAY]);
    let rows_of = batch(vec![
        ("n", numbers(3)),
        ("a", array(from)),
        ("b", array(till)),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for (condition, wanted) in [
            ("b - a > INTERVAL '1 day'", "3"),
            ("b - a >= INTERVAL '24 hours'", "2 3"),
            ("b - a = INTERVAL '1 day'", "2"),
            ("b - a = INTERVAL '1 month'", "3"),
            ("INTERVAL '2 hours' > b - a", "1"),
            (
                "b - a BETWEEN INTERVAL '1 hour' AND INTERVAL '1 day'",
                "1 2",
            ),
            ("b - a IN (INTERVAL '1 hour', INTERVAL '30 days')", "1 3"),
            ("b - a NOT IN (INTERVAL '1 hour')", "2 3"),
            ("INTERVAL '1 day' = INTERVAL '24 hours'", "1 2 3"),
            ("INTERVAL '31 days' > INTERVAL '1 month'", "1 2 3"),
            (
                "b - a IN (SELECT s FROM (VALUES (INTERVAL '1 month'), (INTERVAL '60 minutes')) AS v(s))",
                "1 3",
            ),
            (
                "b - a = ANY (SELECT s FROM (VALUES (INTERVAL '1 month'), (INTERVAL '60 minutes')) AS v(s))",
                "1 3",
            ),
            (
                "b - a >= ALL (SELECT s FROM (VALUES (INTERVAL '24 hours'), (INTERVAL '60 minutes')) AS v(s))",
                "2 3",
            ),
            (
                "b - a NOT IN (SELECT s FROM (VALUES (INTERVAL '1 month')) AS v(s))",
                "1 2",
            ),
            (
                "CASE b - a WHEN INTERVAL '1 month' THEN true WHEN INTERVAL '60 minutes' THEN true ELSE false END",
                "1 3",
            ),
            (
                "CASE INTERVAL '1 month' WHEN INTERVAL '30 days' THEN n < 2 ELSE n > 1 END",
                "1",
            ),
            (
                "nullif(INTERVAL '1 month', INTERVAL '30 days') IS NULL",
                "1 2 3",
            ),
            (
                "nullif(INTERVAL '1 month', INTERVAL '31 days') IS NOT NULL",
                "1 2 3",
            ),
            ("greatest(b - a, INTERVAL '1 day') = b - a", "2 3"),
            ("least(b - a, INTERVAL '25 hours', NULL) = b - a", "1 2"),
        ] {
            let found = rows(&mut session, condition, Vec::new());
            assert_eq!(found, wanted, "{name}: {condition}");
        }
    }
}

/// The least and the greatest, of all, of groups and of windows, are those that are shortest and longest, and joins are by their length.
#[test]
fn extremes_of_spans_are_by_their_length() {
    let (_directory, mut session) = file("t.csv", b"n\n1\n");
    const SPANS: &str = "(VALUES (1, INTERVAL '1 month'), (1, INTERVAL '40 days'), (2, INTERVAL '25 hours'), (2, INTERVAL '1 day'), (3, NULL)) AS v(n, s)";
    for (what, wanted) in [
        (
            "CAST(max(s) AS text), CAST(min(s) AS text) FROM SPANS",
            &["40 days|1 days"][..],
        ),
        (
            "n, max(s) = INTERVAL '40 days', min(s) = INTERVAL '30 days' FROM SPANS GROUP BY n ORDER BY n",
            &["1|true|true", "2|false|false", "3|~|~"],
        ),
        (
            "max(s) FILTER (WHERE n = 2) = INTERVAL '25 hours' FROM SPANS",
            &["true"],
        ),
        (
            "n, max(s) OVER (PARTITION BY n) > INTERVAL '1 month' FROM SPANS ORDER BY n, s",
            &["1|true", "1|true", "2|false", "2|false", "3|~"],
        ),
        (
            "min(s) OVER (ORDER BY n, s ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) = s FROM SPANS ORDER BY n, s",
            &["true", "false", "true", "false", "~"],
        ),
        (
            "rank() OVER (ORDER BY s) FROM SPANS ORDER BY s",
            &["1", "2", "3", "4", "5"],
        ),
        (
            "CAST(first_value(s ORDER BY s DESC NULLS LAST) AS text) FROM SPANS",
            &["40 days"],
        ),
        (
            "count(*) FROM SPANS JOIN (VALUES (INTERVAL '30 days')) AS w(o) ON v.s = w.o",
            &["1"],
        ),
        (
            "count(*) FROM SPANS JOIN (VALUES (INTERVAL '24 hours')) AS w(s) USING (s)",
            &["1"],
        ),
        (
            "DISTINCT n FROM SPANS JOIN (VALUES (INTERVAL '24 hours')) AS w(s) USING (s)",
            &["2"],
        ),
        (
            "DISTINCT f FROM (VALUES ('1.5'), ('2')) AS a(f) JOIN (VALUES (CAST('1.5' AS double))) AS b(f) USING (f)",
            &["1.5"],
        ),
    ] {
        let sql = format!("SELECT {}", what.replace("SPANS", SPANS));
        let answer = ask(&mut session, &sql);
        let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(answer.lines(), wanted, "{sql}");
    }
    let sql = format!("SELECT max(s) FROM {SPANS}");
    let answer = ask(&mut session, &sql).unwrap();
    assert_eq!(answer.columns[0].name, "max(v.s)");
}
