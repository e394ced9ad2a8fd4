//! Floats are compared as they are shown, beside decimals, too, with one zero and one that is no number.

use crate::common::{array, arrow, ask, batch, file, numbers, parquet, rows};
use datafusion::arrow::array::*;
use souk_sdk::Value;
use std::sync::Arc;

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
        let sql = "SELECT make_array(CAST('inf' AS double), CAST('-inf' AS real))";
        let ends = ask(&mut session, sql).unwrap().lines();
        assert_eq!(ends, [r#"["Infinity","-Infinity"]"#]);
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
