//! What a statement compares is compared as it is: times of day of all units, and rows.

use crate::common::{array, arrow, ask, batch, file, numbers, parquet, rows};
use datafusion::arrow::array::*;
use souk_sdk::Value;

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
