//! What is added up, and what goes on step by step: sums, averages, series and dates that are moved are exact, or refused.

use crate::common::extremes::{is, is_refused, is_refused_as, sessions};
use crate::common::{array, arrow, ask, batch, file};
use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::{IntervalDayTimeType, IntervalMonthDayNanoType};
use souk_sdk::ColumnType::{Decimal, Int64};

/// Whatever it was in between, a sum is told if it is within its type.
#[test]
fn sums_are_exact_or_refused() {
    for (_directory, mut session) in sessions() {
        for sql in [
            "SELECT sum(n) FROM t",
            "SELECT sum(u) FROM t",
            "SELECT sum(-n - 1) FROM t",
            "SELECT sum(d) FROM (SELECT d FROM t UNION ALL SELECT d FROM t) x",
            "SELECT sum(DISTINCT n) FROM t",
            "SELECT sum(DISTINCT n), sum(DISTINCT i) FROM t",
            "SELECT sum(n) FROM t GROUP BY n > 0",
            "SELECT sum(n) OVER (ORDER BY n) FROM t",
            "SELECT sum(n) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
            "SELECT sum(DISTINCT n) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        ] {
            is_refused(&mut session, sql);
        }
        for (sql, kind, lines) in [
            (
                "SELECT sum(x) FROM (SELECT n AS x FROM t UNION ALL SELECT -n FROM t UNION ALL SELECT 5) y",
                Int64,
                &["5"][..],
            ),
            (
                "SELECT sum(x) FROM (SELECT n AS x FROM t UNION ALL SELECT -n FROM t) y GROUP BY x > 5 OR x < -5 ORDER BY 1",
                Int64,
                &["0", "0"],
            ),
            ("SELECT sum(i) FROM t", Int64, &["2147483648"]),
            ("SELECT sum(s) FILTER (WHERE s > 1) FROM t", Int64, &["127"]),
            (
                "SELECT sum(n) FROM t WHERE n > 1",
                Int64,
                &["9223372036854775807"],
            ),
            ("SELECT sum(n) FROM t WHERE n < 1", Int64, &["~"]),
            (
                "SELECT sum(u) FROM t WHERE u > 1",
                Decimal,
                &["18446744073709551615"],
            ),
            (
                "SELECT sum(CAST(n AS decimal(38, 0))) FROM t",
                Decimal,
                &["9223372036854775808"],
            ),
            (
                "SELECT sum(d) FROM t",
                Decimal,
                &["100000000000000000000000000000000000000"],
            ),
            (
                "SELECT sum(wide) FROM (SELECT wide FROM t UNION ALL SELECT wide FROM t) x",
                Decimal,
                &["200000000000000000000000000000000000000"],
            ),
            ("SELECT sum(small) FROM t", Decimal, &["100000"]),
            (
                "SELECT sum(DISTINCT small) FROM (SELECT small FROM t UNION ALL SELECT small FROM t) x",
                Decimal,
                &["100000"],
            ),
            (
                "SELECT sum(DISTINCT i), count(DISTINCT n), sum(DISTINCT u) FILTER (WHERE u < 5) FROM t",
                Int64,
                &["2147483648|2|1"],
            ),
            (
                "SELECT sum(n) OVER (ORDER BY n ROWS BETWEEN CURRENT ROW AND CURRENT ROW) FROM t",
                Int64,
                &["1", "9223372036854775807"],
            ),
            (
                "SELECT sum(DISTINCT u) OVER (ORDER BY u ROWS BETWEEN CURRENT ROW AND CURRENT ROW) FROM t",
                Decimal,
                &["1", "18446744073709551615"],
            ),
            (
                "SELECT sum(1.5), sum(i) / sum(s) FROM t",
                Decimal,
                &["3.0|16777216"],
            ),
            ("SELECT avg(small) FROM t", Decimal, &["50000.0000"]),
        ] {
            is(&mut session, sql, kind, lines);
        }
    }
    let days = DurationNanosecondArray::from(vec![i64::MAX, 1, -1]);
    let rows = batch(vec![
        ("n", array(Int64Array::from(vec![1, 2, 3]))),
        ("span", array(days)),
    ]);
    let (_directory, mut session) = file("t.arrow", &arrow(&rows, None));
    is_refused(&mut session, "SELECT sum(span) FROM t WHERE n < 3");
    let all = ask(&mut session, "SELECT CAST(sum(span) AS bigint) FROM t").unwrap();
    assert_eq!(all.lines(), [i64::MAX.to_string()]);
}

/// What spans of time add up to may outgrow them, and their average does not.
#[test]
fn averages_of_durations_are_exact() {
    let days =
        DurationNanosecondArray::from(vec![Some(i64::MAX), Some(i64::MAX - 2), Some(-7), None]);
    let rows = batch(vec![
        ("n", array(Int64Array::from(vec![1, 2, 3, 4]))),
        ("span", array(days)),
    ]);
    let (_directory, mut session) = file("t.arrow", &arrow(&rows, None));
    let half = (i64::MAX - 1).to_string();
    let half = half.as_str();
    for (sql, lines) in [
        (
            "SELECT CAST(avg(span) AS bigint) FROM t WHERE n < 3",
            vec![half],
        ),
        (
            "SELECT CAST(mean(span) AS bigint) FROM t WHERE n < 3 GROUP BY n < 3",
            vec![half],
        ),
        (
            "SELECT CAST(avg(span) FILTER (WHERE n < 3) AS bigint) FROM t",
            vec![half],
        ),
        (
            "SELECT CAST(avg(span) AS bigint) FROM t WHERE n > 2",
            vec!["-7"],
        ),
        (
            "SELECT CAST(avg(span) AS bigint) FROM t WHERE n > 3",
            vec!["~"],
        ),
        (
            "SELECT CAST(avg(span) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS bigint) FROM t WHERE n < 3 ORDER BY n",
            vec!["9223372036854775807", half],
        ),
    ] {
        let answer = ask(&mut session, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(answer.lines(), lines, "{sql}");
    }
}

/// Months, days and what is smaller are added up each by itself.
#[test]
fn sums_of_intervals_are_exact_or_refused() {
    let months = [i32::MAX, 1, -1];
    let spans = months.map(|months| IntervalMonthDayNanoType::make_value(months, 0, 0));
    let short = months.map(|days| IntervalDayTimeType::make_value(days, 0));
    let rows = batch(vec![
        ("n", array(Int64Array::from(vec![1, 2, 3]))),
        (
            "span",
            array(IntervalMonthDayNanoArray::from(spans.to_vec())),
        ),
        ("short", array(IntervalDayTimeArray::from(short.to_vec()))),
        (
            "years",
            array(IntervalYearMonthArray::from(months.to_vec())),
        ),
    ]);
    let (_directory, mut session) = file("t.arrow", &arrow(&rows, None));
    for column in ["span", "short", "years"] {
        for sql in [
            "SELECT sum(COLUMN) FROM t WHERE n < 3",
            "SELECT n < 3, sum(COLUMN) FROM t GROUP BY n < 3",
            "SELECT sum(DISTINCT COLUMN), count(DISTINCT n) FROM t WHERE n < 3",
            "SELECT sum(COLUMN) OVER (ORDER BY n) FROM t",
            "SELECT sum(COLUMN) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        ] {
            let sql = sql.replace("COLUMN", column);
            is_refused_as(&mut session, &sql, "interval_too_large");
        }
    }
    let month = 30 * 86_400;
    let seconds = |sum: &str| format!("SELECT CAST(date_part('epoch', {sum}) AS bigint) FROM t");
    for (sql, lines) in [
        (
            seconds("sum(span)"),
            vec![(i64::from(i32::MAX) * month).to_string()],
        ),
        (
            seconds("sum(short)"),
            vec![(i64::from(i32::MAX) * 86_400).to_string()],
        ),
        (seconds("sum(years)") + " WHERE n > 1", vec!["0".to_owned()]),
        (
            seconds("sum(span)") + " GROUP BY n > 1 ORDER BY 1",
            vec!["0".to_owned(), (i64::from(i32::MAX) * month).to_string()],
        ),
        (seconds("sum(span)") + " WHERE n > 3", vec!["~".to_owned()]),
    ] {
        let answer = ask(&mut session, &sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(answer.lines(), lines, "{sql}");
    }
}

/// What a series in `FROM` is given is computed as all else is, and it ends where its type does.
#[test]
fn series_are_whole_or_refused() {
    let (_directory, mut session) = file("t.csv", b"n\n1\n");
    for sql in [
        "SELECT count(*) FROM generate_series(9223372036854775807 + 1, 5)",
        "SELECT count(*) FROM generate_series(1, 9223372036854775807 * 2)",
        "SELECT count(*) FROM range(-(-9223372036854775807 - 1), 5)",
        "SELECT n FROM t WHERE n IN (SELECT value FROM generate_series(0 - 9223372036854775807 - 2, 5))",
        "WITH g AS (SELECT * FROM generate_series(1, 5, 9223372036854775807 + 2)) SELECT count(*) FROM g",
    ] {
        is_refused(&mut session, sql);
    }
    for (sql, lines) in [
        (
            "SELECT value FROM generate_series(9223372036854775806, 9223372036854775807)",
            &["9223372036854775806", "9223372036854775807"][..],
        ),
        (
            "SELECT value FROM generate_series(9223372036854775800, 9223372036854775807, 2 + 3)",
            &["9223372036854775800", "9223372036854775805"],
        ),
        (
            "SELECT value FROM generate_series(-9223372036854775807, -9223372036854775807 - 1, -1)",
            &["-9223372036854775807", "-9223372036854775808"],
        ),
        (
            "SELECT count(*) FROM generate_series(DATE '2026-01-01', DATE '2026-02-01', INTERVAL '1 day')",
            &["32"],
        ),
        (
            "SELECT count(*) FROM generate_series(DATE '2026-02-01', DATE '2026-01-01', INTERVAL '-1 day')",
            &["32"],
        ),
    ] {
        is(&mut session, sql, Int64, lines);
    }
    is_refused_as(
        &mut session,
        "SELECT count(*) FROM generate_series(DATE '2026-01-01', DATE '2026-06-01', INTERVAL '1 month -1 day')",
        "step_both_ways",
    );
    let at = |time: &str| format!("arrow_cast('{time}', 'Timestamp(ns, \"Europe/Berlin\")')");
    let (from, to) = (at("2026-03-28T02:30:00"), at("2026-04-01T02:30:00"));
    for sql in [
        format!("SELECT count(*) FROM generate_series({from}, {to}, INTERVAL '1 day')"),
        format!("SELECT generate_series({from}, {to}, INTERVAL '1 day')"),
    ] {
        is_refused_as(&mut session, &sql, "series_in_a_zone");
    }
}

/// A date has no hours, and a moment is within its years.
#[test]
fn dates_and_moments_lose_nothing() {
    let (_directory, mut session) = file("t.csv", b"day\n2026-01-31\n");
    for sql in [
        "SELECT day + INTERVAL '12 hours' FROM t",
        "SELECT INTERVAL '12 hours' + day FROM t",
        "SELECT day FROM t WHERE day >= DATE '2026-01-31' - INTERVAL '1 second'",
        "SELECT count(*) FROM generate_series(DATE '2026-01-01' + INTERVAL '1 hour', DATE '2026-02-01', INTERVAL '1 day')",
        "SELECT generate_series(DATE '2026-01-01', DATE '2026-02-01', INTERVAL '1 day 12 hours')",
        "SELECT count(*) OVER (ORDER BY day RANGE BETWEEN INTERVAL '12 hours' PRECEDING AND CURRENT ROW) FROM t",
    ] {
        is_refused_as(&mut session, sql, "date_with_time");
    }
    is_refused_as(
        &mut session,
        "SELECT to_timestamp(CAST('1e12' AS double))",
        "value_out_of_range",
    );
    for (sql, line) in [
        ("SELECT day + INTERVAL '1 month' FROM t", "20512"),
        ("SELECT day + INTERVAL '24 hours' FROM t", "20485"),
        ("SELECT day - INTERVAL '1 day' FROM t", "20483"),
        ("SELECT day + NULL::interval FROM t", "~"),
        (
            "SELECT count(*) FROM t WHERE day > DATE '2026-02-28' - INTERVAL '1 month'",
            "1",
        ),
        (
            "SELECT CAST(day AS timestamp) + INTERVAL '12 hours' FROM t",
            "1769860800000000",
        ),
        ("SELECT to_timestamp(CAST('1.5' AS double))", "1500000"),
        (
            "SELECT count(*) OVER (ORDER BY day RANGE BETWEEN INTERVAL '24 hours' PRECEDING AND CURRENT ROW) FROM t",
            "1",
        ),
        (
            "SELECT cardinality(generate_series(DATE '2026-01-01', DATE '2026-01-05', INTERVAL '2 days'))",
            "3",
        ),
        // What is rounded down is the same before 1970.
        (
            "SELECT date_trunc('minute', TIMESTAMP '1969-12-31 23:59:30')",
            "-60000000",
        ),
        (
            "SELECT date_trunc('second', TIMESTAMP '1969-12-31 23:59:58.5')",
            "-2000000",
        ),
        (
            "SELECT date_trunc('second', '1969-12-31 23:59:58.5')",
            "-2000000",
        ),
        (
            "SELECT date_trunc('hour', TIMESTAMP '1969-12-31 23:30:00')",
            "-3600000000",
        ),
        ("SELECT date_trunc('minute', NULL::timestamp)", "~"),
    ] {
        let answer = ask(&mut session, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(answer.lines(), [line], "{sql}");
    }
}
