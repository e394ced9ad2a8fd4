//! The catalog: which requests it takes, and what is made of their answers.

mod common;

use common::{Reply, Talk, body, catalog, field, page, reply};
use serde_json::{Value as Json, json};
use souk_sdk::{Limits, Request, SchemaFilter};
use souk_tests::wire::LIMITS;

fn dataset(name: &str, location: &str) -> Json {
    json!({"datasetReference": {"projectId": "souk-test", "datasetId": name}, "location": location})
}

fn fields_of(schema: &str, fields: &[(&str, &str, i64)]) -> Reply {
    let columns = ["s", "t", "k", "p", "c", "d", "n"];
    let columns: Vec<Json> = columns.iter().map(|name| field(name, "STRING")).collect();
    let row = |(table, name, place): &(&str, &str, i64)| {
        json!([
            schema,
            table,
            "BASE TABLE",
            place.to_string(),
            name,
            "INT64",
            "YES"
        ])
    };
    let rows: Vec<Json> = fields.iter().map(row).collect();
    reply(page(Json::from(columns), &rows, rows.len(), None))
}

/// One statement for each location, and for fifty datasets of it; what they answer is told in one order.
#[test]
fn the_catalog_takes_few_requests() {
    let mut talk = Talk::usual();
    let id = talk.submit(catalog(true));
    let listed = |datasets: Vec<Json>, next: Json| {
        reply(json!({"datasets": datasets, "nextPageToken": next}))
    };
    talk.hears(0, listed(vec![dataset("zoo", "EU")], json!("more")))
        .unwrap();
    assert!(talk.asked[0].path.contains("pageToken=more"));
    let many = (0..60)
        .map(|number| dataset(&format!("d{number:02}"), "US"))
        .collect();
    talk.hears(0, listed(many, Json::Null)).unwrap();
    let mut statements = Vec::new();
    for schema in ["zoo", "d59", "d09"] {
        let asked = body(&talk.asked[0]);
        let text = asked["query"].as_str().unwrap().to_owned();
        let parts = text.matches("INFORMATION_SCHEMA.TABLES").count();
        assert_eq!(
            asked["queryParameters"].as_array().unwrap().len(),
            2 * parts
        );
        statements.push((asked["location"].as_str().unwrap().to_owned(), parts));
        talk.hears(
            0,
            fields_of(schema, &[("b", "y", 2), ("b", "x", 1), ("a", "z", 10)]),
        )
        .unwrap();
    }
    let place = |location: &str, parts| (location.to_owned(), parts);
    assert_eq!(
        statements,
        [place("EU", 1), place("US", 50), place("US", 10)]
    );
    let answer = talk.ended(id).unwrap().ok();
    let cells = |column| {
        (0..9)
            .map(|row| answer.cell(column, row))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        cells(answer.column("schema")),
        "d09 d09 d09 d59 d59 d59 zoo zoo zoo"
    );
    assert_eq!(cells(answer.column("field")), "z x y z x y z x y");
    assert_eq!(cells(answer.column("nullable")), ["true"; 9].join(" "));
}

/// Without fields there is one row for each table; without datasets none.
#[test]
fn a_catalog_may_have_no_fields() {
    let mut talk = Talk::usual();
    let id = talk.submit(catalog(false));
    talk.hears(0, reply(json!({"datasets": [dataset("shop", "EU")]})))
        .unwrap();
    assert!(
        !body(&talk.asked[0])["query"]
            .as_str()
            .unwrap()
            .contains("COLUMNS")
    );
    talk.hears(0, fields_of("shop", &[("a", "", 0)])).unwrap();
    let answer = talk.ended(id).unwrap().ok();
    let row: Vec<String> = (0..8).map(|column| answer.cell(column, 0)).collect();
    assert_eq!(
        row,
        ["shop", "a", "table", "NULL", "NULL", "NULL", "NULL", "NULL"]
    );
    let answer = talk.ask(catalog(true), [reply(json!({}))]).ok();
    assert_eq!((answer.rows, answer.columns.len()), (0, 8));
}

/// What is listed without end is not kept, and what is larger than is allowed is not asked for to its end.
#[test]
fn a_catalog_has_an_end() {
    let mut talk = Talk::usual();
    let id = talk.submit(catalog(true));
    let many = vec![dataset(&"d".repeat(1_000), "EU"); 1_000];
    let endless = json!({"datasets": many, "nextPageToken": "more"});
    let pages = (0..10).take_while(|_| {
        talk.hears(0, reply(endless.clone())).unwrap();
        !talk.asked.is_empty()
    });
    assert_eq!(pages.count(), 4);
    let error = talk.ended(id).unwrap().error();
    assert_eq!(error.code, "too_many_datasets");

    let limits = Limits {
        bytes_max: 20,
        ..LIMITS
    };
    let small = Request::Schema(SchemaFilter {
        schemas: vec![],
        tables: vec![],
        include_fields: true,
        limits,
    });
    let two = json!({"datasets": [dataset("shop", "EU"), dataset("zoo", "US")]});
    let fields = [("birds", "name", 1), ("birds", "weight", 2)];
    let error = Talk::usual()
        .ask(small, [reply(two), fields_of("shop", &fields)])
        .error();
    assert_eq!(error.code, "bytes_limit");
}
