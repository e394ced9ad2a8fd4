//! The checked-in description is what the code says.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use souk_api::openapi::document;
use souk_api::{
    Access, Body, Caller, Created, Data, Deleted, Either, Operation, Paging, Path, Problem, Query,
    Routes, refusals,
};
use souk_domain::ids::{AssetId, CompanyId};
use std::collections::HashSet;
use utoipa::ToSchema;

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
    let tags = document["tags"].as_array().unwrap().iter();
    let tags: HashSet<_> = tags.map(|tag| &tag["name"]).collect();
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
                tags.contains(&operation["tags"][0]),
                "the tag of {method} {path} is not declared"
            );
        }
    }
    let routes: usize = souk_api::all()
        .operations()
        .map(|operation| operation.paths().count())
        .sum();
    assert_eq!(ids.len(), routes, "two operations share a route");
    check_references(&document, &document);
}

/// Every code of the catalogue is answered by somebody, and every operation with a key says how its key may be refused.
#[test]
fn no_refusal_is_forgotten() {
    let document = document(&souk_api::all());
    let described = document["components"]["examples"].as_object().unwrap();
    for refusal in refusals::ALL {
        assert!(described.contains_key(refusal.code), "{}", refusal.code);
    }
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let has_key = operation.get("security").is_none();
            for status in ["401", "403", "410"] {
                let described = operation["responses"].get(status).is_some();
                assert!(described || !has_key, "{operation}");
            }
        }
    }
}

/// A handler is not mounted as an operation whose path it cannot read, nor without a key when it has a caller.
#[test]
fn a_handler_that_contradicts_its_operation_is_not_mounted() {
    async fn one(_: Path<String>) -> Result<Deleted, Problem> {
        Ok(Deleted)
    }
    async fn called(_: Caller) -> Result<Deleted, Problem> {
        Ok(Deleted)
    }
    let right = Operation::get("right", "/things/{id}");
    Routes::new().add(right, one).add(right, called);
    let more = Operation::get("more", "/things/{id}/parts/{part}");
    let open = Operation::get("open", "/things").access(Access::Public);
    let refused = |mount: fn(Operation), operation| {
        std::panic::catch_unwind(move || mount(operation)).is_err()
    };
    assert!(refused(
        |operation| drop(Routes::new().add(operation, one)),
        more
    ));
    assert!(refused(
        |operation| drop(Routes::new().add(operation, called)),
        open
    ));
}

/// What a handler takes and answers is described as its types say.
#[test]
fn types_are_the_description() {
    #[derive(Deserialize, ToSchema)]
    #[allow(dead_code)]
    struct ThingIn {
        name: String,
    }
    #[derive(Serialize, ToSchema)]
    struct ThingOut {
        name: String,
    }
    async fn make(
        _: Caller,
        _: Path<(CompanyId, AssetId)>,
        _: Query<Paging>,
        Body(body): Body<ThingIn>,
    ) -> Result<Either<Data<ThingOut>, Created<ThingOut>>, Problem> {
        let name = body.name;
        Ok(Either::This(Data(ThingOut { name })))
    }
    let operation = Operation::post("make", "/companies/{company_id}/things/{asset_id}");
    let document = document(&Routes::new().add(operation, make));
    let make = &document["paths"]["/companies/{company_id}/things/{asset_id}"]["post"];
    let names: Vec<&str> = make["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "company_id",
            "asset_id",
            "page",
            "per_page",
            "Idempotency-Key"
        ]
    );
    let body = &make["requestBody"]["content"]["application/json"]["schema"]["$ref"];
    assert_eq!(body, "#/components/schemas/ThingIn");
    for status in ["200", "201"] {
        let schema = &make["responses"][status]["content"]["application/json"]["schema"];
        assert_eq!(schema["$ref"], "#/components/schemas/ThingOutResponse");
    }
    let envelope = &document["components"]["schemas"]["ThingOutResponse"];
    let data = &envelope["properties"]["data"]["$ref"];
    assert_eq!(data, "#/components/schemas/ThingOut");
    let missing = make["responses"]["404"]["$ref"].as_str().unwrap();
    let missing = document.pointer(missing.trim_start_matches('#')).unwrap();
    assert_eq!(
        missing["description"],
        "`ASSET_NOT_FOUND`, `COMPANY_NOT_FOUND`"
    );
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
