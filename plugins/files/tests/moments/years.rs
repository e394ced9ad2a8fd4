//! Moments are of any year, also beside others in nanoseconds, which reach from 1677 to 2262.

use crate::common::{array, arrow, ask, batch, file, numbers, parquet, rows};
use datafusion::arrow::array::*;
use souk_sdk::Value;

/// Nanoseconds do not reach the year 9999, which is later than all of them.
#[test]
fn moments_beyond_nanoseconds_are_compared() {
    const LAST: i64 = 253_402_300_799_999_999;
    let nanos = TimestampNanosecondArray::from(vec![Some(0), Some(i64::MAX), None]);
    let rows_of = batch(vec![("n", numbers(3)), ("at", array(nanos))]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for (condition, micros, wanted) in [
            ("< $1", LAST, "1 2"),
            ("= $1", LAST, ""),
            ("<> $1", LAST, "1 2"),
            (">= $1", LAST, ""),
            ("> $1", -LAST, "1 2"),
            ("IN ($1)", LAST, ""),
            ("IN ($1, TIMESTAMP '1970-01-01 00:00:00')", LAST, "1"),
            ("IN ($1, TIMESTAMP '1970-01-01 00:00:00')", 1, "1"),
        ] {
            let condition = format!("\"at\" {condition}");
            let value = Value::LocalTimestamp(micros);
            let found = rows(&mut session, &condition, vec![value]);
            assert_eq!(found, wanted, "{name}: {condition}, {micros}");
        }
        for (condition, wanted) in [
            ("\"at\" < '9999-12-31'", "1 2"),
            ("\"at\" < DATE '9999-12-31'", "1 2"),
            ("\"at\" > '0001-01-01 00:00:00'", "1 2"),
            ("\"at\" IN ('9999-12-31', '1970-01-01')", "1"),
            ("\"at\" < TIMESTAMP '9999-12-31 00:00:00'", "1 2"),
            ("TIMESTAMP '9999-12-31 00:00:00' <= \"at\"", ""),
            ("\"at\" <> '0001-01-01 00:00:00'::timestamp", "1 2"),
        ] {
            let found = rows(&mut session, condition, Vec::new());
            assert_eq!(found, wanted, "{name}: {condition}");
        }
    }
}

/// A moment is cut in its own unit, whatever its year, and a date as a moment.
#[test]
fn moments_of_all_years_are_truncated() {
    // The last microsecond of the year 9999, and the second one of the year 1.
    let micros =
        || TimestampMicrosecondArray::from(vec![253_402_300_799_999_999, -62_135_596_799_999_999]);
    let rows_of = batch(vec![
        ("n", numbers(2)),
        ("local", array(micros())),
        ("at", array(micros().with_timezone("UTC"))),
        ("day", array(Date32Array::from(vec![2_932_896, -719_162]))),
        (
            "ns",
            array(TimestampNanosecondArray::from(vec![i64::MIN, i64::MAX])),
        ),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for column in ["local", "at"] {
            for (granule, last) in [
                ("microsecond", "9999-12-31 23:59:59.999999"),
                ("millisecond", "9999-12-31 23:59:59.999"),
                ("second", "9999-12-31 23:59:59"),
                ("minute", "9999-12-31 23:59:00"),
                ("hour", "9999-12-31 23:00:00"),
                ("day", "9999-12-31 00:00:00"),
                ("week", "9999-12-27 00:00:00"),
                ("month", "9999-12-01 00:00:00"),
                ("quarter", "9999-10-01 00:00:00"),
                ("YEAR", "9999-01-01 00:00:00"),
            ] {
                let condition = format!("date_trunc('{granule}', \"{column}\") = '{last}'");
                let found = rows(&mut session, &condition, Vec::new());
                assert_eq!(found, "1", "{name}: {condition}");
            }
            let first = format!("date_trunc('month', \"{column}\") = '0001-01-01 00:00:00'");
            let found = rows(&mut session, &first, Vec::new());
            assert_eq!(found, "2", "{name}: {first}");
        }
        for (condition, wanted) in [
            ("date_trunc('month', \"day\") = DATE '9999-12-01'", "1"),
            ("date_trunc('year', \"day\") = '0001-01-01 00:00:00'", "2"),
            (
                "date_trunc('quarter', DATE '9999-12-31') = '9999-10-01 00:00:00'",
                "1 2",
            ),
            (
                "date_trunc('day', TIMESTAMP '9999-12-31 12:00:00') = '9999-12-31 00:00:00'",
                "1 2",
            ),
            (
                "date_trunc('day', '9999-12-31 12:00:00') = '9999-12-31 00:00:00'",
                "1 2",
            ),
            // Nanoseconds begin in September 1677, of which year they have no first day.
            (
                "n = 2 AND date_trunc('year', ns) = '2262-01-01 00:00:00'",
                "2",
            ),
        ] {
            let found = rows(&mut session, condition, Vec::new());
            assert_eq!(found, wanted, "{name}: {condition}");
        }
        for granule in ["year", "microsecond"] {
            let sql = format!("SELECT date_trunc('{granule}', ns) FROM t");
            let error = ask(&mut session, &sql).err().unwrap();
            assert_eq!(error.code, "value_out_of_range", "{name}: {sql}");
        }
    }
}

/// `now()` is in nanoseconds, which do not reach the year 9999.
#[test]
fn moments_of_all_years_stand_beside_now() {
    let micros =
        || TimestampMicrosecondArray::from(vec![Some(253_402_300_799_999_999), Some(0), None]);
    let rows_of = batch(vec![
        ("n", numbers(3)),
        ("local", array(micros())),
        ("at", array(micros().with_timezone("UTC"))),
        (
            "day",
            array(Date32Array::from(vec![Some(2_932_896), Some(0), None])),
        ),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for column in ["local", "at", "day"] {
            for (condition, wanted) in [
                ("> now()", "1"),
                ("<= now() - INTERVAL '1 day'", "2"),
                ("NOT BETWEEN now() AND now() + INTERVAL '1 year'", "1 2"),
                ("IS DISTINCT FROM current_timestamp", "1 2 3"),
                ("IN (now())", ""),
                ("NOT IN (now(), now() + INTERVAL '1 day')", "1 2"),
                ("IN (now(), TIMESTAMP '1970-01-01 00:00:00')", "2"),
                ("IN (TIMESTAMP '1970-01-01 00:00:00', now())", "2"),
                // Of one unit with the column, beside a finer one.
                ("IN (TIMESTAMP '2020-01-01 00:00:00', SAME)", "1 2"),
            ] {
                let same = match column {
                    "local" => "\"at\"",
                    "at" => "\"local\"",
                    _ => "CAST(\"day\" AS timestamp(6))",
                };
                let condition = condition.replace("SAME", same);
                let condition = format!("\"{column}\" {condition}");
                let found = rows(&mut session, &condition, Vec::new());
                assert_eq!(found, wanted, "{name}: {condition}");
            }
            for condition in [
                format!("now() < \"{column}\""),
                format!("now() BETWEEN TIMESTAMP '2020-01-01 00:00:00' AND \"{column}\""),
            ] {
                let found = rows(&mut session, &condition, Vec::new());
                assert_eq!(found, "1", "{name}: {condition}");
            }
            let condition = format!("now() NOT IN (\"{column}\")");
            let found = rows(&mut session, &condition, Vec::new());
            assert_eq!(found, "1 2", "{name}: {condition}");
        }
    }
}

/// Two columns, of which one is in nanoseconds and the other of years that these do not reach, whatever else stands in a list beside them.
#[test]
fn moments_of_all_years_stand_beside_nanoseconds() {
    const LAST: i64 = 253_402_300_799_999_999;
    // The last moment of nanoseconds is that of no microsecond.
    let nanos = vec![Some(1_000), Some(1_001), Some(i64::MAX), Some(-1), None];
    let micros = vec![Some(1), Some(1), Some(LAST), Some(-LAST), Some(LAST)];
    let days = vec![Some(0), Some(1), Some(2_932_896), Some(-719_162), Some(0)];
    let nanos = || TimestampNanosecondArray::from(nanos.clone());
    let micros = || TimestampMicrosecondArray::from(micros.clone());
    let rows_of = batch(vec![
        ("n", numbers(5)),
        ("ns", array(nanos())),
        ("ns_at", array(nanos().with_timezone("UTC"))),
        ("us", array(micros())),
        ("us_at", array(micros().with_timezone("UTC"))),
        ("day", array(Date32Array::from(days))),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for (us, ns) in [("us", "ns"), ("us_at", "ns"), ("us_at", "ns_at")] {
            for (condition, wanted) in [
                ("us = ns", "1"),
                ("ns = us", "1"),
                ("us <> ns", "2 3 4"),
                ("us < ns", "2 4"),
                ("us >= ns", "1 3"),
                ("NOT ns > us", "1 3"),
                ("us IS NOT DISTINCT FROM ns", "1"),
                ("ns IS DISTINCT FROM us", "2 3 4 5"),
                ("us BETWEEN ns AND ns", "1"),
                ("us IN (ns)", "1"),
                ("us NOT IN (ns)", "2 3 4"),
                ("ns IN (us, '1970-01-01 00:00:00.000001001')", "1 2"),
                ("us IN (ns, TIMESTAMP '1970-01-01 00:00:00.000001')", "1 2"),
                ("us IN (ns, '9999-12-31 23:59:59.999999', NULL)", "1 3 5"),
                ("(us, n) = (ns, 1)", "1"),
                ("ns IN (us, day)", "1"),
                ("day < ns", "1 4"),
                ("day <> ns", "1 2 3 4"),
            ] {
                let condition = condition.replace("us", &format!("\"{us}\""));
                let condition = condition.replace("ns", &format!("\"{ns}\""));
                let found = rows(&mut session, &condition, Vec::new());
                assert_eq!(found, wanted, "{name}: {condition}");
            }
        }
        let sql =
            "SELECT a.n AS one, b.n AS other FROM t AS a JOIN t AS b ON a.us = b.ns ORDER BY 1, 2";
        let answer = ask(&mut session, sql).unwrap();
        assert_eq!(answer.lines(), ["1|1", "2|1"], "{name}");
    }
}

/// What is answered of two moments, of which one is in nanoseconds, is in microseconds, whatever the other's year; what a subquery answers is
/// compared as it is.
#[test]
fn moments_of_all_years_are_chosen_beside_nanoseconds() {
    const LAST: i64 = 253_402_300_799_999_999;
    const LATE: &str = "253402300799999999";
    const EARLY: &str = "-253402300799999999";
    let nanos = vec![Some(1_000), None, Some(3_000), Some(-1_000)];
    let micros = vec![None, Some(LAST), Some(3), Some(-LAST)];
    let nanos = || TimestampNanosecondArray::from(nanos.clone());
    let micros = || TimestampMicrosecondArray::from(micros.clone());
    let rows_of = batch(vec![
        ("n", numbers(4)),
        ("ns", array(nanos())),
        ("ns_at", array(nanos().with_timezone("UTC"))),
        ("us", array(micros())),
        ("us_at", array(micros().with_timezone("UTC"))),
        (
            "fine",
            array(TimestampNanosecondArray::from(vec![1_001; 4])),
        ),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for (us, ns) in [
            ("us", "ns"),
            ("us_at", "ns"),
            ("us", "ns_at"),
            ("us_at", "ns_at"),
        ] {
            let quoted = |text: &str| {
                let text = text.replace("us", &format!("\"{us}\""));
                text.replace("ns", &format!("\"{ns}\""))
            };
            for (chosen, wanted) in [
                ("coalesce(us, ns)", ["1", LATE, "3", EARLY]),
                ("coalesce(ns, us)", ["1", LATE, "3", "-1"]),
                ("coalesce(NULL, ns, us)", ["1", LATE, "3", "-1"]),
                (
                    "coalesce(ns, TIMESTAMP '9999-12-31 23:59:59.999999')",
                    ["1", LATE, "3", "-1"],
                ),
                (
                    "coalesce(ns, DATE '9999-12-31')",
                    ["1", "253402214400000000", "3", "-1"],
                ),
                (
                    "coalesce(us, TIMESTAMP '1970-01-01 00:00:00')",
                    ["0", LATE, "3", EARLY],
                ),
                ("greatest(us, ns)", ["1", LATE, "3", "-1"]),
                ("least(us, ns)", ["1", LATE, "3", EARLY]),
                (
                    "CASE WHEN n < 3 THEN ns ELSE us END",
                    ["1", "~", "3", EARLY],
                ),
                (
                    "CASE WHEN n = 2 THEN us ELSE ns END",
                    ["1", LATE, "3", "-1"],
                ),
                ("nullif(us, ns)", ["~", LATE, "~", EARLY]),
                ("nullif(ns, us)", ["1", "~", "~", "-1"]),
            ] {
                let sql = quoted(&format!("SELECT {chosen} FROM t ORDER BY n"));
                let answer = ask(&mut session, &sql);
                let answer = answer.unwrap_or_else(|error| panic!("{name}: {sql}: {error:?}"));
                assert_eq!(answer.lines(), wanted, "{name}: {sql}");
            }
            for (condition, wanted) in [
                ("us IN (SELECT ns FROM t)", "3"),
                ("ns IN (SELECT us FROM t)", "3"),
                (
                    "us IS NOT NULL AND us NOT IN (SELECT ns FROM t WHERE ns IS NOT NULL)",
                    "2 4",
                ),
                ("us = ANY (SELECT ns FROM t)", "3"),
                (
                    "us IS NOT NULL AND us <= ALL (SELECT ns FROM t WHERE ns IS NOT NULL)",
                    "4",
                ),
                ("us = (SELECT max(ns) FROM t)", "3"),
                ("coalesce(us, ns) > TIMESTAMP '2000-01-01 00:00:00'", "2"),
                ("coalesce(us, ns) = coalesce(ns, us)", "1 2 3"),
            ] {
                let found = rows(&mut session, &quoted(condition), Vec::new());
                assert_eq!(found, wanted, "{name}: {us}, {ns}: {condition}");
            }
            let sql = quoted("SELECT us FROM t UNION ALL SELECT ns FROM t ORDER BY 1");
            let answer = ask(&mut session, &sql);
            let answer = answer.unwrap_or_else(|error| panic!("{name}: {sql}: {error:?}"));
            let wanted = [EARLY, "-1", "1", "3", "3", LATE, "~", "~"];
            assert_eq!(answer.lines(), wanted, "{name}: {sql}");
            let sql = quoted("SELECT coalesce(us, fine) FROM t");
            let error = ask(&mut session, &sql).err();
            let code = error.map(|error| error.code);
            assert_eq!(code.as_deref(), Some("finer_than_microseconds"), "{name}");
            let sql = quoted("SELECT coalesce(us, date_trunc('microsecond', fine)) FROM t");
            let answer = ask(&mut session, &sql);
            let answer = answer.unwrap_or_else(|error| panic!("{name}: {sql}: {error:?}"));
            assert_eq!(answer.lines(), ["1", LATE, "3", EARLY], "{name}: {sql}");
        }
    }
}

/// Where nanoseconds are made of a moment that they do not reach it is told, and how to ask: what a subquery is asked about DataFusion makes alike.
/// What is told is the same where Parquet is filtered while it is read.
#[test]
fn moments_that_nanoseconds_do_not_reach_are_told() {
    const LAST: i64 = 253_402_300_799_999_999;
    let nanos = TimestampNanosecondArray::from(vec![Some(1_000), None]);
    let rows_of = batch(vec![
        ("n", numbers(2)),
        ("ns", array(nanos)),
        ("us", array(TimestampMicrosecondArray::from(vec![1, LAST]))),
        (
            "fine",
            array(TimestampNanosecondArray::from(vec![1_001, 1_001])),
        ),
    ]);
    let asked = "SELECT n FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS b WHERE b.us = KEY)";
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        let mut statements = vec![
            ("SELECT us::timestamp FROM t", "value_out_of_range"),
            (
                "SELECT n FROM t WHERE us::timestamp <> ns",
                "value_out_of_range",
            ),
            (
                "SELECT n FROM t WHERE greatest(us, fine) > TIMESTAMP '2000-01-01 00:00:00'",
                "finer_than_microseconds",
            ),
            // Of a whole number the same is multiplied.
            (
                "SELECT n FROM t WHERE (n - n + 9223372036854775807) * 1000 > 5",
                "number_too_large",
            ),
        ];
        let fails = asked.replace("KEY", "a.ns");
        // Of Parquet the reader may leave out the row by what it is compared with.
        if name == "t.arrow" {
            statements.push((fails.as_str(), "value_out_of_range"));
        }
        for (sql, code) in statements {
            let error = ask(&mut session, sql).err();
            let error = error.unwrap_or_else(|| panic!("{name}: {sql}"));
            assert_eq!(error.code, code, "{name}: {sql}: {error:?}");
            if code == "value_out_of_range" {
                assert!(error.message.contains("timestamp(6)"), "{error:?}");
            }
        }
        let sql = asked.replace("KEY", "CAST(a.ns AS timestamp(6))");
        let answer = ask(&mut session, &sql);
        let answer = answer.unwrap_or_else(|error| panic!("{name}: {sql}: {error:?}"));
        assert_eq!(answer.lines(), ["1"], "{name}");
    }
}

/// It has no digits that cannot be answered.
#[test]
fn now_is_of_whole_microseconds() {
    let (_directory, mut session) = file("t.csv", b"n\n1\n");
    // Of a thousand moments one has none of these by chance.
    for _ in 0..10 {
        let answer = ask(
            &mut session,
            "SELECT now() AS a, current_timestamp AS b FROM t",
        );
        let answer = answer.unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(answer.rows[0][0], answer.rows[0][1]);
    }
}

/// A moment or a day that is in no year of the contract's ends its statement, and nothing else.
#[test]
fn years_that_there_are_not_end_their_statement() {
    let rows_of = batch(vec![
        ("us", array(TimestampMicrosecondArray::from(vec![i64::MAX]))),
        (
            "s",
            array(TimestampSecondArray::from(vec![i64::MIN / 1_000_000])),
        ),
        ("day", array(Date32Array::from(vec![35_804_722]))),
        ("last", array(Date32Array::from(vec![35_804_721]))),
        (
            "far",
            array(Date64Array::from(vec![i64::MAX / 86_400_000 * 86_400_000])),
        ),
    ]);
    let (_directory, mut session) = file("t.arrow", &arrow(&rows_of, None));
    for text in [
        "us",
        "s",
        "day",
        "far",
        "to_timestamp_micros(9223372036854775807)",
    ] {
        let sql = format!("SELECT {text} FROM t");
        let error = ask(&mut session, &sql).err().unwrap();
        assert_eq!(error.code, "value_out_of_range", "{sql}");
    }
    // Within a list a text stands for it, or nothing does.
    for text in ["us", "s", "day", "far"] {
        let sql = format!("SELECT make_array({text}) FROM t");
        match ask(&mut session, &sql) {
            Ok(answer) => assert!(!answer.lines()[0].contains("ERROR"), "{:?}", answer.lines()),
            Err(error) => assert_eq!(error.code, "value_unreadable", "{sql}"),
        }
    }
    let last = ask(&mut session, "SELECT last FROM t").unwrap();
    assert_eq!(last.lines(), ["35804721"]);
}
