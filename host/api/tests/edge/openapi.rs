//! The checked-in description is what the code says.

use crate::world::World;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use souk_api::openapi::{document, three_zero};
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
    let unrouted = document["x-no-such-route"].to_string();
    for refusal in refusals::ALL {
        let is_described = described.contains_key(refusal.code) || unrouted.contains(refusal.code);
        assert!(is_described, "{}", refusal.code);
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

/// Creating says what it needs, changing needs nothing: two schemas, made from one type.
#[test]
fn what_is_required_to_create_is_not_required_to_change() {
    let document = document(&souk_api::all());
    let schema = |name: &str| &document["components"]["schemas"][name];
    let body = |path: &str, verb: &str| {
        let place = &document["paths"][path][verb]["requestBody"]["content"]["application/json"];
        let name = place["schema"]["$ref"].as_str().unwrap();
        name.rsplit('/').next().unwrap().to_owned()
    };
    for (things, thing, kind, required) in [
        (
            "assets",
            "asset_id",
            "Asset",
            vec!["connection_id", "asset_type", "name"],
        ),
        (
            "endpoints",
            "endpoint_id",
            "Endpoint",
            vec!["connection_id", "name", "fields"],
        ),
        (
            "connections",
            "connection_id",
            "Connection",
            vec!["engine_id", "name", "credential_type", "credentials"],
        ),
    ] {
        let made = body(&format!("/companies/{{company_id}}/{things}"), "post");
        let changed = body(
            &format!("/companies/{{company_id}}/{things}/{{{thing}}}"),
            "patch",
        );
        assert_eq!(
            (made, changed),
            (format!("{kind}In"), format!("{kind}Patch"))
        );
        assert_eq!(schema(&format!("{kind}In"))["required"], json!(required));
        let patch = schema(&format!("{kind}Patch"));
        assert!(patch.get("required").is_none(), "{patch}");
        let members = |name: String| -> HashSet<String> {
            let members = schema(&name)["properties"].as_object().unwrap();
            members.keys().cloned().collect()
        };
        // All but whose it is, and what a change of an asset is tested with.
        let mut expected = members(format!("{kind}In"));
        expected.remove("user_id");
        if kind == "Asset" {
            expected.insert("params".to_owned());
        }
        assert_eq!(members(format!("{kind}Patch")), expected);
    }
}

/// Where only some words are possible, the schema lists them: a client's types come from there, not from prose.
#[test]
fn words_are_listed_and_not_told() {
    let document = document(&souk_api::all());
    let mut told = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for (member, rules) in schema["properties"].as_object().into_iter().flatten() {
            let text = rules["description"].as_str().unwrap_or_default();
            let is_list =
                text.starts_with('`') && (text.contains("` or `") || text.contains("`, `"));
            let is_text = rules["type"] == "string" || rules["type"] == json!(["string", "null"]);
            if is_list && is_text {
                told.push(format!("{name}.{member}: {text}"));
            }
        }
    }
    // Open lists: other kinds of subjects come with other versions, and tables are what a source calls them.
    told.retain(|one| {
        !one.starts_with("AuditEntry.subject_type") && !one.starts_with("CatalogTable.type")
    });
    assert!(told.is_empty(), "{told:#?}");
    let words = &document["components"]["schemas"]["KeyStatus"]["enum"];
    assert_eq!(*words, json!(["active", "expired", "deactivated"]));
}

/// Every id in a path has its pattern, every key of a repeat its own, every body an example, every answer the fields of limits, and what is made
/// links to what may be done with it.
#[test]
fn requests_are_described_to_the_letter() {
    let document = document(&souk_api::all());
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().unwrap().iter();
            for parameter in parameters {
                let name = parameter["name"].as_str().unwrap();
                let is_number = parameter["schema"]["type"] == "integer";
                let is_exact = parameter["schema"].get("pattern").is_some() || is_number;
                // A category is any text.
                let needs =
                    name == "Idempotency-Key" || parameter["in"] == "path" && name != "category";
                assert!(is_exact || !needs, "{name} of {verb} {path} has no pattern");
            }
            let answers = operation["responses"].as_object().unwrap().iter();
            let answers = answers.filter(|(status, _)| status.starts_with('2'));
            for (status, answer) in answers {
                for field in ["RateLimit", "RateLimit-Policy", "X-RateLimit-Limit"] {
                    let headers = &answer["headers"];
                    assert!(
                        headers.get(field).is_some(),
                        "{field} of {status} of {verb} {path}"
                    );
                }
            }
            let answers = operation["responses"].as_object().unwrap().values();
            let bodies = answers.chain(operation.get("requestBody"));
            for body in bodies.filter_map(|one| one.pointer("/content/application~1json")) {
                let is_shown = body.get("example").or(body.get("examples"));
                assert!(is_shown.is_some(), "{verb} {path} has no example of {body}");
            }
        }
    }
    let made = &document["paths"]["/companies/{company_id}/assets"]["post"]["responses"]["201"];
    let publish = json!({"operationId": "publish_asset", "parameters": {
        "company_id": "$request.path.company_id", "asset_id": "$response.body#/data/id",
    }});
    assert_eq!(made["links"]["publish_asset"], publish);
    // What is not so yet of a thing that has just been made: it has no price, and nobody but its company sees it.
    assert_eq!(made["links"].get("active_price"), None);
    let made = &document["paths"]["/companies/{company_id}/posts"]["post"]["responses"]["201"];
    assert!(made["links"].get("publish_post").is_some());
    assert_eq!(made["links"].get("view_company_post"), None);
    // What is made in a user's name and kept with the company, what has more members than the thing alone, and what has no path of its own.
    let links = |path: &str, status: &str| {
        let made = &document["paths"][format!("/companies/{{company_id}}{path}")]["post"];
        made["responses"][status]["links"].clone()
    };
    let alert =
        json!({"company_id": "$request.path.company_id", "alert_id": "$response.body#/data/id"});
    for id in [
        "get_alert",
        "update_alert",
        "delete_alert",
        "test_alert",
        "list_alert_events",
    ] {
        assert_eq!(
            links("/users/{user_id}/alerts", "201")[id]["parameters"],
            alert,
            "{id}"
        );
    }
    for id in [
        "get_user",
        "update_user",
        "invite_user",
        "create_alert",
        "list_favorites",
    ] {
        let user = &links("/users", "201")[id]["parameters"]["user_id"];
        assert_eq!(user, "$response.body#/data/id", "{id}");
    }
    let published = links("/posts/{post_id}/publications", "202");
    let list =
        json!({"company_id": "$request.path.company_id", "post_id": "$request.path.post_id"});
    assert_eq!(published["list_publications"]["parameters"], list);
    let integration = &published["get_integration"]["parameters"]["integration_id"];
    assert_eq!(integration, "$response.body#/data/integration_id");
    let price = &document["components"]["schemas"]["Usd"];
    assert_eq!(
        (&price["type"], &price["format"]),
        (&json!("number"), &json!("decimal"))
    );
}

/// An object says what is in it, be it anything: to a generated client one that says nothing is empty. But for bodies that have no members.
#[test]
fn no_object_is_bare() {
    fn bare(schema: &Value, at: &str, found: &mut Vec<String>) {
        match schema {
            Value::Object(rules) => {
                let says = ["properties", "additionalProperties", "allOf"];
                let says = says.iter().any(|keyword| rules.contains_key(*keyword));
                let is_object = match rules.get("type") {
                    Some(Value::Array(kinds)) => kinds.contains(&json!("object")),
                    kind => kind == Some(&json!("object")),
                };
                if is_object && !says {
                    found.push(at.to_owned());
                }
                for (name, part) in rules {
                    bare(part, &format!("{at}.{name}"), found);
                }
            }
            Value::Array(parts) => parts.iter().for_each(|part| bare(part, at, found)),
            _ => {}
        }
    }
    let document = document(&souk_api::all());
    let mut found = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        bare(schema, name, &mut found);
    }
    assert_eq!(found, ["AccessIn", "SuspendIn"]);
}

/// The rendition in 3.0 is served, has every path, and no word that 3.0 does not know.
#[tokio::test]
async fn the_rendition_in_3_0_is_one() {
    let document = document(&souk_api::all());
    let old = three_zero(&document);
    assert_eq!(old["openapi"], "3.0.3");
    let paths = |document: &Value| {
        document["paths"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(paths(&old), paths(&document));
    check_references(&old, &old);
    for (name, schema) in old["components"]["schemas"].as_object().unwrap() {
        check_old(schema, name);
    }
    let nullable = |schema: &Value| {
        let two = json!({"type": "string", "enum": ["a"]});
        let used =
            json!([{"$ref": "#/components/schemas/One"}, {"$ref": "#/components/schemas/Two"}]);
        let document =
            json!({"components": {"schemas": {"One": schema, "Two": two}}, "x-used": used});
        three_zero(&document)["components"]["schemas"]["One"].clone()
    };
    assert_eq!(
        nullable(&json!({"type": ["string", "null"]})),
        json!({"type": "string", "nullable": true})
    );
    let reference = json!({"$ref": "#/components/schemas/Two"});
    assert_eq!(
        nullable(&json!({"oneOf": [{"type": "null"}, reference], "description": "x"})),
        json!({"allOf": [reference], "nullable": true, "type": "string", "description": "x"})
    );
    assert_eq!(
        nullable(&json!({"const": 1, "examples": [1, 2]})),
        json!({"enum": [1], "example": 1})
    );
    assert_eq!(
        nullable(&json!({"type": ["number", "string", "null"]})),
        json!({"oneOf": [{"type": "number", "nullable": true}, {"type": "string"}]})
    );
    let world = World::new().await;
    let served = world.get("", "/openapi-3.0.json").await.expect(200);
    assert_eq!(served.body, old);
}

fn check_old(schema: &Value, at: &str) {
    let Some(rules) = schema.as_object() else {
        return;
    };
    for (keyword, rule) in rules {
        assert!(
            !["const", "examples", "propertyNames"].contains(&keyword.as_str()),
            "{keyword} in {at}"
        );
        match keyword.as_str() {
            "type" => assert!(rule.is_string() && rule != "null", "{rule} in {at}"),
            "$ref" => assert_eq!(rules.len(), 1, "something beside the reference in {at}"),
            "properties" => {
                for (name, schema) in rule.as_object().unwrap() {
                    check_old(schema, &format!("{at}.{name}"));
                }
            }
            "allOf" | "anyOf" | "oneOf" => {
                for part in rule.as_array().unwrap() {
                    check_old(part, at);
                }
            }
            "items" | "additionalProperties" => check_old(rule, at),
            _ => {}
        }
    }
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
