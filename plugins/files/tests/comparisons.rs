//! What a statement compares is compared as it is: times of day of all units, floats beside decimals, rows and spans of time.

mod common;

use common::{array, arrow, ask, batch, file, numbers, parquet, rows};
use datafusion::arrow::array::*;
use souk_sdk::Value;
use std::sync::Arc;

/// Parameters and literals have a unit of their own.
#[test]
fn times_of_day_of_all_units_are_compared() {
    // Midnight, a second, a minute, and none.
    let millis: [Option<i32>; 4] = [Some(0), Some(1_000), Some(60_000), None];
    let of_both = vec![
        ("n", numbers(4)),
        ("ms", array(Time32MillisecondArray::from(millis.to_vec()))),
        (
            "us",
            array(Time64MicrosecondArray::from_iter(
                millis.map(|millis| millis.map(|millis| i64::from(millis) * 1_000)),
            )),
        ),
        (
            "ns",
            array(Time64NanosecondArray::from_iter(millis.map(|millis| {
                millis.map(|millis| i64::from(millis) * 1_000_000)
            }))),
        ),
    ];
    let seconds = Time32SecondArray::from_iter(millis.map(|millis| millis.map(|ms| ms / 1_000)));
    let mut of_arrow = of_both.clone();
    of_arrow.push(("s", array(seconds)));
    for (name, bytes, columns) in [
        (
            "t.parquet",
            parquet(&batch(of_both)),
            &["ms", "us", "ns"][..],
        ),
        (
            "t.arrow",
            arrow(&batch(of_arrow), None),
            &["ms", "us", "ns", "s"],
        ),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for column in columns {
            for (condition, micros, wanted) in [
                ("= $1", 1_000_000, "2"),
                ("= $1", 1_000_001, ""),
                ("<> $1", 1_000_001, "1 2 3"),
                ("> $1", 999_999, "2 3"),
                ("> $1", 1_000_000, "3"),
                (">= $1", 1_000_000, "2 3"),
                ("< $1", 1_000_001, "1 2"),
                ("IN ($1)", 1_000_000, "2"),
                ("NOT IN ($1)", 1_000_000, "1 3"),
                ("BETWEEN TIME '00:00:00.5' AND $1", 1_000_001, "2"),
                ("NOT BETWEEN TIME '00:00:00.5' AND $1", 1_000_001, "1 3"),
                ("IS NOT DISTINCT FROM $1", 60_000_000, "3"),
            ] {
                let condition = format!("{column} {condition}");
                let found = rows(&mut session, &condition, vec![Value::Time(micros)]);
                assert_eq!(found, wanted, "{name}: {condition}, {micros}");
            }
            let found = rows(
                &mut session,
                &format!("{column} = TIME '00:01:00'"),
                Vec::new(),
            );
            assert_eq!(found, "3", "{name}: {column}");
        }
        let found = rows(&mut session, "ms = us AND us = ns", Vec::new());
        assert_eq!(found, "1 2 3", "{name}");
        let joined = "SELECT count(*) FROM t a JOIN t b ON a.ms = b.ns";
        assert_eq!(ask(&mut session, joined).unwrap().lines(), ["3"], "{name}");
    }
}

/// A number with a point is a decimal, and beside a float it is a float.
#[test]
fn floats_are_compared_with_what_is_written() {
    let floats = [1e-20, 0.1, 0.5, 1e300, f64::INFINITY, f64::NAN];
    let rows_of = batch(vec![
        ("n", numbers(7)),
        (
            "f",
            array(Float64Array::from_iter(
                floats.map(Some).into_iter().chain([None]),
            )),
        ),
        (
            "r",
            array(Float32Array::from_iter([
                Some(0.5),
                None,
                None,
                None,
                None,
                None,
                None,
            ])),
        ),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        // What is no number is greater than all that are, as in PostgreSQL.
        for (condition, wanted) in [
            ("f > 0.0", "1 2 3 4 5 6"),
            ("0.0 < f", "1 2 3 4 5 6"),
            ("f = 0.1", "2"),
            ("f <= 0.1", "1 2"),
            ("f IN (0.5, 0.1)", "2 3"),
            ("f NOT IN (0.5, 0.1)", "1 4 5 6"),
            ("f BETWEEN 0.05 AND 0.5", "2 3"),
            ("f NOT BETWEEN 0.05 AND 0.5", "1 4 5 6"),
            ("f > CAST(0.1 AS decimal(38, 37))", "3 4 5 6"),
            ("r = 0.5", "1"),
            ("CASE f WHEN 0.5 THEN true ELSE false END", "3"),
        ] {
            let found = rows(&mut session, condition, Vec::new());
            assert_eq!(found, wanted, "{name}: {condition}");
        }
        for chosen in [
            "coalesce(f, 0.5)",
            "CASE WHEN f IS NULL THEN 0.5 ELSE f END",
        ] {
            let sql = format!("SELECT {chosen} FROM t ORDER BY n");
            let answer = ask(&mut session, &sql).unwrap();
            let told = floats.map(|float| float.to_string());
            let told: Vec<String> = told.into_iter().chain(["0.5".to_owned()]).collect();
            assert_eq!(answer.lines(), told, "{name}: {sql}");
        }
        let sql = "SELECT f > 0.25, count(*) FROM t WHERE f < 1.0 GROUP BY f > 0.25 ORDER BY 1";
        assert_eq!(
            ask(&mut session, sql).unwrap().lines(),
            ["false|2", "true|1"],
            "{name}"
        );
        let sql = "SELECT n FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.f > 0.25 AND b.n = a.n + 1) ORDER BY n";
        assert_eq!(
            ask(&mut session, sql).unwrap().lines(),
            ["2", "3", "4", "5"],
            "{name}"
        );
    }
}

/// A float of 32 bits is compared as it is shown, with numbers that are written down or bound.
#[test]
fn short_floats_are_compared_as_they_are_shown() {
    let floats = [
        0.1,
        0.2,
        16_777_216.0,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
        -0.1,
        -0.0,
    ];
    let shown = floats.map(Some).into_iter().chain([None]);
    let rows_of = batch(vec![
        ("n", numbers(9)),
        ("r", array(Float32Array::from_iter(shown))),
        ("f", array(Float64Array::from(vec![0.1; 9]))),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for (condition, wanted) in [
            ("= $1", "1"),
            ("<> $1", "2 3 4 5 6 7 8"),
            ("> $1", "2 3 4 5 6"),
            (">= $1", "1 2 3 4 5 6"),
            ("< $1", "7 8"),
            ("<= $1", "1 7 8"),
            ("IN ($1)", "1"),
            ("IN ($1, 0.2, 7)", "1 2"),
            ("NOT IN ($1, 0.2)", "3 4 5 6 7 8"),
            ("BETWEEN $1 AND 0.2", "1 2"),
            ("NOT BETWEEN $1 AND 0.2", "3 4 5 6 7 8"),
            ("IS NOT DISTINCT FROM $1", "1"),
            ("IS DISTINCT FROM $1", "2 3 4 5 6 7 8 9"),
        ] {
            let condition = format!("r {condition}");
            let found = rows(&mut session, &condition, vec![Value::Float64(0.1)]);
            assert_eq!(found, wanted, "{name}: {condition}");
        }
        for (condition, wanted) in [
            ("r = 0.1", "1"),
            ("0.1 = r", "1"),
            ("0.1 < r", "2 3 4 5 6"),
            ("r = -0.1", "7"),
            ("r = 0", "8"),
            ("r = 0.10000000149011612", ""),
            ("r < 0.10000000149011612", "1 7 8"),
            ("r > 0.09999999999", "1 2 3 4 5 6"),
            ("r >= 0.10000000001", "2 3 4 5 6"),
            ("r IN (0.10000000149011612)", ""),
            ("r NOT IN (0.10000000149011612)", "1 2 3 4 5 6 7 8"),
            ("r IN (0.10000000149011612, 0.2)", "2"),
            ("r = 16777216", "3"),
            ("r = 16777217", ""),
            ("r > 16777217", "4 5 6"),
            ("r > CAST('1e39' AS double)", "5 6"),
            ("r < CAST('1e39' AS double)", "1 2 3 4 7 8"),
            ("r = CAST('NaN' AS double)", "6"),
            ("r > 0.1 AND r < 0.3", "2"),
            (
                "CASE r WHEN 0.10000000149 THEN false WHEN 0.1 THEN true ELSE false END",
                "1",
            ),
            // What is not written down is compared bit by bit.
            ("r = f", ""),
        ] {
            let found = rows(&mut session, condition, Vec::new());
            assert_eq!(found, wanted, "{name}: {condition}");
        }
    }
}

/// `(a, b) > (1, 2)`: pages begin so. Each column is compared as it is, and NULL is not known.
#[test]
fn rows_are_compared_column_by_column() {
    let rows_of = batch(vec![
        ("n", numbers(6)),
        (
            "r",
            array(Float32Array::from(vec![
                Some(0.1),
                Some(0.1),
                Some(0.2),
                Some(0.2),
                Some(-1.0),
                None,
            ])),
        ),
        (
            "ms",
            array(Time32MillisecondArray::from(vec![1, 2, 1, 2, 3, 3])),
        ),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        let place = || vec![Value::Float64(0.1), Value::Time(2_000)];
        for (condition, wanted) in [
            ("(r, ms) = ($1, $2)", "2"),
            ("(r, ms) <> ($1, $2)", "1 3 4 5 6"),
            ("(r, ms) > ($1, $2)", "3 4"),
            ("(r, ms) >= ($1, $2)", "2 3 4"),
            ("(r, ms) < ($1, $2)", "1 5"),
            ("(r, ms) <= ($1, $2)", "1 2 5"),
            ("NOT (r, ms) > ($1, $2)", "1 2 5"),
        ] {
            let found = rows(&mut session, condition, place());
            assert_eq!(found, wanted, "{name}: {condition}");
        }
        let three = "(r, ms, n) > ($1, $2, $3)";
        for (last, wanted) in [(1, "2 3 4"), (2, "3 4")] {
            let values = [place(), vec![Value::Int64(last)]].concat();
            assert_eq!(rows(&mut session, three, values), wanted, "{name}: {last}");
        }
    }
}

/// A zero with a sign is the one without, and what is no number is one and greater than all that are, also where it is computed: so that no
/// row is lost between two pages.
#[test]
fn zeros_are_one_and_so_is_what_is_no_number() {
    let floats = [-0.0, 0.0, -f64::NAN, f64::NAN, 1.0, -1.0];
    let singles = floats.map(|float| float as f32);
    let rows_of = batch(vec![
        ("n", numbers(6)),
        ("f", array(Float64Array::from(floats.to_vec()))),
        ("r", array(Float32Array::from(singles.to_vec()))),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for column in ["f", "r"] {
            for (condition, wanted) in [
                ("COLUMN = 0", "1 2"),
                ("COLUMN IN (0, 7)", "1 2"),
                ("COLUMN NOT IN (0, 7)", "3 4 5 6"),
                ("COLUMN >= 0", "1 2 3 4 5"),
                ("COLUMN > 5", "3 4"),
                ("CASE COLUMN WHEN 0 THEN true ELSE false END", "1 2"),
                ("(COLUMN, n) > (0, 1)", "2 3 4 5"),
                ("n < 3 AND COLUMN / COLUMN > 5", "1 2"),
                ("n < 3 AND COLUMN * -1 IN (0, 7)", "1 2"),
                ("CAST('-0' AS double) IN (0, 7) AND n = 1", "1"),
            ] {
                let condition = condition.replace("COLUMN", column);
                let found = rows(&mut session, &condition, Vec::new());
                assert_eq!(found, wanted, "{name}: {condition}");
            }
            for (order, wanted) in [
                ("COLUMN, n", "6 1 2 5 3 4"),
                ("COLUMN DESC, n", "3 4 5 1 2 6"),
                ("COLUMN * -1, n", "5 1 2 6 3 4"),
                ("-COLUMN, n", "5 1 2 6 3 4"),
                ("COLUMN, n LIMIT 3", "6 1 2"),
            ] {
                let order = order.replace("COLUMN", column);
                let sql = format!("SELECT n FROM t ORDER BY {order}");
                let found = ask(&mut session, &sql).unwrap().lines().join(" ");
                assert_eq!(found, wanted, "{name}: {sql}");
            }
            let sql = format!("SELECT {column}, count(*) FROM t GROUP BY 1 ORDER BY 1");
            let groups = ask(&mut session, &sql).unwrap().lines();
            assert_eq!(groups, ["-1|1", "0|2", "1|1", "NaN|2"], "{name}: {sql}");
            let sql = format!("SELECT count(DISTINCT {column}) FROM t");
            assert_eq!(ask(&mut session, &sql).unwrap().lines(), ["4"], "{name}");
        }
        let bound = rows(&mut session, "f IN ($1)", vec![Value::Float64(-0.0)]);
        assert_eq!(bound, "1 2", "{name}");
        // Columns are called as before.
        let answer = ask(&mut session, "SELECT f, f * 2, abs(f) FROM t WHERE n = 5").unwrap();
        let names = answer.columns.iter().map(|column| column.name.as_str());
        let names: Vec<&str> = names.collect();
        assert_eq!(names, ["f", "t.f * Int64(2)", "abs(t.f)"], "{name}");
        assert_eq!(answer.lines(), ["1|2|1"], "{name}");
        let joined = "SELECT count(*) FROM t a JOIN t b ON a.f = b.f WHERE a.n < b.n";
        assert_eq!(ask(&mut session, joined).unwrap().lines(), ["2"], "{name}");
    }
}

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

/// Of spans that are equally long the first one stands for all.
#[test]
fn spans_are_grouped_by_their_length() {
    let (_directory, mut session) = file("t.csv", b"n\n1\n");
    const SPANS: &str = "(VALUES (1, INTERVAL '1 month'), (2, INTERVAL '30 days'), (3, INTERVAL '720 hours'), (4, INTERVAL '1 day'), (5, NULL), (6, NULL)) AS v(n, s)";
    for (what, wanted) in [
        (
            "s IS NULL, count(*), min(n) FROM SPANS GROUP BY s ORDER BY min(n)",
            &["false|3|1", "false|1|4", "true|2|5"][..],
        ),
        (
            "s > INTERVAL '2 days', max(n), n > 0 FROM SPANS GROUP BY n > 0, s HAVING count(*) < 3 ORDER BY max(n)",
            &["false|4|true", "~|6|true"],
        ),
        (
            "extract(month FROM s), count(*) FROM SPANS GROUP BY s HAVING count(*) > 2",
            &["1|3"],
        ),
        ("count(*) FROM (SELECT DISTINCT s FROM SPANS) AS x", &["3"]),
        (
            "count(*) FROM (SELECT DISTINCT s, n > 2 FROM SPANS) AS x",
            &["4"],
        ),
        (
            "count(*) FROM (SELECT s FROM SPANS UNION SELECT INTERVAL '24 hours') AS x",
            &["3"],
        ),
        (
            "count(*) FROM (SELECT s FROM SPANS WHERE n = 1 INTERSECT SELECT INTERVAL '720 hours') AS x",
            &["1"],
        ),
        (
            "count(*) FROM (SELECT s FROM SPANS WHERE n < 4 EXCEPT SELECT INTERVAL '30 days') AS x",
            &["0"],
        ),
        (
            "count(DISTINCT s), count(DISTINCT s) FILTER (WHERE n < 4), count(s) FROM SPANS",
            &["2|1|4"],
        ),
        (
            "DISTINCT ON (s) n FROM SPANS ORDER BY s, n",
            &["4", "1", "5"],
        ),
        (
            "s IS NULL, count(*), min(n), grouping(s) FROM SPANS GROUP BY ROLLUP (s) ORDER BY 4, 3",
            &["false|3|1|0", "false|1|4|0", "true|2|5|0", "true|6|1|1"],
        ),
        (
            "c, s IS NULL, more FROM (SELECT count(*) AS c, s, n > 4 AS more FROM SPANS GROUP BY CUBE (s, n > 4)) AS x ORDER BY 1, 2, 3",
            &[
                "1|false|false",
                "1|false|~",
                "2|true|true",
                "2|true|true",
                "2|true|~",
                "3|false|false",
                "3|false|~",
                "4|true|false",
                "6|true|~",
            ],
        ),
        (
            "max(n), count(*) FROM SPANS GROUP BY GROUPING SETS ((s), (n > 4), ()) ORDER BY 1, 2",
            &["3|3", "4|1", "4|4", "6|2", "6|2", "6|6"],
        ),
        (
            "s IS NULL, g FROM (SELECT s, grouping(s) AS g FROM SPANS GROUP BY s) AS x ORDER BY 1",
            &["false|0", "false|0", "true|0"],
        ),
        (
            "count(*), grouping(n) FROM SPANS WHERE n < 4 GROUP BY GROUPING SETS ((s), (s, n)) ORDER BY 1",
            &["1|0", "1|0", "1|0", "3|1"],
        ),
        (
            "extract(month FROM s), count(*) FROM SPANS GROUP BY ROLLUP (s) HAVING count(*) > 2 ORDER BY 2",
            &["1|3", "~|6"],
        ),
    ] {
        let sql = format!("SELECT {}", what.replace("SPANS", SPANS));
        let answer = ask(&mut session, &sql);
        let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(answer.lines(), wanted, "{sql}");
    }
    let sql = format!("SELECT s, count(DISTINCT s) FROM {SPANS} GROUP BY s");
    let answer = ask(&mut session, &sql).unwrap();
    let names = answer.columns.iter().map(|column| column.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["s", "count(DISTINCT v.s)"]);
    let sql = format!("SELECT s, grouping(s) FROM {SPANS} GROUP BY ROLLUP (s)");
    let answer = ask(&mut session, &sql).unwrap();
    let names = answer.columns.iter().map(|column| column.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["s", "grouping(v.s)"]);
}

/// Keys that are computed otherwise than DataFusion does are keys of sets, too, and `grouping` knows them.
#[test]
fn sets_of_groups_have_computed_keys() {
    let (_directory, mut session) = file("t.csv", b"n\n1\n");
    const TIMES: &str = "(VALUES (1, TIMESTAMP '2026-01-01 00:00:01.5'), (2, TIMESTAMP '2026-01-01 00:00:01.25'), (3, TIMESTAMP '2026-01-01 00:01:01.5')) AS v(n, t)";
    for (what, wanted) in [
        (
            "count(*), grouping(extract(second FROM t)) FROM TIMES GROUP BY ROLLUP (extract(second FROM t)) ORDER BY 2, 1",
            &["1|0", "2|0", "3|1"][..],
        ),
        (
            "e = 1.5, c FROM (SELECT extract(second FROM t) AS e, count(*) AS c FROM TIMES GROUP BY GROUPING SETS ((extract(second FROM t)), (n, extract(second FROM t)), ())) AS x ORDER BY 1, 2",
            &["false|1", "false|1", "true|1", "true|1", "true|2", "~|3"],
        ),
        (
            "extract(minute FROM t), count(*) FROM TIMES GROUP BY CUBE (extract(minute FROM t), extract(second FROM t)) HAVING count(*) > 1 ORDER BY 1, 2",
            &["0|2", "~|2", "~|3"],
        ),
        (
            "n + 1, grouping(n + 1), max(n + 1), count(*) FROM TIMES GROUP BY ROLLUP (n + 1) ORDER BY 1",
            &["2|0|2|1", "3|0|3|1", "4|0|4|1", "~|1|4|3"],
        ),
        (
            "n + 1, count(*) FROM TIMES GROUP BY GROUPING SETS ((n + 1), (n + 1, t), (t)) ORDER BY 1, 2",
            &[
                "2|1", "2|1", "3|1", "3|1", "4|1", "4|1", "~|1", "~|1", "~|1",
            ],
        ),
    ] {
        let sql = format!("SELECT {}", what.replace("TIMES", TIMES));
        let answer = ask(&mut session, &sql);
        let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(answer.lines(), wanted, "{sql}");
    }
}

/// In lists and structures, too.
#[test]
fn zeros_in_lists_are_one() {
    use datafusion::arrow::datatypes::{DataType, Field, Float32Type, Float64Type};
    let lists = [Some(vec![Some(-0.0), Some(1.5), None]), Some(vec![]), None];
    let lists = ListArray::from_iter_primitive::<Float64Type, _, _>(lists);
    let pairs = [
        Some(vec![Some(-0.0), Some(-1.0)]),
        Some(vec![None, Some(-0.0)]),
        None,
    ];
    let pairs = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(pairs, 2);
    let floats = array(Float64Array::from(vec![-0.0, 0.0, -f64::NAN]));
    let field = Arc::new(Field::new("f", DataType::Float64, true));
    let text = Arc::new(Field::new("t", DataType::Utf8, true));
    let texts = array(StringArray::from(vec!["é", "", "-0"]));
    let parts = StructArray::from(vec![(field, floats), (text, texts)]);
    let rows_of = batch(vec![
        ("n", numbers(3)),
        ("l", array(lists)),
        ("p", array(pairs)),
        ("s", array(parts)),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        let answer = ask(&mut session, "SELECT l, p, s FROM t ORDER BY n").unwrap();
        assert_eq!(
            answer.lines(),
            [
                r#"[0.0,1.5,null]|[0.0,-1.0]|{"f":0.0,"t":"é"}"#,
                r#"[]|[null,0.0]|{"f":0.0,"t":""}"#,
                r#"~|~|{"f":"NaN","t":"-0"}"#,
            ],
            "{name}"
        );
        let sql = "SELECT count(*) FROM t GROUP BY s['f'] ORDER BY 1";
        assert_eq!(
            ask(&mut session, sql).unwrap().lines(),
            ["1", "2"],
            "{name}"
        );
        let found = rows(&mut session, "array_has(l, CAST(0 AS double))", Vec::new());
        assert_eq!(found, "1", "{name}");
    }
    let (_directory, mut session) = file("t.csv", b"n\n1\n");
    let sql = "SELECT arrow_cast(make_array('-0', '1'), 'List(Float64)') FROM t";
    assert_eq!(ask(&mut session, sql).unwrap().lines(), ["[0.0,1.0]"]);
}
