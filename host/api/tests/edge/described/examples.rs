//! Examples: each is one of what it stands at, and says what is true.

use super::{bodies, current, parts};
use crate::contract;
use serde_json::{Map, Value, json};

/// Every example fits its schema, those of members as well, and nothing in one is only a placeholder or empty.
#[test]
fn examples_are_examples() {
    let document = current();
    let mut wrong = Vec::new();
    for (at, body) in bodies(&document) {
        let mut hollow = |place: &str, value: &Value| {
            let is_empty = value.as_object().is_some_and(Map::is_empty);
            if *value == "…" || *value == "text" && !place.ends_with("type") || is_empty {
                wrong.push(format!("{at}: {place} is {value}"));
            }
        };
        within(&body["example"], "$", &mut hollow);
        if let Err(misfit) = contract::fits(&document, &body["schema"], &body["example"]) {
            wrong.push(format!("{at}: {misfit}"));
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let mut all = Vec::new();
        parts(schema, name, &mut all);
        for (at, part) in all {
            for example in part["examples"].as_array().into_iter().flatten() {
                if let Err(misfit) = contract::fits(&document, part, example) {
                    wrong.push(format!("{at}: {misfit}"));
                }
            }
        }
    }
    // Bodies without members, the document itself, and what a provider sends.
    let bare = [
        "the body of access_purchase",
        "the body of receive_payment_event",
        "the body of resume_purchase",
        "the body of suspend_purchase",
        "200 of openapi",
        "200 of openapi_3_0",
    ];
    wrong.retain(|one| !bare.iter().any(|bare| *one == format!("{bare}: $ is {{}}")));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What is always so is so in the examples; a run answers its value, and is given parameters; figures hang together.
#[test]
fn examples_say_what_is_true() {
    let document = current();
    let all = bodies(&document);
    let example = |at: &str| {
        let found = all.iter().find(|(known, _)| known == at);
        &found.unwrap_or_else(|| panic!("{at}")).1["example"]
    };
    let never = [
        "redistribution_allowed",
        "redistribution",
        "resale",
        "sublicensing",
        "overage_allowed",
    ];
    for (at, body) in &all {
        within(&body["example"], "$", &mut |place, value| {
            let is_never = never
                .iter()
                .any(|name| place.ends_with(&format!(".{name}")));
            assert!(!is_never || *value == false, "{at}: {place} is {value}");
        });
    }
    for id in ["execute_asset", "process_asset", "analyze", "test_asset"] {
        let params = &example(&format!("the body of {id}"))["params"];
        assert_eq!(*params, json!({"season": 2024}), "{id}");
        let value = &example(&format!("200 of {id}"))["data"]["answer_value"];
        assert!(value.is_number(), "{id}: {value}");
    }
    let page = example("200 of fetch_data");
    assert!(
        page.pointer("/data/response/data/0/team").is_some(),
        "{page}"
    );
    let sales = example("200 of company_sales");
    assert_eq!(sales["meta"]["group_by"], "day");
    assert!(
        sales["meta"]["totals"]["revenue_credits"].is_number(),
        "{sales}"
    );
    let books = &example("200 of reconcile_ledger")["data"];
    assert_eq!(
        (&books["sum_all_accounts"], &books["mismatches"]),
        (&json!(0), &json!([]))
    );
    let stats = &example("200 of key_stats")["data"];
    let sum = |names: [&str; 2]| {
        names
            .iter()
            .map(|name| stats[name].as_i64().unwrap())
            .sum::<i64>()
    };
    assert_eq!(
        stats["total_requests"],
        sum(["successful_requests", "failed_requests"])
    );
}

/// Each kind of event shows what is sent, which is what `docs/webhooks.md` tells of it, and its headers have patterns.
#[test]
fn events_are_shown_as_they_are_sent() {
    let document = current();
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/webhooks.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let events = document["webhooks"].as_object().unwrap();
    assert_eq!(events.len(), 11);
    for (name, item) in events {
        let body = &item["post"]["requestBody"]["content"]["application/json"];
        assert_eq!(body["example"]["type"], **name);
        let row = docs
            .lines()
            .find(|line| line.starts_with('|') && line.contains(&format!("`{name}`")));
        let row = row.unwrap_or_else(|| panic!("{name} is not told of"));
        let told = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap();
        for member in body["example"]["data"].as_object().unwrap().keys() {
            let is_told = told.contains(&format!("`{member}`")) || member == "company_id";
            assert!(
                is_told,
                "docs/webhooks.md does not tell of {member} of {name}"
            );
        }
        let parameters = item["post"]["parameters"].as_array().unwrap();
        assert_eq!(parameters.len(), 3);
        for header in parameters {
            assert!(header["schema"]["pattern"].is_string(), "{header}");
            let misfit = contract::fits(
                &document,
                &header["schema"],
                &header["schema"]["examples"][0],
            );
            assert_eq!(misfit, Ok(()), "{header}");
        }
    }
}

/// Values within a value, with their place.
fn within(value: &Value, at: &str, look: &mut impl FnMut(&str, &Value)) {
    look(at, value);
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(name, member)| within(member, &format!("{at}.{name}"), look)),
        Value::Array(items) => items
            .iter()
            .for_each(|item| within(item, &format!("{at}[]"), look)),
        _ => {}
    }
}
