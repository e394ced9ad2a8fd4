//! Groups: of spans of time by how long these are, and of keys that are computed otherwise than DataFusion does.

use crate::common::{ask, file};

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
        (
            "s IS NULL, count(*) FROM SPANS GROUP BY s ORDER BY 1, 2",
            &["false|1", "false|3", "true|2"],
        ),
        (
            "count(*), s IS NULL, n > 4 FROM SPANS GROUP BY CUBE (s, n > 4) ORDER BY 1, 2, 3",
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

/// An order names by its place what is computed of keys and aggregates, too, and columns are called as without an order.
#[test]
fn what_is_computed_of_groups_is_ordered_by_its_place() {
    let rows = b"n,s\n1,a\n2,\n3,a\n4,b\n";
    for (sql, wanted) in [
        (
            "SELECT s IS NULL, count(*) FROM t GROUP BY s ORDER BY 1, 2",
            &["false|1", "false|2", "true|1"][..],
        ),
        (
            "SELECT count(*), s = 'b' FROM t GROUP BY s ORDER BY 2 DESC, 1",
            &["1|~", "1|true", "2|false"],
        ),
        (
            "SELECT CAST(sum(n) AS text) FROM t GROUP BY s ORDER BY 1 DESC LIMIT 2",
            &["4", "4"],
        ),
        (
            "SELECT upper(s) || '!', max(n) + 1 FROM t GROUP BY s HAVING count(*) > 1 ORDER BY 2, 1",
            &["A!|4"],
        ),
        (
            "SELECT s, -sum(n) FROM t GROUP BY s ORDER BY 2, s",
            &["a|-4", "b|-4", "~|-2"],
        ),
        (
            "SELECT s IS NULL, count(*), grouping(s) FROM t GROUP BY ROLLUP (s) ORDER BY 3, 1, 2",
            &["false|1|0", "false|2|0", "true|1|0", "true|4|1"],
        ),
        (
            "SELECT CAST(x.c AS text) FROM (SELECT s IS NULL, count(*) AS c FROM t GROUP BY s ORDER BY 1 DESC LIMIT 1) AS x",
            &["1"],
        ),
        (
            "WITH g AS (SELECT count(*) + 1 FROM t ORDER BY 1) SELECT * FROM g",
            &["5"],
        ),
        (
            "SELECT TIMESTAMP '2026-01-01 00:00:00' AT TIME ZONE 'UTC' IS NULL, max(n) - min(n) FROM t GROUP BY s ORDER BY 2",
            &["false|0", "false|0", "false|2"],
        ),
    ] {
        let told = |sql: &str| {
            // One of its own, since a shape is told once.
            let (_directory, mut session) = file("t.csv", rows);
            let answer = ask(&mut session, sql);
            answer.unwrap_or_else(|error| panic!("{sql}: {error:?}"))
        };
        let names = |sql: &str| -> Vec<String> {
            let columns = told(sql).columns.into_iter();
            columns.map(|column| column.name).collect()
        };
        assert_eq!(told(sql).lines(), wanted, "{sql}");
        if let Some((unordered, order)) = sql.rsplit_once(" ORDER BY ")
            && !order.contains(')')
        {
            assert_eq!(names(sql), names(unordered), "{sql}");
        }
    }
    let (_directory, mut session) = file("t.csv", rows);
    for sql in [
        "SELECT n IS NULL, count(*) FROM t GROUP BY s ORDER BY 1",
        "SELECT s IS NULL, count(*) FROM t GROUP BY s ORDER BY 3",
    ] {
        let error = ask(&mut session, sql).err();
        let code = error.map(|error| error.code);
        assert_eq!(code.as_deref(), Some("statement_failed"), "{sql}");
    }
}
