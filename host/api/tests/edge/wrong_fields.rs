//! Every operation that takes a JSON body tells of all its wrong members at once, by enumeration: whatever the document says of a member is
//! broken, in all of them at the same time.

use crate::world::{Answer, Company, World, request};
use axum::body::Body;
use http::Method;
use serde_json::{Map, Value, json};
use souk_api::openapi::document;
use std::collections::BTreeMap;

/// An operation with a body, and what may stand in it.
struct Taking {
    id: String,
    method: Method,
    path: String,
    members: BTreeMap<String, Value>,
    /// Its path has a GET.
    is_shown: bool,
}

/// The schema that a reference leads to, of `null` or something the latter.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let found = document.pointer(reference.trim_start_matches('#'));
        return resolved(document, found.unwrap());
    }
    let choices = schema["oneOf"].as_array();
    let mut real = choices
        .into_iter()
        .flatten()
        .filter(|one| one["type"] != "null");
    match (real.next(), real.next()) {
        (Some(one), None) => resolved(document, one),
        _ => schema,
    }
}

/// The members of a body; of one that is several, those of the longest.
fn members(document: &Value, schema: &Value) -> BTreeMap<String, Value> {
    let schema = resolved(document, schema);
    let parts = ["allOf", "oneOf"]
        .iter()
        .find_map(|kind| schema[kind].as_array());
    if let Some(parts) = parts {
        let all = parts.iter().map(|part| members(document, part));
        return all.max_by_key(BTreeMap::len).unwrap_or_default();
    }
    let all = schema["properties"].as_object().into_iter().flatten();
    all.map(|(name, rules)| {
        let mut rules = resolved(document, rules).clone();
        if !rules["items"].is_null() {
            rules["items"] = resolved(document, &rules["items"]).clone();
        }
        (name.clone(), rules)
    })
    .collect()
}

fn operations() -> Vec<Taking> {
    let document = document(&souk_api::all());
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            let mut members = match body {
                Value::Null => continue,
                body => members(&document, body),
            };
            // A type that has two paths, of which one has a company to agree with.
            if !path.contains("{company_id}") {
                members.remove("company_id");
            }
            // A body that may be any object has no members to break.
            if !members.is_empty() {
                all.push(Taking {
                    id: operation["operationId"].as_str().unwrap().to_owned(),
                    method: verb.to_ascii_uppercase().parse().unwrap(),
                    path: path.clone(),
                    members,
                    is_shown: item["get"].is_object(),
                });
            }
        }
    }
    assert!(all.len() > 60, "{}", all.len());
    all
}

fn kind(rules: &Value) -> &str {
    let kinds = match &rules["type"] {
        Value::Array(kinds) => kinds.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut real = kinds.iter().filter_map(Value::as_str);
    real.find(|kind| *kind != "null").unwrap_or_default()
}

/// Of another type than the member.
fn of_another_type(rules: &Value) -> Value {
    match kind(rules) {
        "string" => json!(7),
        _ => json!("no such thing"),
    }
}

/// Of its type, and wrong by what else the document says of it; `None` where it says nothing that a short value breaks.
fn beyond_its_rules(rules: &Value) -> Option<Value> {
    if rules["enum"].is_array() {
        return Some(json!("no such word"));
    }
    match kind(rules) {
        "string" if rules["format"] == "date-time" => Some(json!("never")),
        "string" if rules["pattern"].is_string() => Some(json!(" ")),
        "string" if rules["minLength"].as_u64() > Some(0) => Some(json!("")),
        "string" => {
            let most = rules["maxLength"].as_u64().filter(|most| *most < 3_000)?;
            Some("x".repeat(most as usize + 1).into())
        }
        "integer" | "number" => match (&rules["minimum"], &rules["maximum"]) {
            (Value::Null, Value::Null) => None,
            (Value::Null, most) => Some(json!(most.as_f64()? as i64 + 1)),
            (least, _) => Some(json!(least.as_f64()? as i64 - 1)),
        },
        "array" if !rules["items"]["type"].is_null() => {
            Some(json!([of_another_type(&rules["items"])]))
        }
        _ => None,
    }
}

struct Place {
    world: World,
    company: Company,
    ids: BTreeMap<&'static str, String>,
}

impl Place {
    /// Where most things are that a path may name: an operation may look for its thing before it looks at what is to become of it.
    async fn new() -> Place {
        let world = World::new().await;
        let company = world.company("acme").await;
        let made = async |path: &str, body: Value| {
            let made = world.post(&company.key, &company.path(path), body).await;
            made.expect(201).text("/data/id")
        };
        let (asset, endpoint) = (world.asset(&company).await, world.endpoint(&company).await);
        let user = format!("/users/{}", company.user_id);
        let price = json!({"price_credits": 2, "effective_from": "2099-01-01T00:00:00Z"});
        let ids = BTreeMap::from([
            ("company_id", company.id.clone()),
            ("user_id", company.user_id.clone()),
            ("api_key_id", made("/api-keys", json!({"name": "x"})).await),
            (
                "post_id",
                made("/posts", json!({"title": "x", "body_markdown": "x"})).await,
            ),
            (
                "favorite_id",
                made(&format!("{user}/favorites"), json!({"asset_id": asset})).await,
            ),
            (
                "price_id",
                made(&format!("/assets/{asset}/prices"), price).await,
            ),
            ("asset_id", asset),
            ("endpoint_id", endpoint),
        ]);
        Place {
            world,
            company,
            ids,
        }
    }

    fn path(&self, of: &Taking) -> String {
        let parts = of.path.split('/').map(|part| {
            let name = part
                .strip_prefix('{')
                .and_then(|part| part.strip_suffix('}'));
            match name {
                Some(name) => self.ids.get(name).map_or("unknown", String::as_str),
                None => part,
            }
        });
        parts.collect::<Vec<_>>().join("/")
    }

    fn key(&self, path: &str) -> &str {
        match path.starts_with("/companies/") {
            true => &self.company.key,
            false => &self.world.platform,
        }
    }

    async fn send(&self, to: &Taking, body: &Map<String, Value>) -> Answer {
        self.send_to(&self.path(to), to, body).await
    }

    async fn send_to(&self, path: &str, to: &Taking, body: &Map<String, Value>) -> Answer {
        let sent = request(to.method.clone(), self.key(path), path)
            .header("content-type", "application/json")
            .header("idempotency-key", format!("{}-{}", to.id, body.len()));
        let body = Value::from(body.clone()).to_string();
        self.world.send(sent.body(Body::from(body)).unwrap()).await
    }

    /// What an operation is about to change, if that can be looked at where it is changed.
    async fn thing(&self, of: &Taking) -> Option<Value> {
        let changes = [Method::PATCH, Method::PUT].contains(&of.method);
        if !changes || !of.is_shown {
            return None;
        }
        let path = self.path(of);
        let shown = self.world.get(self.key(&path), &path).await;
        (shown.status == 200).then(|| shown.body["data"].clone())
    }
}

/// What is broken and not named.
fn missed(answer: &Answer, body: &Map<String, Value>) -> Vec<String> {
    let fields = answer.fields();
    let is_named = |name: &str| {
        fields.iter().any(|field| {
            let rest = field.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    };
    body.keys()
        .filter(|name| !is_named(name))
        .cloned()
        .collect()
}

/// Sends every operation a body that is broken so, and holds it to naming each member of it, and to leaving alone what it was to change. One that
/// answers `excused` is let off, as is one of which nothing is broken. How many were held to it.
async fn all_are_named(
    broken: impl Fn(&Taking) -> Map<String, Value>,
    excused: Option<u16>,
) -> usize {
    let place = Place::new().await;
    let (mut wrong, mut told, mut left) = (Vec::new(), 0, 0);
    for operation in operations() {
        let body = broken(&operation);
        let before = place.thing(&operation).await;
        let answer = place.send(&operation, &body).await;
        if place.thing(&operation).await != before {
            wrong.push(format!("{} has changed what it refuses", operation.id));
        }
        left += usize::from(before.is_some() && answer.status == 400);
        if excused == Some(answer.status.as_u16()) || body.is_empty() {
            continue;
        }
        told += 1;
        let missed = missed(&answer, &body);
        if answer.status != 400 || !missed.is_empty() {
            wrong.push(format!("{} {missed:?}: {}", operation.id, answer.body));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(left > 5, "{left} were looked at");
    told
}

/// The members that can be wrong and yet of their type.
fn beyond_all_rules(operation: &Taking) -> Map<String, Value> {
    let all = operation.members.iter();
    all.filter_map(|(name, rules)| Some((name.clone(), beyond_its_rules(rules)?)))
        .collect()
}

/// All members are of another type.
#[tokio::test]
async fn all_wrong_types_are_named_at_once() {
    let untyped = |operation: &Taking| {
        let all = operation.members.iter();
        all.map(|(name, rules)| (name.clone(), of_another_type(rules)))
            .collect()
    };
    let told = all_are_named(untyped, None).await;
    assert_eq!(told, operations().len());
}

/// One member is of another type, which its operation never gets to see; the others break what else is said of them, which is the operation's
/// to find.
#[tokio::test]
async fn types_and_rules_are_told_together() {
    let mixed = |operation: &Taking| {
        let mut body = beyond_all_rules(operation);
        let mut members = operation.members.iter();
        if let Some((name, rules)) = members.find(|(_, rules)| !kind(rules).is_empty()) {
            body.insert(name.clone(), of_another_type(rules));
        }
        body
    };
    let told = all_are_named(mixed, None).await;
    assert_eq!(told, operations().len());
}

/// A wrong parameter of the query is told beside all wrong members of the body.
#[tokio::test]
async fn a_wrong_query_hides_no_wrong_body() {
    // Bodies of one kind or another: only the operation, which is not asked, can tell of which.
    let of_two_kinds = ["test_unsaved_connection", "test_integration"];
    let place = Place::new().await;
    let mut wrong = Vec::new();
    for operation in operations() {
        if of_two_kinds.contains(&operation.id.as_str()) {
            continue;
        }
        let all = operation.members.iter();
        let body = all.map(|(name, rules)| (name.clone(), of_another_type(rules)));
        let body: Map<_, _> = body.collect();
        let path = format!("{}?no_such_parameter=1", place.path(&operation));
        let answer = place.send_to(&path, &operation, &body).await;
        let missed = missed(&answer, &body);
        let is_both = answer.fields().contains(&"no_such_parameter") && missed.is_empty();
        if answer.status != 400 || !is_both {
            wrong.push(format!("{} {missed:?}: {}", operation.id, answer.body));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// All members are of their type, and wrong by what else the document says of them.
#[tokio::test]
async fn all_broken_rules_are_told_at_once() {
    // What it is about is looked for first, and was not made here.
    let told = all_are_named(beyond_all_rules, Some(404)).await;
    assert!(told > 50, "{told}");
}

/// What no schema says, since it hangs upon another member, is told beside the rest.
#[tokio::test]
async fn what_hangs_together_is_told_too() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (method, payout) = (acme.path("/payout-method"), "/admin/payouts/pay_unknown");
    let grants = format!("/admin{}", acme.path("/credits/grants"));
    for (verb, path, body, fields) in [
        (
            Method::PUT,
            method.as_str(),
            json!({"type": "paypal", "account_holder": "", "destination": "nobody.example"}),
            vec!["account_holder", "destination"],
        ),
        (
            Method::PUT,
            &method,
            json!({"type": "cheque", "account_holder": " ", "destination": "1"}),
            vec!["account_holder", "destination", "type"],
        ),
        // Of an unknown type nobody knows what it pays to.
        (
            Method::PUT,
            &method,
            json!({"type": "cheque", "account_holder": " ", "destination": "line 1\nline 2"}),
            vec!["account_holder", "type"],
        ),
        (
            Method::PATCH,
            payout,
            json!({"status": "paid", "failure_reason": ""}),
            vec!["failure_reason", "reference"],
        ),
        (
            Method::PATCH,
            payout,
            json!({"status": "requested", "reference": "", "failure_reason": " "}),
            vec!["failure_reason", "reference", "status"],
        ),
        (
            Method::POST,
            &grants,
            json!({"credits": 0, "reason": ""}),
            vec!["credits", "reason"],
        ),
        (
            Method::POST,
            &grants,
            json!({"credits": 1.5, "company_id": "cmp_other"}),
            vec!["company_id", "credits", "reason"],
        ),
    ] {
        let sent = request(verb, &world.platform, path).header("content-type", "application/json");
        let refused = world
            .send(sent.body(Body::from(body.to_string())).unwrap())
            .await;
        let refused = refused.expect_error(400, "VALIDATION_ERROR");
        let mut named = refused.fields();
        named.sort_unstable();
        assert_eq!(named, fields, "{path}: {}", refused.body);
    }
}
