//! What a statement computes has all of its digits, or is refused: no number begins anew at the other end of its type.

mod common;

use common::{array, arrow, ask, batch, file, parquet};
use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::{IntervalDayTimeType, IntervalMonthDayNanoType, i256};
use souk_connector_files::Session;
use souk_sdk::ColumnType::{self, Decimal, Int64, Text};
use souk_sdk::ErrorClass;

/// The greatest number of 38 digits.
const NINES: i128 = 10_i128.pow(38) - 1;

/// Two rows: the greatest of each type, and one.
fn extremes() -> RecordBatch {
    let decimal = |digits, values: Vec<i128>| {
        let values = Decimal128Array::from(values);
        array(values.with_precision_and_scale(digits, 0).unwrap())
    };
    let wide = Decimal256Array::from(vec![i256::from_i128(NINES), i256::ONE]);
    batch(vec![
        ("n", array(Int64Array::from(vec![i64::MAX, 1]))),
        ("i", array(Int32Array::from(vec![i32::MAX, 1]))),
        ("s", array(Int8Array::from(vec![i8::MAX, 1]))),
        ("u", array(UInt64Array::from(vec![u64::MAX, 1]))),
        ("d", decimal(38, vec![NINES, 1])),
        ("small", decimal(5, vec![99_999, 1])),
        ("wide", array(wide.with_precision_and_scale(76, 0).unwrap())),
    ])
}

fn sessions() -> [(tempfile::TempDir, Session); 2] {
    let rows = extremes();
    [
        file("t.parquet", &parquet(&rows)),
        file("t.arrow", &arrow(&rows, None)),
    ]
}

fn is_refused(session: &mut Session, sql: &str) {
    is_refused_as(session, sql, "number_too_large");
}

fn is_refused_as(session: &mut Session, sql: &str, code: &str) {
    let error = ask(session, sql).err().unwrap_or_else(|| panic!("{sql}"));
    let told = (error.class, error.code.as_str());
    assert_eq!(told, (ErrorClass::Source, code), "{sql}: {error:?}");
}

fn is(session: &mut Session, sql: &str, kind: ColumnType, lines: &[&str]) {
    let answer = ask(session, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    assert_eq!(answer.lines(), lines, "{sql}");
    // A shape that was told before is not told again.
    if let Some(told) = answer.kinds().first() {
        assert_eq!(*told, kind, "{sql}");
    }
}

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
            // DataFusion orders by no cast of an aggregate.
            format!(
                "SELECT * FROM ({} GROUP BY n > 1) AS groups (seconds) ORDER BY seconds",
                seconds("sum(span)")
            ),
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
