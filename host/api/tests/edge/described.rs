//! How much the document says, by enumeration: whatever it describes has an example that is one, bounds, patterns, defaults and links. That it is
//! true is held against every answer that any test sees (`contract.rs`).

mod examples;

use crate::contract;
use crate::world::{World, request};
use axum::body::Body;
use http::Method;
use serde_json::{Map, Value};
use souk_api::openapi::document;
use std::collections::BTreeSet;

fn current() -> Value {
    document(&souk_api::all())
}

/// All operations with their ids.
fn operations(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| item.as_object().unwrap().values());
    operations.map(|operation| (operation["operationId"].as_str().unwrap(), operation))
}

/// What operations take as JSON, and what they answer with 2xx: with where that is.
fn bodies(document: &Value) -> Vec<(String, &Value)> {
    let mut bodies = Vec::new();
    let content = |one: &'static str| format!("/{one}/content/application~1json");
    for (id, operation) in operations(document) {
        let taken = operation.pointer(&content("requestBody"));
        bodies.extend(taken.map(|body| (format!("the body of {id}"), body)));
        for (status, answer) in operation["responses"].as_object().unwrap() {
            let told = answer.pointer("/content/application~1json");
            bodies.extend(told.map(|body| (format!("{status} of {id}"), body)));
        }
    }
    for (name, item) in document["webhooks"].as_object().unwrap() {
        let body = &item["post"]["requestBody"]["content"]["application/json"];
        bodies.push((format!("the event {name}"), body));
    }
    bodies
}

/// Every part of a schema with its place: members, items, alternatives. References are not followed.
fn parts<'a>(schema: &'a Value, at: &str, found: &mut Vec<(String, &'a Value)>) {
    found.push((at.to_owned(), schema));
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        parts(member, &format!("{at}.{name}"), found);
    }
    if schema["items"].is_object() {
        parts(&schema["items"], &format!("{at}[]"), found);
    }
    for kind in ["allOf", "anyOf", "oneOf"] {
        for part in schema[kind].as_array().into_iter().flatten() {
            parts(part, at, found);
        }
    }
}

/// The named schemas that are referred to from there, by themselves or by others.
fn reached(value: &Value, document: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str);
            let name = name.and_then(|name| name.strip_prefix("#/components/schemas/"));
            if let Some(name) = name.filter(|name| found.insert((*name).to_owned())) {
                reached(&document["components"]["schemas"][name], document, found);
            }
            members
                .values()
                .for_each(|member| reached(member, document, found));
        }
        Value::Array(items) => items.iter().for_each(|item| reached(item, document, found)),
        _ => {}
    }
}

/// All parts of the schemas that `side` of operations refers to: `requestBody`, `responses`.
fn parts_of<'a>(document: &'a Value, side: &str) -> Vec<(String, &'a Value)> {
    let mut names = BTreeSet::new();
    for (_, operation) in operations(document) {
        reached(&operation[side], document, &mut names);
    }
    let mut found = Vec::new();
    for name in names {
        parts(&document["components"]["schemas"][&name], &name, &mut found);
    }
    found
}

fn is_of(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|one| one == kind),
        one => one == kind,
    }
}

/// What may answer 304 says with which header it is asked for, and no other does.
#[test]
fn what_is_unchanged_is_asked_for_by_a_header() {
    let document = current();
    let mut asked = 0;
    for (id, operation) in operations(&document) {
        let parameters = operation["parameters"].as_array().unwrap();
        let has = parameters
            .iter()
            .any(|one| one["name"] == "If-None-Match" && one["in"] == "header");
        assert_eq!(has, operation["responses"].get("304").is_some(), "{id}");
        asked += usize::from(has);
    }
    assert_eq!(asked, 3);
    let session = &document["components"]["securitySchemes"]["session"]["description"];
    assert!(
        session.as_str().unwrap().contains("`x-csrf-token`"),
        "{session}"
    );
}

/// What holds when a parameter is left out is its schema's `default`, unless it depends upon something else.
#[test]
fn defaults_are_told_to_programs_too() {
    let document = current();
    let mut only_told = BTreeSet::new();
    for (id, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().unwrap() {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            let about = parameter["description"].as_str().unwrap();
            match schema.get("default") {
                None if about.to_lowercase().contains("default") => {
                    only_told.insert(format!("{id} {name}"));
                }
                None => {}
                Some(default) => {
                    let told = format!("Default {}.", default.to_string().trim_matches('"'));
                    assert!(about.ends_with(&told), "{id} {name}: {about}");
                    assert_eq!(
                        contract::fits(&document, schema, default),
                        Ok(()),
                        "{id} {name}"
                    );
                }
            }
        }
    }
    let mut expected: BTreeSet<String> = [
        // Not together with dates.
        "key_stats period",
        "api_key_stats period",
        "asset_statistics period",
        // Upon what it is sorted by; upon whether words are looked for.
        "asset_performance sort_order",
        "list_products sort_by",
        // Upon `Accept`; and a file holds all lines unless a page is asked for.
        "list_transactions format",
        "list_transactions page",
        "list_transactions per_page",
        "request_usage format",
        // Upon the clock.
        "request_usage month",
        // All there are.
        "company_objects types",
        "company_sales metrics",
    ]
    .map(str::to_owned)
    .into();
    // Upon the endpoint; and a cursor says itself where its page begins.
    for id in ["execute_endpoint", "fetch_data", "fetch_data_by_handle"] {
        expected.extend(["start", "limit", "sort", "fields"].map(|name| format!("{id} {name}")));
    }
    assert_eq!(only_told, expected);
}

/// A parameter that is sent with its default is answered as if it were left out.
#[tokio::test]
async fn a_default_may_be_sent() {
    let (document, world) = (current(), World::new().await);
    let acme = world.company("acme").await;
    let (asset, endpoint) = (world.asset(&acme).await, world.endpoint(&acme).await);
    let mut compared = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let operation = &item["get"];
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let defaults: Vec<(&str, &Value)> = parameters
            .filter_map(|one| Some((one["name"].as_str()?, one["schema"].get("default")?)))
            .collect();
        let path = path
            .replace("{company_id}", &acme.id)
            .replace("{user_id}", &acme.user_id)
            .replace("{asset_id}", &asset)
            .replace("{endpoint_id}", &endpoint);
        // What asks a source has none here.
        if defaults.is_empty()
            || path.contains('{')
            || path.ends_with("/execute")
            || path.ends_with("/test")
        {
            continue;
        }
        let key = match path.starts_with("/companies/") {
            true => &acme.key,
            false => &world.platform,
        };
        let get = async |path: &str| {
            let sent = request(Method::GET, key, path).body(Body::empty()).unwrap();
            world.send(sent).await
        };
        let mut left_out = get(&path).await;
        for (name, default) in defaults {
            let text = default.to_string();
            let mut sent = get(&format!("{path}?{name}={}", text.trim_matches('"'))).await;
            for answer in [&mut left_out, &mut sent] {
                let told = answer.body.as_object_mut().unwrap();
                if let Some(data) = told.get_mut("data").and_then(Value::as_object_mut) {
                    for time in ["generated_at", "last_updated"] {
                        data.remove(time);
                    }
                }
                told.remove("error");
            }
            assert_eq!(
                (sent.status, &sent.body),
                (left_out.status, &left_out.body),
                "{name} of {path}"
            );
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");
}

/// Whatever is an id says what it looks like, in what is sent, in what is answered and in what webhooks are told.
#[test]
fn ids_have_their_pattern() {
    let document = current();
    let mut without = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let mut all = Vec::new();
        parts(schema, name, &mut all);
        for (at, part) in all {
            let member = at.rsplit('.').next().unwrap();
            let is_id = member == "id" || member.ends_with("_id") || member.ends_with("_ids[]");
            if is_id && is_of(part, "string") && part.get("pattern").is_none() {
                without.push(at);
            }
        }
    }
    without.sort_unstable();
    let others_words = [
        // A seller's own word for a function, and what a platform calls a post.
        "Asset.function_id",
        "AssetIn.function_id",
        "AssetPatch.function_id",
        // What has no id is called by its name here.
        "AuditEntry.subject_id",
        "LightObject.id",
        // Of accounts, too.
        "Mismatch.id",
        "ProbeIn.function_id",
        "Publication.external_id",
        "ResealedKind.unreadable_ids[]",
    ];
    assert_eq!(without, others_words);
}

/// What is counted is not negative. What may be says so here.
#[test]
fn numbers_of_answers_have_a_minimum() {
    let document = current();
    let mut without = BTreeSet::new();
    for (at, part) in parts_of(&document, "responses") {
        if (is_of(part, "integer") || is_of(part, "number")) && part.get("minimum").is_none() {
            without.insert(at);
        }
    }
    let signed = [
        // What the source says.
        "AnswerValue",
        "CatalogTable.row_estimate",
        "PredictedPoint.lower",
        "PredictedPoint.upper",
        "PredictedPoint.value",
        // Less what was given back, which may have been paid in another period.
        "AssetPerformance.credits_earned",
        "AssetStatistics.credits_earned",
        "Credits.total_spent_credits_30d",
        "Earnings.gross_credits",
        "EndpointStats.credits_earned",
        "SalesFigures.revenue_credits",
        "SalesMetrics.revenue_credits",
        "TopCustomer.credits_spent",
        "TopProduct.revenue_credits",
        // Changes, in percent.
        "AssetPerformance.trend_percent",
        "SalesGrowth.active_buyers",
        "SalesGrowth.endpoint_requests",
        "SalesGrowth.executions",
        "SalesGrowth.revenue_credits",
        // Bookings and balances.
        "Credits.balance_credits",
        "Grant.balance_after_credits",
        "Mismatch.expected",
        "Mismatch.found",
        "PageBilling.balance_credits",
        "Reconciliation.sum_all_accounts",
        "ReconciliationBooked.amount_credits",
        "ReconciliationBooked.amount_usd_cents",
        "Transaction.amount_credits",
        "Transaction.amount_usd_cents",
        "Transaction.balance_after_credits",
        "Usd",
    ];
    assert_eq!(without, signed.map(str::to_owned).into());
}

/// Whatever is sent is bounded: texts by their length or their pattern, numbers on both sides, lists by their items. What only the body's own
/// bounds bound is told here.
#[test]
fn what_is_sent_is_bounded() {
    let document = current();
    let (mut unbounded, mut by_the_body) = (Vec::new(), BTreeSet::new());
    for (at, part) in parts_of(&document, "requestBody") {
        let has = |keyword: &str| part.get(keyword).is_some();
        let is_text = is_of(part, "string") && !has("enum") && !has("format");
        let is_number = is_of(part, "integer") || is_of(part, "number");
        let is_bounded = (!is_text || has("maxLength") || has("pattern"))
            && (!is_number || has("minimum") && has("maximum"))
            && (!is_of(part, "array") || has("maxItems"));
        if !is_bounded {
            unbounded.push(at.clone());
        }
        if part["maxLength"] == 1 << 20 || part["maxItems"] == 20_000 {
            by_the_body.insert(at);
        }
    }
    assert!(unbounded.is_empty(), "{unbounded:#?}");
    let known = [
        "ApiKeyIn.permissions",
        "ApiKeyPatch.permissions",
        "EndpointComparison.operators",
        "EndpointField.description",
        "WebhookIn.event_types",
        "WebhookPatch.event_types",
    ];
    assert_eq!(by_the_body, known.map(str::to_owned).into());
}

/// What has been made or begun links to what may be done with it; every link leads to an operation, and gives it what its path needs.
#[test]
fn what_is_made_links_on() {
    let document = current();
    let mut paths = std::collections::BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            paths.insert(operation["operationId"].as_str().unwrap(), path.as_str());
        }
    }
    let mut without = Vec::new();
    for (id, operation) in operations(&document) {
        for status in ["201", "202"] {
            let Some(answer) = operation["responses"].get(status) else {
                continue;
            };
            let links = answer["links"].as_object();
            if links.is_none_or(Map::is_empty) {
                without.push(id);
            }
            for (to, link) in links.into_iter().flatten() {
                let given = link["parameters"].as_object().unwrap();
                let needed = paths[to.as_str()]
                    .split('/')
                    .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
                let needed: BTreeSet<_> = needed.collect();
                let given_names: BTreeSet<_> = given.keys().map(String::as_str).collect();
                assert_eq!(given_names, needed, "{to} of {id}");
                for value in given.values().map(|value| value.as_str().unwrap()) {
                    let own = value.strip_prefix("$request.path.");
                    let is_own = own.is_some_and(|own| paths[id].contains(&format!("{{{own}}}")));
                    let shown = value.strip_prefix("$response.body#");
                    let example = &answer["content"]["application/json"]["example"];
                    let is_shown = shown.is_some_and(|shown| example.pointer(shown).is_some());
                    assert!(is_own || is_shown, "{value} of {to} of {id}");
                }
            }
        }
    }
    assert!(without.is_empty(), "{without:#?}");
    let links = |id: &str, status: &str| {
        let (_, operation) = operations(&document)
            .find(|(known, _)| *known == id)
            .unwrap();
        let links = operation["responses"][status]["links"].as_object().unwrap();
        links.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(links("grant_credits", "201"), ["get_transaction"]);
    assert_eq!(links("put_file", "201"), ["delete_file", "get_file"]);
    assert_eq!(
        links("rotate_key", "201"),
        [
            "delete_key",
            "get_key",
            "key_stats",
            "revoke_key",
            "update_key"
        ]
    );
    assert!(links("create_company", "201").contains(&"get_company".to_owned()));
    assert!(links("upload_connector", "201").contains(&"activate_connector".to_owned()));
    assert!(links("publish_post_to", "202").contains(&"list_publications".to_owned()));
}

/// A generated client has a type for every answer.
#[test]
fn every_json_answer_has_a_name() {
    let document = current();
    for (at, body) in bodies(&document) {
        let name = body["schema"]["$ref"].as_str();
        let is_named = name.is_some_and(|name| name.starts_with("#/components/schemas/"));
        assert!(is_named, "{at}: {}", body["schema"]);
    }
}
