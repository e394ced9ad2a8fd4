use souk_sandbox::{Batch, Chunk, Column, ColumnData, VarLen};

use super::*;

/// Columns of one batch without NULLs.
pub(super) fn output(columns: Vec<(&str, ColumnKind, ColumnData)>, rows: u32) -> Output {
    let describe = |(name, kind, _): &(&str, ColumnKind, ColumnData)| Column {
        name: (*name).to_owned(),
        kind: *kind,
        nullable: true,
        native: String::new(),
    };
    let described: Vec<Column> = columns.iter().map(describe).collect();
    let chunks = columns.into_iter().map(|(_, _, data)| Chunk {
        validity: None,
        data,
    });
    let batch = Batch {
        rows,
        chunks: chunks.collect(),
    };
    Output::new(described.into(), vec![batch], 0)
}

pub(super) fn texts(values: &[&str]) -> ColumnData {
    let mut data = VarLen {
        offsets: vec![0],
        bytes: Vec::new(),
    };
    for value in values {
        data.bytes.extend_from_slice(value.as_bytes());
        data.offsets.push(data.bytes.len() as i32);
    }
    ColumnData::VarLen(data)
}

pub(super) fn policy(kind: ResultKind) -> Policy {
    Policy {
        kind,
        freshness: None,
        privacy: None,
    }
}

fn told_in(column: &str) -> Option<Freshness> {
    Some(Freshness {
        column: column.to_owned(),
        is_owed: true,
    })
}

async fn released(policy: &Policy, output: Output) -> Result<serde_json::Value, Cause> {
    let released = policy.release(&output)?;
    let read = |json: &[u8]| serde_json::from_slice::<serde_json::Value>(json).unwrap();
    Ok(match released.insight {
        Insight::Value(json) => serde_json::json!({"answer_value": read(&json)}),
        Insight::Chart(spec) => serde_json::json!({"visualization": {"spec": read(&spec)}}),
        Insight::Forecast(forecast) => {
            let points = forecast.points.iter().map(|point| {
                serde_json::json!({"t": point.at, "value": point.value, "lower": point.lower, "upper": point.upper})
            });
            let points: Vec<_> = points.collect();
            serde_json::json!({"prediction": {"model": forecast.model, "level": forecast.level, "points": points}})
        }
    })
}

/// One insight per calculation: one row, one value, of the promised type.
#[tokio::test]
async fn a_calculation_releases_exactly_one_value() {
    let number = policy(ResultKind::Number);
    let of = |values: Vec<i64>| {
        let rows = values.len() as u32;
        output(
            vec![("n", ColumnKind::Int64, ColumnData::I64s(values))],
            rows,
        )
    };
    assert_eq!(
        released(&number, of(vec![7])).await.unwrap()["answer_value"],
        7
    );
    let found_nothing =
        matches!(number.release(&of(vec![])), Err(Cause::Fault(fault)) if fault.code == NO_ROW);
    assert!(found_nothing);
    assert!(matches!(
        number.release(&of(vec![1, 2])),
        Err(Cause::Fault(Fault {
            kind: FaultKind::BadAnswer,
            ..
        }))
    ));
    let two = output(
        vec![
            ("a", ColumnKind::Int64, ColumnData::I64s(vec![1])),
            ("b", ColumnKind::Int64, ColumnData::I64s(vec![2])),
        ],
        1,
    );
    assert!(matches!(
        number.release(&two),
        Err(Cause::Fault(Fault {
            kind: FaultKind::BadAnswer,
            ..
        }))
    ));
    let text = || output(vec![("t", ColumnKind::Text, texts(&["x"]))], 1);
    assert!(matches!(
        number.release(&text()),
        Err(Cause::Fault(Fault {
            kind: FaultKind::BadAnswer,
            ..
        }))
    ));
    assert_eq!(
        released(&policy(ResultKind::String), text()).await.unwrap()["answer_value"],
        "x"
    );
}

/// What is wrong with a value is its kind, and of a number where one is expected that nobody could use it.
#[test]
fn what_a_value_is_instead_is_told() {
    let of = |number: f64| {
        let data = ColumnData::F64s(vec![number]);
        output(vec![("n", ColumnKind::Float64, data)], 1)
    };
    let decimal = |digits| output(vec![("n", ColumnKind::Decimal, texts(&[digits]))], 1);
    let [number, text] = [ResultKind::Number, ResultKind::String].map(policy);
    for (policy, output, told) in [
        (&text, of(1.5), "float64 where a string"),
        (&text, decimal("1.5"), "decimal where a string"),
        (&number, of(f64::NAN), "not finite where a number"),
        (&number, decimal("Infinity"), "not finite where a number"),
    ] {
        let (message, _) = refused(policy, &output);
        assert_eq!(message, format!("the result is {told} is expected"));
    }
}

/// A seller's API answers JSON: numbers stay digit for digit, other shapes are refused.
#[tokio::test]
async fn a_json_answer_must_have_the_promised_type() {
    let of = |json: &str| output(vec![("answer_value", ColumnKind::Json, texts(&[json]))], 1);
    let exact = policy(ResultKind::Number)
        .release(&of("123456789012345678901234567890.10"))
        .unwrap();
    let digits = b"123456789012345678901234567890.10";
    assert!(matches!(exact.insight, Insight::Value(json) if json == digits));
    for json in ["\"5\"", "true", "[5]", "{\"a\":5}"] {
        assert!(
            policy(ResultKind::Number).release(&of(json)).is_err(),
            "{json}"
        );
    }
    assert!(policy(ResultKind::String).release(&of("5")).is_err());
    assert_eq!(
        released(&policy(ResultKind::String), of("\"five\""))
            .await
            .unwrap()["answer_value"],
        "five"
    );
}

/// The age of the data and the size of the group are reported or used, never released.
#[tokio::test]
async fn freshness_and_group_sizes_do_not_leave() {
    let policy = Policy {
        kind: ResultKind::Number,
        freshness: told_in("at"),
        privacy: Some(Privacy {
            min_group_size: 5,
            privacy_unit_column: "people".to_owned(),
        }),
    };
    let of = |people| {
        output(
            vec![
                (
                    "at",
                    ColumnKind::Timestamp,
                    ColumnData::I64s(vec![1_000_000]),
                ),
                ("salary", ColumnKind::Float64, ColumnData::F64s(vec![1.5])),
                ("people", ColumnKind::Int64, ColumnData::I64s(vec![people])),
            ],
            1,
        )
    };
    let five = policy.release(&of(5)).unwrap();
    assert_eq!(five.freshness, Some(1_000_000));
    assert!(matches!(five.insight, Insight::Value(json) if json == b"1.5"));
    assert!(matches!(
        policy.release(&of(4)),
        Err(Cause::Private { min_group_size: 5 })
    ));
}

/// Nobody, and too few: whoever asks is told the same of both, whatever the result is to be, and whether or not the source says columns without rows.
#[test]
fn nobody_is_told_as_too_few_are() {
    let of = |units: &[i64]| {
        let days = (0..units.len() as i32).collect();
        let salaries = units.iter().map(|_| 60).collect();
        output(
            vec![
                ("day", ColumnKind::Date, ColumnData::I32s(days)),
                ("salary", ColumnKind::Int64, ColumnData::I64s(salaries)),
                (
                    "people",
                    ColumnKind::Int64,
                    ColumnData::I64s(units.to_vec()),
                ),
            ],
            units.len() as u32,
        )
    };
    for kind in [
        ResultKind::Number,
        ResultKind::String,
        ResultKind::Chart(Visualization::default()),
        ResultKind::Prediction(Prediction::default()),
    ] {
        let policy = Policy {
            privacy: Some(Privacy {
                min_group_size: 5,
                privacy_unit_column: "people".to_owned(),
            }),
            ..policy(kind)
        };
        for found in [of(&[4]), of(&[0]), of(&[]), Output::default()] {
            let told = policy.release(&found);
            assert!(
                matches!(told, Err(Cause::Private { min_group_size: 5 })),
                "{told:?}"
            );
        }
    }
}

/// A chart of which privacy withholds every row passes its test without anything to show, where nothing else is wrong with it; what may never leave does not,
/// nor does a number that is withheld.
#[test]
fn a_chart_that_is_withheld_passes_its_test() {
    let of = |units: ColumnData, kind: ColumnKind, rows: usize| {
        let teams = texts(&vec!["A"; rows]);
        let goals = ColumnData::I64s(vec![3; rows]);
        output(
            vec![
                ("team", ColumnKind::Text, teams),
                ("goals", ColumnKind::Int64, goals),
                ("people", kind, units),
            ],
            rows as u32,
        )
    };
    let people = |units: &[i64]| {
        let data = ColumnData::I64s(units.to_vec());
        of(data, ColumnKind::Int64, units.len())
    };
    let private = |kind, column: &str| Policy {
        privacy: Some(Privacy {
            min_group_size: 5,
            privacy_unit_column: column.to_owned(),
        }),
        ..policy(kind)
    };
    let drawn = |y: &str| {
        ResultKind::Chart(Visualization {
            y: Some(y.to_owned()),
            ..Visualization::default()
        })
    };
    let chart = private(drawn("goals"), "people");
    for units in [&[][..], &[4], &[0, 1]] {
        assert!(matches!(chart.tested(&people(units)), Ok(None)));
        assert!(matches!(
            chart.release(&people(units)),
            Err(Cause::Private { .. })
        ));
    }
    assert!(matches!(chart.tested(&people(&[4, 5])), Ok(Some(released)) if released.rows == 1));

    let untold = chart.tested(&Output::default());
    assert!(matches!(untold, Err(Cause::Private { .. })), "{untold:?}");
    let never = of(texts(&["four"]), ColumnKind::Text, 1);
    let number = private(ResultKind::Number, "people");
    for (policy, output) in [
        (&chart, never),
        (&number, people(&[4])),
        (&number, people(&[])),
    ] {
        let told = policy.tested(&output);
        assert!(matches!(told, Err(Cause::Private { .. })), "{told:?}");
    }
    for (policy, rows) in [
        (private(drawn("points"), "people"), &[4][..]),
        (private(drawn("points"), "people"), &[]),
        (private(drawn("goals"), "persons"), &[]),
        (
            Policy {
                freshness: told_in("at"),
                ..private(drawn("goals"), "people")
            },
            &[],
        ),
    ] {
        let told = policy.tested(&people(rows));
        assert!(matches!(told, Err(Cause::Fault(_))), "{told:?}");
    }
}

/// When the newest of the rows was that privacy withholds is withheld, too.
#[test]
fn data_are_as_old_as_what_leaves() {
    let policy = Policy {
        freshness: told_in("at"),
        privacy: Some(Privacy {
            min_group_size: 5,
            privacy_unit_column: "people".to_owned(),
        }),
        ..policy(ResultKind::Chart(Visualization::default()))
    };
    let rows = output(
        vec![
            ("team", ColumnKind::Text, texts(&["A", "B", "C"])),
            ("goals", ColumnKind::Int64, ColumnData::I64s(vec![1, 2, 3])),
            ("at", ColumnKind::Timestamp, ColumnData::I64s(vec![7, 9, 8])),
            ("people", ColumnKind::Int64, ColumnData::I64s(vec![5, 4, 6])),
        ],
        3,
    );
    let released = policy.release(&rows).unwrap();
    assert_eq!((released.rows, released.freshness), (2, Some(8)));
}

/// What was saved before it was refused may name the column that privacy counts by: it releases nothing, and its owner is told where.
#[test]
fn a_saved_chart_does_not_draw_what_counts() {
    let people = || Some("people".to_owned());
    let of = |kind| Policy {
        privacy: Some(Privacy {
            min_group_size: 5,
            privacy_unit_column: "people".to_owned(),
        }),
        ..policy(kind)
    };
    let drawn = Visualization {
        y: people(),
        ..Visualization::default()
    };
    let wanted = Prediction {
        value_column: people(),
        ..Prediction::default()
    };
    let rows = output(
        vec![
            ("day", ColumnKind::Date, ColumnData::I32s(vec![1])),
            ("people", ColumnKind::Int64, ColumnData::I64s(vec![9])),
        ],
        1,
    );
    for (kind, member) in [
        (ResultKind::Chart(drawn), "visualization.y"),
        (ResultKind::Prediction(wanted), "prediction.value_column"),
    ] {
        let (message, detail) = refused(&of(kind), &rows);
        assert!(message.contains("privacy"), "{message}");
        assert!(detail.contains(member), "{detail}");
    }
}

/// The age of the data is read as the times of a forecast are, in UTC where no zone is said. What is none is the seller's to mend, and not passed over.
#[test]
fn the_age_of_data_is_read_or_refused() {
    let policy = Policy {
        freshness: told_in("at"),
        ..policy(ResultKind::Number)
    };
    let of = |kind, at| {
        let value = ("n", ColumnKind::Int64, ColumnData::I64s(vec![1]));
        output(vec![value, ("at", kind, at)], 1)
    };
    for (text, at) in [
        ("2026-01-08T02:45:00Z", "2026-01-08T02:45:00Z"),
        ("2026-01-08T02:45:00+02:00", "2026-01-08T00:45:00Z"),
        ("2026-01-08 02:45:00", "2026-01-08T02:45:00Z"),
        ("2026-05-24", "2026-05-24T00:00:00Z"),
        ("2026-05", "2026-05-01T00:00:00Z"),
    ] {
        let found = policy.release(&of(ColumnKind::Text, texts(&[text])));
        let at: jiff::Timestamp = at.parse().unwrap();
        let freshness = found.unwrap().freshness;
        assert_eq!(freshness, Some(at.as_microsecond()), "{text}");
    }
    for (kind, data) in [
        (ColumnKind::Text, texts(&["yesterday"])),
        (ColumnKind::Int64, ColumnData::I64s(vec![1_767_225_600])),
    ] {
        let (message, detail) = refused(&policy, &of(kind, data));
        assert!(message.contains("age of the data"), "{message}");
        assert!(
            !format!("{message}{detail}").contains("yesterday"),
            "{detail}"
        );
        assert!(detail.contains("the column \"at\" "), "{detail}");
    }
    let other = || {
        let day = ("day", ColumnKind::Date, ColumnData::I32s(vec![1]));
        let value = ("n", ColumnKind::Int64, ColumnData::I64s(vec![1]));
        output(vec![day, value], 1)
    };
    let unknown = {
        let mut rows = of(ColumnKind::Int64, ColumnData::I64s(vec![0]));
        rows.batches[0].chunks[1].validity = Some(vec![0]);
        rows
    };
    assert_eq!(policy.release(&unknown).unwrap().freshness, None);

    // A column that is not there: of a seller's API it is not asked for.
    let chart = Policy {
        kind: ResultKind::Chart(Visualization::default()),
        freshness: told_in("newest"),
        privacy: None,
    };
    let (_, detail) = refused(&chart, &other());
    assert!(detail.contains("\"newest\""), "{detail}");
    let unasked = Policy {
        freshness: Some(Freshness {
            column: "newest".to_owned(),
            is_owed: false,
        }),
        ..chart
    };
    assert_eq!(unasked.release(&other()).unwrap().freshness, None);
}

/// A chart holds the columns that it draws and nothing else; a column's name cannot be an expression.
#[tokio::test]
async fn a_chart_is_built_by_the_host() {
    let visualization = Visualization {
        y: Some("goals[0].x".to_owned()),
        title: Some("Goals".to_owned()),
        ..Visualization::default()
    };
    let rows = output(
        vec![
            ("team", ColumnKind::Text, texts(&["A", "\"B\"\u{7}"])),
            ("secret", ColumnKind::Text, texts(&["s", "t"])),
            (
                "goals[0].x",
                ColumnKind::Int64,
                ColumnData::I64s(vec![3, 4]),
            ),
        ],
        2,
    );
    let chart = released(&policy(ResultKind::Chart(visualization)), rows)
        .await
        .unwrap();
    let spec = &chart["visualization"]["spec"];
    assert_eq!(
        spec["data"]["values"],
        serde_json::json!([{"team": "A", "goals[0].x": 3}, {"team": "\"B\"\u{7}", "goals[0].x": 4}])
    );
    assert_eq!(
        spec["encoding"]["y"],
        serde_json::json!({"field": "goals\\[0\\]\\.x", "type": "quantitative", "title": "goals[0].x"})
    );
    assert_eq!(
        (&spec["mark"]["type"], &spec["title"]),
        (&"bar".into(), &"Goals".into())
    );
    let missing = Visualization {
        x: Some("nope".to_owned()),
        ..Visualization::default()
    };
    let rows = output(vec![("n", ColumnKind::Int64, ColumnData::I64s(vec![1]))], 1);
    assert!(policy(ResultKind::Chart(missing)).release(&rows).is_err());
}

/// Names are in each mark: many bytes of them are not written by a worker, and very many by nobody.
#[test]
fn long_names_make_a_chart_heavy() {
    let chart = policy(ResultKind::Chart(Visualization::default()));
    let of = |name: &str, rows: usize| {
        let column = |name| (name, ColumnKind::Int64, ColumnData::I64s(vec![1; rows]));
        output(vec![column(name), column("goals")], rows as u32)
    };
    let [short, long, endless] = [20, 200, 100 << 10].map(|letters| "x".repeat(letters));
    assert!(!chart.is_heavy(&of(&short, 5_000)));
    assert!(chart.is_heavy(&of(&long, 5_000)));
    assert!(chart.release(&of(&long, 5_000)).is_ok());
    assert!(chart.release(&of(&endless, 100)).is_ok());
    assert!(matches!(
        chart.release(&of(&endless, 5_000)),
        Err(Cause::Fault(Fault {
            kind: FaultKind::BadAnswer,
            ..
        }))
    ));
    assert!(!policy(ResultKind::Number).is_heavy(&of(&endless, 1)));
}

/// A prediction starts after the last point, and its history stays with the seller.
#[tokio::test]
async fn a_prediction_follows_the_history() {
    let days: Vec<i32> = (0..60).collect();
    let values: Vec<f64> = (0..60)
        .map(|day| f64::from(day) + f64::from(day % 7))
        .collect();
    let history = output(
        vec![
            ("day", ColumnKind::Date, ColumnData::I32s(days)),
            ("value", ColumnKind::Float64, ColumnData::F64s(values)),
        ],
        60,
    );
    let wanted = Prediction {
        horizon: Some(3),
        level: Some(0.9),
        ..Prediction::default()
    };
    let answer = released(&policy(ResultKind::Prediction(wanted)), history)
        .await
        .unwrap();
    let points = answer["prediction"]["points"].as_array().unwrap();
    assert_eq!(points.len(), 3);
    assert_eq!(points[0]["t"], "1970-03-02");
    assert!(points[0]["lower"].as_f64() <= points[0]["value"].as_f64());
    assert_eq!(answer["prediction"]["level"], 0.9);
    // A series without a zone goes on without one, and is as old as its clock in UTC.
    for (kind, t) in [
        (ColumnKind::Timestamp, "1970-01-02T16:00:00Z"),
        (ColumnKind::LocalTimestamp, "1970-01-02T16:00:00"),
    ] {
        let hours = (0..40).map(|hour| hour * 3_600_000_000).collect();
        let values = (0..40).map(|hour| f64::from(hour % 9)).collect();
        let history = output(
            vec![
                ("at", kind, ColumnData::I64s(hours)),
                ("value", ColumnKind::Float64, ColumnData::F64s(values)),
            ],
            40,
        );
        let policy = Policy {
            freshness: told_in("at"),
            ..policy(ResultKind::Prediction(Prediction {
                time_column: Some("at".to_owned()),
                horizon: Some(1),
                ..Prediction::default()
            }))
        };
        let answer = policy.release(&history).unwrap();
        assert_eq!(answer.freshness, Some(39 * 3_600_000_000));
        let Insight::Forecast(forecast) = answer.insight else {
            panic!("a forecast");
        };
        assert_eq!(forecast.points[0].at, t);
    }
    let short = output(
        vec![
            ("day", ColumnKind::Date, ColumnData::I32s(vec![1])),
            ("value", ColumnKind::Float64, ColumnData::F64s(vec![1.0])),
        ],
        1,
    );
    let wanted = Prediction::default();
    assert!(matches!(
        policy(ResultKind::Prediction(wanted)).release(&short),
        Err(Cause::Fault(Fault {
            kind: FaultKind::BadAnswer,
            ..
        }))
    ));
}

/// A text that is no time is told to its owner, by its column, and not by what it says. Whoever buys is told of neither: a forecast has none of them.
#[test]
fn a_text_that_is_no_time_is_told_by_its_column() {
    let history = output(
        vec![
            ("customer", ColumnKind::Text, texts(&["ann", "bob"])),
            (
                "value",
                ColumnKind::Float64,
                ColumnData::F64s(vec![1.0, 2.0]),
            ),
        ],
        2,
    );
    let wanted = policy(ResultKind::Prediction(Prediction::default()));
    let (message, detail) = refused(&wanted, &history);
    assert!(message.contains("no time"), "{message}");
    assert!(!message.contains("customer"), "{message}");
    assert!(detail.contains("the column \"customer\": "), "{detail}");
    assert!(!format!("{message}{detail}").contains("ann"), "{detail}");
}

/// What any caller is told of a result that may not leave, and what its owner is told beside.
pub(super) fn refused(policy: &Policy, output: &Output) -> (String, String) {
    let Err(Cause::Fault(fault)) = policy.release(output) else {
        panic!("this must not leave");
    };
    assert_eq!(fault.kind, FaultKind::BadAnswer);
    (fault.message, fault.detail.unwrap_or_default())
}

/// A column that the source has lost, or that does not fit, is named to the owner alone: most of them are never released, one that privacy is counted by
/// least of all.
#[test]
fn columns_are_named_to_their_owner_alone() {
    let hidden = "patients_at_ward_7";
    let named = || Some(hidden.to_owned());
    let number = Policy {
        privacy: Some(Privacy {
            min_group_size: 5,
            privacy_unit_column: hidden.to_owned(),
        }),
        ..policy(ResultKind::Number)
    };
    let chart = |visualization| policy(ResultKind::Chart(visualization));
    let series = |prediction| policy(ResultKind::Prediction(prediction));
    let cases = [
        number,
        chart(Visualization {
            x: named(),
            ..Visualization::default()
        }),
        chart(Visualization {
            y: named(),
            ..Visualization::default()
        }),
        chart(Visualization {
            series: named(),
            ..Visualization::default()
        }),
        series(Prediction {
            time_column: named(),
            ..Prediction::default()
        }),
        series(Prediction {
            value_column: named(),
            ..Prediction::default()
        }),
    ];
    let lost = output(
        vec![
            ("day", ColumnKind::Date, ColumnData::I32s(vec![1])),
            ("n", ColumnKind::Int64, ColumnData::I64s(vec![1])),
        ],
        1,
    );
    for policy in cases {
        let (message, detail) = refused(&policy, &lost);
        assert!(!message.contains(hidden), "{message}");
        assert!(detail.contains(hidden), "{detail}");
    }
    // A number is no time.
    let number = ColumnData::I64s(vec![1]);
    let unfit = output(vec![(hidden, ColumnKind::Int64, number)], 1);
    let times = series(Prediction {
        time_column: named(),
        ..Prediction::default()
    });
    let (message, detail) = refused(&times, &unfit);
    assert!(!message.contains(hidden), "{message}");
    assert!(detail.contains(hidden), "{detail}");
}
