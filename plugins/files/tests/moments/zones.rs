//! Moments are what they are: beside texts and dates, finer than their column, and in zones.

use crate::common::{array, arrow, ask, batch, file, numbers, parquet, rows, tar};
use datafusion::arrow::array::*;
use souk_sdk::{ColumnType, Value};

/// Five rows: two milliseconds before the beginning of 1970 to one after it, by a clock and in UTC, and none.
fn around_1970() -> Vec<(&'static str, ArrayRef)> {
    let millis: [Option<i64>; 5] = [Some(-2), Some(-1), Some(0), Some(1), None];
    let local = || TimestampMillisecondArray::from(millis.to_vec());
    vec![
        ("n", numbers(5)),
        ("local", array(local())),
        ("at", array(local().with_timezone("UTC"))),
    ]
}

/// Which of them are found beside moments that are none of a millisecond: half a one after that beginning, and one and a half before it.
const BETWEEN_MILLIS: [(&str, &str); 9] = [
    ("< FIRST", "1 2 3"),
    (">= FIRST", "4"),
    ("= FIRST", ""),
    ("<> FIRST", "1 2 3 4"),
    ("IS DISTINCT FROM (FIRST)", "1 2 3 4 5"),
    ("< SECOND", "1"),
    ("BETWEEN SECOND AND FIRST", "2 3"),
    ("NOT BETWEEN SECOND AND FIRST", "1 4"),
    ("NOT IN (FIRST, SECOND)", "1 2 3 4"),
];

/// A moment between two of a column's is neither.
#[test]
fn moments_finer_than_their_column_are_compared() {
    let millis: [Option<i64>; 5] = [Some(-2), Some(-1), Some(0), Some(1), None];
    let local = || TimestampMillisecondArray::from(millis.to_vec());
    let rows_of = batch(vec![
        ("n", numbers(5)),
        ("local", array(local())),
        ("at", array(local().with_timezone("UTC"))),
        ("berlin", array(local().with_timezone("Europe/Berlin"))),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for (condition, micros, wanted) in [
            ("< $1", 500, "1 2 3"),
            ("<= $1", 500, "1 2 3"),
            ("> $1", 500, "4"),
            (">= $1", 500, "4"),
            ("= $1", 500, ""),
            ("<> $1", 500, "1 2 3 4"),
            ("< $1", -1_500, "1"),
            (">= $1", -1_500, "2 3 4"),
            ("= $1", 1_000, "4"),
            ("<= $1", 1_000, "1 2 3 4"),
            ("IN ($1)", 500, ""),
            ("NOT IN ($1)", 500, "1 2 3 4"),
            ("IS DISTINCT FROM $1", 500, "1 2 3 4 5"),
            ("IS NOT DISTINCT FROM $1", 500, ""),
        ] {
            for column in ["local", "at", "berlin"] {
                let value = match column {
                    "local" => Value::LocalTimestamp(micros),
                    _ => Value::Timestamp(micros),
                };
                let condition = format!("\"{column}\" {condition}");
                let found = rows(&mut session, &condition, vec![value]);
                assert_eq!(found, wanted, "{name}: {condition}, {micros}");
            }
        }
        let ends = || vec![Value::LocalTimestamp(-1_500), Value::LocalTimestamp(500)];
        for (condition, wanted) in [
            ("\"local\" BETWEEN $1 AND $2", "2 3"),
            ("\"local\" NOT BETWEEN $1 AND $2", "1 4"),
            ("$1 < \"local\" AND $2 > \"local\"", "2 3"),
            (
                "\"local\" IN ($1, $2, TIMESTAMP '1970-01-01 00:00:00.001')",
                "4",
            ),
        ] {
            let found = rows(&mut session, condition, ends());
            assert_eq!(found, wanted, "{name}: {condition}");
        }
        let written = "\"local\" < TIMESTAMP '1970-01-01 00:00:00.000000001'";
        assert_eq!(rows(&mut session, written, Vec::new()), "1 2 3", "{name}");
    }
}

/// So it is beside a moment that is cast to a finer unit, also where a condition is moved there from outside of a query.
#[test]
fn moments_that_are_cast_finer_are_compared_as_they_are() {
    let rows_of = batch(around_1970());
    // The first is half a millisecond after the beginning of 1970, the second one and a half before it.
    let ends = ["'1970-01-01 00:00:00.0005'", "'1969-12-31 23:59:59.9985'"];
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for cast in [
            "\"local\"::timestamp",
            "CAST(\"local\" AS timestamp(6))",
            "CAST(\"at\" AS timestamp)",
            "CAST(\"at\" AS timestamp(6))",
        ] {
            let others = [
                ("IN (FIRST, TIMESTAMP '1970-01-01 00:00:00.001')", "4"),
                ("<= TIMESTAMP '1970-01-01 00:00:00.001'", "1 2 3 4"),
            ];
            for (condition, wanted) in BETWEEN_MILLIS.into_iter().chain(others) {
                let condition = condition.replace("FIRST", &format!("TIMESTAMP {}", ends[0]));
                let condition = condition.replace("SECOND", ends[1]);
                let condition = format!("{cast} {condition}");
                let found = rows(&mut session, &condition, Vec::new());
                assert_eq!(found, wanted, "{name}: {condition}");
            }
            let flipped = format!("{} > {cast}", ends[0]);
            assert_eq!(rows(&mut session, &flipped, Vec::new()), "1 2 3", "{name}");
            for (from, wanted) in [
                (format!("(SELECT n, {cast} AS x FROM t)"), ["1", "2", "3"]),
                (
                    format!(
                        "(SELECT n, {cast} AS x FROM t WHERE n > 2 UNION ALL SELECT n, \"local\" FROM t WHERE n < 3)"
                    ),
                    ["1", "2", "3"],
                ),
            ] {
                let condition = format!("x < TIMESTAMP {}", ends[0]);
                let sql = format!("SELECT n FROM {from} AS s WHERE {condition} ORDER BY n");
                let answer = ask(&mut session, &sql);
                let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
                assert_eq!(answer.lines(), wanted, "{name}: {sql}");
            }
        }
    }
}

/// So it is beside what is computed of no row, which DataFusion computes in the very step that takes casts off.
#[test]
fn moments_that_are_computed_are_compared_as_they_are() {
    let rows_of = batch(around_1970());
    // Half a millisecond after the beginning of 1970, and one and a half before it.
    let zero = "TIMESTAMP '1970-01-01 00:00:00'";
    let first = format!("{zero} + INTERVAL '500 microseconds'");
    let second = format!("{zero} - INTERVAL '1500 microseconds'");
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for side in [
            "\"local\"",
            "\"at\"",
            "CAST(\"local\" AS timestamp)",
            "CAST(\"local\" AS timestamp(6))",
        ] {
            let others = [
                ("IN (FIRST, ZERO + INTERVAL '1 millisecond')", "4"),
                ("< to_timestamp('1970-01-01 00:00:00.0005')", "1 2 3"),
                ("= ZERO + INTERVAL '1 millisecond'", "4"),
                ("<= ZERO - INTERVAL '1 millisecond'", "1 2"),
                ("< now()", "1 2 3 4"),
            ];
            for (condition, wanted) in BETWEEN_MILLIS.into_iter().chain(others) {
                let condition = condition.replace("FIRST", &first);
                let condition = condition.replace("SECOND", &second);
                let condition = format!("{side} {}", condition.replace("ZERO", zero));
                let found = rows(&mut session, &condition, Vec::new());
                assert_eq!(found, wanted, "{name}: {condition}");
            }
            let flipped = format!("{first} > {side}");
            assert_eq!(rows(&mut session, &flipped, Vec::new()), "1 2 3", "{name}");
        }
    }
}

/// Nor is what a subquery answers.
#[test]
fn moments_finer_than_their_column_are_compared_as_a_query_answers_them() {
    let fine = TimestampMicrosecondArray::from(vec![Some(500); 5]);
    let mut columns = around_1970();
    columns.push(("fine", array(fine)));
    let rows_of = batch(columns);
    let answer = "(SELECT max(\"fine\") FROM t)";
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for side in ["\"local\"", "\"at\"", "CAST(\"local\" AS timestamp(6))"] {
            for (condition, wanted) in [
                ("SIDE < ANSWER", "1 2 3"),
                ("SIDE >= ANSWER", "4"),
                ("SIDE = ANSWER", ""),
                ("SIDE <> ANSWER", "1 2 3 4"),
                ("ANSWER > SIDE", "1 2 3"),
                ("SIDE <= ANSWER + INTERVAL '1 microsecond'", "1 2 3"),
            ] {
                let condition = condition.replace("SIDE", side);
                let condition = condition.replace("ANSWER", answer);
                let found = rows(&mut session, &condition, Vec::new());
                assert_eq!(found, wanted, "{name}: {condition}");
            }
        }
    }
}

/// A text or a date beside a moment is in UTC unless it says otherwise, whatever zone the column is shown in, and as fine as it is written.
#[test]
fn texts_beside_moments_are_in_utc() {
    // Parquet has no seconds.
    let millis = TimestampMillisecondArray::from(vec![0, 3_600_000, 7_200_000]);
    let rows_of = batch(vec![
        ("n", numbers(3)),
        ("local", array(millis.clone())),
        ("berlin", array(millis.with_timezone("Europe/Berlin"))),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for column in ["local", "berlin"] {
            for (condition, wanted) in [
                ("= '1970-01-01 01:00:00'", "2"),
                ("= DATE '1970-01-01'", "1"),
                ("> DATE '1970-01-01'", "2 3"),
                ("BETWEEN DATE '1969-12-31' AND DATE '1970-01-01'", "1"),
                ("IN (DATE '1970-01-01')", "1"),
                ("< DATE '9999-12-31'", "1 2 3"),
                ("< '1970-01-01 01:00:00.0005'", "1 2"),
                (">= '1970-01-01 01:00:00.0005'", "3"),
                ("= '1970-01-01T02:00:00+01:00'", "2"),
                ("IN ('1970-01-01 01:00:00', '1970-01-01T02:00:00Z')", "2 3"),
                (
                    "BETWEEN '1970-01-01 00:30:00' AND '1970-01-01 01:00:00'",
                    "2",
                ),
                ("= TIMESTAMP '1970-01-01 01:00:00'", "2"),
                ("IN (TIMESTAMP '1970-01-01 01:00:00')", "2"),
                (
                    "NOT BETWEEN TIMESTAMP '1970-01-01 00:30:00' AND TIMESTAMP '1970-01-01 01:00:00'",
                    "1 3",
                ),
                ("< TIMESTAMP '9999-12-31 00:00:00'", "1 2 3"),
                ("> CAST('0001-01-01' AS timestamp)", "1 2 3"),
            ] {
                let condition = format!("\"{column}\" {condition}");
                let found = rows(&mut session, &condition, Vec::new());
                assert_eq!(found, wanted, "{name}: {condition}");
            }
            let text = Value::Text("1970-01-01 01:00:00".to_owned());
            let found = rows(&mut session, &format!("$1 < \"{column}\""), vec![text]);
            assert_eq!(found, "3", "{name}: {column}");
        }
    }
}

/// The zone in which an Arrow file shows a column is for show: what a statement computes of it is that of Parquet, which has no such zones.
#[test]
fn moments_that_a_file_shows_in_a_zone_are_computed_in_utc() {
    // Half past ten in the evening of a first of July, and half past midnight in Berlin.
    const AT: i64 = 1_782_945_000_000_000;
    let rows_of = |zone: &str| {
        let at = TimestampMicrosecondArray::from(vec![AT]).with_timezone(zone);
        batch(vec![("n", numbers(1)), ("at", array(at))])
    };
    let berlin = rows_of("Europe/Berlin");
    for (name, bytes) in [
        ("t.parquet", parquet(&berlin)),
        ("t.arrow", arrow(&berlin, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for condition in [
            "date_trunc('day', \"at\") = TIMESTAMP '2026-07-01 00:00:00'",
            "date_trunc('month', \"at\") = TIMESTAMP '2026-07-01 00:00:00'",
            "extract(hour FROM \"at\") = 22",
            "CAST(\"at\" AS date) = DATE '2026-07-01'",
            "CAST(\"at\" AS text) LIKE '2026-07-01T22:30:00%'",
            "to_char(\"at\", '%d %H:%M') = '01 22:30'",
            "CAST(\"at\" AS timestamp(6)) = TIMESTAMP '2026-07-01 22:30:00'",
            "\"at\" AT TIME ZONE 'Europe/Berlin' = TIMESTAMP '2026-07-02 00:30:00'",
        ] {
            let found = rows(&mut session, condition, Vec::new());
            assert_eq!(found, "1", "{name}: {condition}");
        }
        let answer = ask(&mut session, "SELECT \"at\" FROM t").unwrap();
        assert_eq!(answer.kinds(), [ColumnType::Timestamp], "{name}");
        assert_eq!(answer.lines(), [AT.to_string()], "{name}");
    }
    // Files that show it in several zones have the same column.
    let (berlin, tokyo) = (arrow(&berlin, None), arrow(&rows_of("+09:00"), None));
    let archive = tar(&[("t.arrow/a.arrow", &berlin), ("t.arrow/b.arrow", &tokyo)]);
    let (_directory, mut session) = file("t.tar", &archive);
    let sql = "SELECT count(DISTINCT \"at\"), count(*) FROM t";
    let answer = ask(&mut session, sql).unwrap();
    assert_eq!(answer.lines(), ["1|2"]);
}

/// What is chosen of moments is the same moment, in whatever zone a file shows a column; what a statement puts into a zone it compares there.
#[test]
fn moments_that_are_chosen_are_in_utc() {
    let millis = |values: Vec<Option<i64>>| {
        array(TimestampMillisecondArray::from(values).with_timezone("Europe/Berlin"))
    };
    let rows_of = batch(vec![
        ("n", numbers(2)),
        ("berlin", millis(vec![Some(0), None])),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for (chosen, wanted) in [
            (
                "coalesce(berlin, TIMESTAMP '1970-01-01 01:00:00')",
                ["0", "3600000000"],
            ),
            ("coalesce(berlin, DATE '1970-01-02')", ["0", "86400000000"]),
            (
                "CASE WHEN n = 1 THEN berlin ELSE TIMESTAMP '1970-01-01 01:00:00' END",
                ["0", "3600000000"],
            ),
            (
                "CASE WHEN n = 2 THEN DATE '1970-01-02' ELSE berlin END",
                ["0", "86400000000"],
            ),
            (
                "CASE WHEN n = 1 THEN berlin ELSE '1970-01-01 01:00:00' END",
                ["0", "3600000000"],
            ),
            (
                "CASE WHEN n = 1 THEN berlin ELSE '1970-01-01T01:00:00.5+01:00' END",
                ["0", "500000"],
            ),
            ("nullif(berlin, '1970-01-01 01:00:00')", ["0", "~"]),
            ("nullif(berlin, '1970-01-01 00:00:00')", ["~", "~"]),
            (
                "CASE berlin WHEN '1970-01-01 01:00:00' THEN 'read in Berlin' WHEN '1970-01-01 00:00:00' THEN 'in UTC' END",
                ["in UTC", "~"],
            ),
            (
                "CASE berlin WHEN TIMESTAMP '1970-01-01 00:00:00' THEN 'in UTC' ELSE 'none' END",
                ["in UTC", "none"],
            ),
        ] {
            let sql = format!("SELECT {chosen} FROM t ORDER BY n");
            let answer = ask(&mut session, &sql);
            let answer = answer.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            assert_eq!(answer.lines(), wanted, "{name}: {sql}");
        }
        for (condition, wanted) in [
            (
                "berlin AT TIME ZONE 'Europe/Berlin' = '1970-01-01 01:00:00'",
                "1",
            ),
            (
                "berlin AT TIME ZONE 'Asia/Tokyo' = TIMESTAMP '1970-01-01 09:00:00'",
                "1",
            ),
        ] {
            let found = rows(&mut session, condition, Vec::new());
            assert_eq!(found, wanted, "{name}: {condition}");
        }
    }
}

/// A moment in a zone is what the clocks there show, in whatever unit and zone a file has it, and a column is called as before.
#[test]
fn moments_in_a_zone_are_what_its_clocks_show() {
    const HOUR: i64 = 3_600_000_000;
    let micros = [Some(0), Some(253_402_300_799_999_999), None];
    let within = [Some(0), Some(HOUR), None];
    let rows_of = batch(vec![
        ("n", numbers(3)),
        (
            "us",
            array(TimestampMicrosecondArray::from(micros.to_vec()).with_timezone("UTC")),
        ),
        (
            "berlin",
            array(TimestampMicrosecondArray::from(within.to_vec()).with_timezone("Europe/Berlin")),
        ),
        (
            "ns",
            array(
                TimestampNanosecondArray::from_iter(within.map(|at| at.map(|at| at * 1_000)))
                    .with_timezone("UTC"),
            ),
        ),
    ]);
    for (name, bytes) in [
        ("t.parquet", parquet(&rows_of)),
        ("t.arrow", arrow(&rows_of, None)),
    ] {
        let (_directory, mut session) = file(name, &bytes);
        for (column, second) in [
            ("us", 253_402_300_799_999_999),
            ("berlin", HOUR),
            ("ns", HOUR),
        ] {
            let sql = format!("SELECT {column} AT TIME ZONE 'Asia/Tokyo' FROM t ORDER BY n");
            let answer = ask(&mut session, &sql).unwrap();
            assert_eq!(answer.kinds(), [ColumnType::LocalTimestamp], "{name}");
            assert_eq!(answer.columns[0].name, format!("t.{column}"), "{name}");
            let shown = |micros: i64| (micros + 9 * HOUR).to_string();
            let wanted = [shown(0), shown(second), "~".to_owned()];
            assert_eq!(answer.lines(), wanted, "{name}: {column}");
        }
        for (condition, wanted) in [
            (
                "date_trunc('day', berlin AT TIME ZONE 'Asia/Tokyo') = us",
                "1",
            ),
            ("extract(hour FROM ns AT TIME ZONE 'Asia/Tokyo') = 10", "2"),
            ("ns AT TIME ZONE 'Asia/Tokyo' > berlin", "1 2"),
            (
                "us = TIMESTAMP '9999-12-31 23:59:59.999999' AT TIME ZONE 'UTC'",
                "2",
            ),
        ] {
            let found = rows(&mut session, condition, Vec::new());
            assert_eq!(found, wanted, "{name}: {condition}");
        }
    }
}
