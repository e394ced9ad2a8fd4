use serde_json::{Value, json};
use souk_sandbox::{ColumnData, ColumnKind, Output};

use crate::definition::Visualization;
use crate::release::tests::{output, policy, refused, texts};
use crate::release::{Insight, ResultKind};

fn visualization(member: Value) -> Visualization {
    serde_json::from_value(member).unwrap()
}

fn spec(visualization: Visualization, output: &Output) -> Value {
    let chart = policy(ResultKind::Chart(visualization));
    let Insight::Chart(spec) = chart.release(output).unwrap().insight else {
        panic!("no chart");
    };
    serde_json::from_slice(&spec).unwrap()
}

/// A day's sales, with when and where they were.
fn sales() -> Output {
    let numbers = |number| ColumnData::I64s(vec![number]);
    let columns = vec![
        ("sold", ColumnKind::Int64, numbers(3)),
        ("day", ColumnKind::Date, ColumnData::I32s(vec![20_544])),
        ("at", ColumnKind::Timestamp, numbers(0)),
        ("shown", ColumnKind::LocalTimestamp, numbers(0)),
        ("shop", ColumnKind::Text, texts(&["north"])),
    ];
    output(columns, 1)
}

/// Two columns of one name are one value of a mark: which of them was drawn along both axes would be anybody's guess. Of columns that are not drawn nothing
/// is said.
#[test]
fn columns_that_are_drawn_have_names_of_their_own() {
    let numbers = |number| ColumnData::I64s(vec![number]);
    let columns = vec![
        ("n", ColumnKind::Text, texts(&["north"])),
        ("n", ColumnKind::Int64, numbers(3)),
        ("m", ColumnKind::Int64, numbers(4)),
    ];
    let output = output(columns, 1);
    let chart = |member| policy(ResultKind::Chart(visualization(member)));
    let (message, detail) = refused(&chart(json!({})), &output);
    assert!(message.contains("the same name"), "{message}");
    assert!(detail.contains("\"n\""), "{detail}");
    let drawn = spec(visualization(json!({"x": "n", "y": "m"})), &output);
    assert_eq!(drawn["data"]["values"][0], json!({"n": "north", "m": 4}));
}

/// What answers write in UTC is drawn in UTC, whatever clock the reader has: 1 April is no evening in March. What has no zone is not.
#[test]
fn dates_and_moments_are_drawn_in_utc() {
    for (x, scale) in [
        ("day", json!({"type": "utc"})),
        ("at", json!({"type": "utc"})),
        ("shown", Value::Null),
        ("shop", Value::Null),
    ] {
        let spec = spec(visualization(json!({"x": x, "y": "sold"})), &sales());
        assert_eq!(spec["encoding"]["x"]["scale"], scale, "{x}");
    }
    let colours = spec(
        visualization(json!({"x": "shop", "y": "sold", "series": "day"})),
        &sales(),
    );
    assert_eq!(
        colours["encoding"]["color"],
        json!({"field": "day", "type": "temporal", "title": "day", "scale": {"type": "utc"}})
    );
    // A row of pies has a heading and no scale.
    let pies = json!({"mark": "arc", "x": "shop", "y": "sold", "series": "day"});
    let pies = spec(visualization(pies), &sales());
    assert_eq!(
        pies["encoding"]["row"],
        json!({"field": "day", "type": "nominal", "title": "day", "sort": null})
    );
    assert_eq!(pies["data"]["values"][0]["day"], "2026-04-01");
}

/// A column that has its place already is not chosen for another one.
#[test]
fn columns_that_are_chosen_have_no_other_place() {
    let shown = |wanted: Value| {
        let spec = spec(visualization(wanted), &sales());
        let field = |place: &str| spec["encoding"][place]["field"].clone();
        (field("x"), field("y"))
    };
    assert_eq!(shown(json!({"y": "sold"})), (json!("day"), json!("sold")));
    assert_eq!(
        shown(json!({"y": "sold", "series": "day"})),
        (json!("at"), json!("sold"))
    );
    assert_eq!(shown(json!({"x": "day"})), (json!("day"), json!("sold")));

    let numbers = |number| ColumnData::I64s(vec![number]);
    let of = |wanted: Value, columns| {
        let spec = spec(visualization(wanted), &output(columns, 1));
        let field = |place: &str| spec["encoding"][place]["field"].clone();
        (field("x"), field("y"), field("color"))
    };
    // The number of the shop is no height.
    let columns = vec![
        ("day", ColumnKind::Date, ColumnData::I32s(vec![1])),
        ("shop", ColumnKind::Int64, numbers(7)),
        ("sold", ColumnKind::Int64, numbers(3)),
    ];
    assert_eq!(
        of(json!({"series": "shop"}), columns),
        (json!("day"), json!("sold"), json!("shop"))
    );
    // Names that are told apart by colours have an axis all the same, and numbers are drawn along them.
    for wanted in [
        json!({"series": "shop"}),
        json!({"y": "sold", "series": "shop"}),
    ] {
        let columns = vec![
            ("shop", ColumnKind::Text, texts(&["north"])),
            ("sold", ColumnKind::Int64, numbers(3)),
        ];
        assert_eq!(
            of(wanted, columns),
            (json!("shop"), json!("sold"), json!("shop"))
        );
    }
    let columns = vec![
        ("sold", ColumnKind::Int64, numbers(3)),
        ("day", ColumnKind::Date, ColumnData::I32s(vec![1])),
    ];
    assert_eq!(
        of(json!({}), columns),
        (json!("day"), json!("sold"), Value::Null)
    );
    // Along itself nothing is drawn.
    let alone = output(vec![("sold", ColumnKind::Int64, numbers(3))], 1);
    let chart = policy(ResultKind::Chart(visualization(json!({"y": "sold"}))));
    let (message, _) = refused(&chart, &alone);
    assert_eq!(
        message,
        "the query returned no column of numbers to draw along another one"
    );
}
