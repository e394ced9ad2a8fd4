//! The checked-in description is what the code says.

use serde_json::Value;
use souk_api::openapi::document;
use std::collections::HashSet;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi.json");

/// `openapi.json` at the root of the repository equals the document that is served. `UPDATE_GOLDEN=1` rewrites it.
#[test]
fn the_checked_in_document_is_current() {
    let current = serde_json::to_string_pretty(&document(&souk_api::all())).unwrap() + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(GOLDEN, &current).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    assert!(
        golden == current,
        "openapi.json is out of date; run: UPDATE_GOLDEN=1 cargo test -p souk-api --test edge openapi"
    );
}

/// Operation ids and routes are unique, every reference resolves, every operation says what it is.
#[test]
fn the_document_is_consistent() {
    let document = document(&souk_api::all());
    let mut ids = HashSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(
                ids.insert(operation["operationId"].as_str().unwrap().to_owned()),
                "{method} {path}"
            );
            assert!(
                !operation["summary"].as_str().unwrap().is_empty(),
                "{method} {path} has no summary"
            );
            assert!(
                !operation["tags"][0].as_str().unwrap().is_empty(),
                "{method} {path} has no tag"
            );
        }
    }
    let routes: usize = souk_api::all()
        .operations()
        .map(|operation| 1 + operation.aliases.len())
        .sum();
    assert_eq!(ids.len(), routes, "two operations share a route");
    check_references(&document, &document);
}

fn check_references(value: &Value, document: &Value) {
    match value {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                assert!(
                    document
                        .pointer(reference.trim_start_matches('#'))
                        .is_some(),
                    "{reference} does not resolve"
                );
            }
            members
                .values()
                .for_each(|member| check_references(member, document));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| check_references(item, document)),
        _ => {}
    }
}
