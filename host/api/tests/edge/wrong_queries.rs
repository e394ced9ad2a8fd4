//! Every operation that takes a query tells of all its wrong parameters at once, by enumeration: each is sent as what the document excludes, with one
//! that no operation has.

use crate::world::{World, request};
use axum::body::Body;
use http::Method;
use serde_json::Value;
use souk_api::openapi::document;

/// An operation, and its parameters as they are sent wrong.
struct Asked {
    id: String,
    method: Method,
    path: String,
    wrong: Vec<(String, String)>,
}

/// What the schema of a parameter excludes.
fn excluded(rules: &Value) -> Option<String> {
    if rules["enum"].is_array() {
        return Some("no-such-word".to_owned());
    }
    match rules["type"].as_str() {
        Some("boolean") => Some("perhaps".to_owned()),
        // By turns of another type, too small and too large.
        Some("integer") => match (rules["minimum"].as_i64(), rules["maximum"].as_i64()) {
            (_, Some(most)) if most < 1_000_000 => Some((most + 1).to_string()),
            (Some(least), _) if least > 0 => Some((least - 1).to_string()),
            _ => Some("many".to_owned()),
        },
        Some("string") if rules["format"] == "date" => Some("2026-02-30".to_owned()),
        Some("string") => match rules["maxLength"].as_u64() {
            Some(most) if most <= 1_000 => Some("x".repeat(most as usize + 1)),
            Some(_) => None,
            None => Some("no-such-text".to_owned()),
        },
        _ => None,
    }
}

fn operations() -> Vec<Asked> {
    let document = document(&souk_api::all());
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let parameters = parameters.filter(|parameter| parameter["in"] == "query");
            let wrong = parameters.filter_map(|parameter| {
                let name = parameter["name"].as_str()?.to_owned();
                Some((name, excluded(&parameter["schema"])?))
            });
            let wrong: Vec<_> = wrong.collect();
            if !wrong.is_empty() {
                all.push(Asked {
                    id: operation["operationId"].as_str().unwrap().to_owned(),
                    method: verb.to_ascii_uppercase().parse().unwrap(),
                    path: path.clone(),
                    wrong,
                });
            }
        }
    }
    all
}

#[tokio::test]
async fn all_wrong_parameters_are_named_at_once() {
    let world = World::new().await;
    let company = world.company("acme").await;
    let user = format!("/users/{}", company.user_id);
    let (mut wrong, mut told) = (Vec::new(), 0);
    for operation in operations() {
        // Callers of other routes' fields: what is no parameter of theirs is a filter.
        let has_filters = operation.path.contains("{endpoint_id}/execute")
            || operation.path.starts_with("/endpoints/v1");
        if has_filters {
            continue;
        }
        let path = operation.path.replace("{company_id}", &company.id);
        let path = path.replace("/users/{user_id}", &user);
        let path = path.split('/').map(|part| match part.starts_with('{') {
            true => "unknown",
            false => part,
        });
        let path = path.collect::<Vec<_>>().join("/");
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("no_such_parameter", "1");
        query.extend_pairs(&operation.wrong);
        let query = query.finish();
        let key = match path.starts_with("/companies/") {
            true => &company.key,
            false => &world.platform,
        };
        let sent = request(operation.method.clone(), key, &format!("{path}?{query}"));
        let answer = world.send(sent.body(Body::empty()).unwrap()).await;
        let fields = answer.fields();
        let names = operation.wrong.iter().map(|(name, _)| name.as_str());
        let missed: Vec<&str> = names
            .chain(["no_such_parameter"])
            .filter(|name| !fields.contains(name))
            .collect();
        told += 1;
        if answer.status != 400 || !missed.is_empty() {
            wrong.push(format!("{} {missed:?}: {}", operation.id, answer.body));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(told > 50, "{told}");
}
