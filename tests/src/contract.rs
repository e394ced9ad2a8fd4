//! Every answer that a test sees is held against `openapi.json`: the operation is known, its status is described, the body is what the
//! schema of that status says. An error has the envelope, and a code that is listed for its operation and status.
//!
//! Needs nothing but `serde_json` and `regex`, because the tests of `souk-api` include this file as well. The validator knows the keywords that the
//! document uses and refuses any other, so that none is believed to be checked that is not. Start reading at [`check`].

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, OnceLock};

use regex::Regex;
use serde_json::{Map, Value};

/// The checked-in document, which another test keeps equal to the one that is served.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
const DOCUMENT_ABOVE: [&str; 3] = ["", "/..", "/../.."];

/// What a client saw.
pub struct Seen<'a> {
    pub method: &'a str,
    /// With or without its query.
    pub path: &'a str,
    pub status: u16,
    pub content_type: &'a str,
    pub body: &'a [u8],
}

/// Panics with what is wrong when an answer contradicts the document.
#[track_caller]
pub fn check(seen: &Seen<'_>) {
    if let Err(wrong) = judge(document(), seen) {
        panic!(
            "{} {} answered {}, which contradicts openapi.json: {wrong}\n{}",
            seen.method,
            seen.path,
            seen.status,
            String::from_utf8_lossy(seen.body)
        );
    }
}

fn document() -> &'static Value {
    static READ: OnceLock<Value> = OnceLock::new();
    READ.get_or_init(|| {
        let (root, name) = DOCUMENT.rsplit_once('/').expect("a path");
        let text = DOCUMENT_ABOVE
            .iter()
            .find_map(|above| std::fs::read(format!("{root}{above}/{name}")).ok());
        serde_json::from_slice(&text.expect("openapi.json")).expect("JSON")
    })
}

fn judge(document: &Value, seen: &Seen<'_>) -> Result<(), String> {
    // Another address of the host, for operators: no API.
    if seen.path == "/metrics" {
        return Ok(());
    }
    // A HEAD is a GET without its body.
    let method = match seen.method {
        "HEAD" => "GET",
        method => method,
    };
    let operation = operation(document, method, seen.path);
    if seen.status >= 400 {
        // A HEAD has no body; whoever is no client of ours may be told in less.
        if seen.body.is_empty() && seen.method == "HEAD" {
            return Ok(());
        }
        let operation = operation.unwrap_or(&document["x-no-such-route"]);
        return content(document, response(document, operation, seen)?, seen);
    }
    if !(200..300).contains(&seen.status) && seen.status != 304 {
        return Err("neither 2xx, 304 nor an error is described anywhere".to_owned());
    }
    let operation = operation.ok_or("it describes no such operation")?;
    let response = response(document, operation, seen)?;
    content(document, response, seen)
}

/// What the document says of the status that was seen.
fn response<'a>(
    document: &'a Value,
    operation: &'a Value,
    seen: &Seen<'_>,
) -> Result<&'a Value, String> {
    let response = &operation["responses"][seen.status.to_string()];
    if response.is_null() {
        let described = operation["responses"].as_object();
        let described: Vec<&String> = described.into_iter().flat_map(Map::keys).collect();
        return Err(format!("it describes {described:?} only"));
    }
    let Some(reference) = response["$ref"].as_str() else {
        return Ok(response);
    };
    let found = document.pointer(reference.trim_start_matches('#'));
    found.ok_or_else(|| format!("{reference} does not resolve"))
}

/// The operation of a path, the one with the most literal segments when several match.
fn operation<'a>(document: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').collect();
    let paths = document["paths"].as_object()?;
    let fits = |template: &str| {
        let wanted: Vec<&str> = template.split('/').collect();
        let same = |(wanted, segment): (&&str, &&str)| wanted.starts_with('{') || wanted == segment;
        wanted.len() == segments.len() && wanted.iter().zip(&segments).all(same)
    };
    let (_, item) = paths
        .iter()
        .filter(|(template, _)| fits(template))
        .min_by_key(|(template, _)| template.matches('{').count())?;
    item.get(method.to_ascii_lowercase())
}

fn content(document: &Value, response: &Value, seen: &Seen<'_>) -> Result<(), String> {
    let kinds = response["content"].as_object();
    let Some(kinds) = kinds else {
        return match seen.body.is_empty() {
            true => Ok(()),
            false => Err("it describes an answer without a body".to_owned()),
        };
    };
    let kind = seen
        .content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    let described = kinds
        .get(kind)
        .ok_or_else(|| format!("it does not describe a body of type {kind:?}"))?;
    if kind != "application/json" {
        return Ok(());
    }
    let body: Value =
        serde_json::from_slice(seen.body).map_err(|error| format!("no JSON: {error}"))?;
    if let Some(codes) = response["x-codes"].as_array()
        && !codes.contains(&body["error"]["code"])
    {
        return Err(format!("{} is none of its codes", body["error"]["code"]));
    }
    match described.get("schema") {
        Some(schema) => validate(document, schema, &body, "$")?,
        None => return Ok(()),
    }
    payloads(document, &body["data"])
}

/// What a delivery shows of an event is what the document says that webhooks are told of it.
fn payloads(document: &Value, data: &Value) -> Result<(), String> {
    let all = match data {
        Value::Array(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    for delivery in all {
        let (kind, payload) = (&delivery["event_type"], &delivery["payload"]);
        let (Some(kind), true) = (kind.as_str(), payload.is_object()) else {
            continue;
        };
        let event = &document["webhooks"][kind]["post"]["requestBody"]["content"];
        let schema = &event["application/json"]["schema"];
        validate(document, schema, payload, &format!("$ of {kind}"))?;
        let named = schema["$ref"].as_str().unwrap_or_default();
        let data = document.pointer(&format!("{}/properties/data/properties", &named[1..]));
        let data = data
            .and_then(Value::as_object)
            .ok_or("the event says nothing")?;
        undescribed(data, &payload["data"], &format!("$.data of {kind}"))?;
    }
    Ok(())
}

/// Whether a value is what a schema of the document says.
#[allow(dead_code)]
pub fn fits(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    validate(document, schema, value, "$")
}

/// Keywords that say something about a value without restricting it.
const SAYINGS: [&str; 10] = [
    "description",
    "title",
    "example",
    "examples",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "propertyNames",
];

fn validate(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    fit(document, schema, value, at, false)
}

/// `in_part`: the schema is one of several that say together which members there are.
fn fit(
    document: &Value,
    schema: &Value,
    value: &Value,
    at: &str,
    in_part: bool,
) -> Result<(), String> {
    let rules = match schema {
        Value::Bool(true) => return Ok(()),
        Value::Object(rules) => rules,
        other => return Err(format!("{at}: {other} is no schema that this check knows")),
    };
    for (keyword, rule) in rules {
        obey(document, (rules, in_part), keyword, rule, value, at)?;
    }
    Ok(())
}

fn obey(
    document: &Value,
    (rules, in_part): (&Map<String, Value>, bool),
    keyword: &str,
    rule: &Value,
    value: &Value,
    at: &str,
) -> Result<(), String> {
    let wrong = |what: String| Err(format!("{at}: {what}"));
    match keyword {
        "$ref" => {
            let place = rule.as_str().unwrap_or_default().trim_start_matches('#');
            match document.pointer(place) {
                Some(schema) => fit(document, schema, value, at, in_part),
                None => wrong(format!("{rule} does not resolve")),
            }
        }
        "type" => {
            let types = match rule {
                Value::Array(types) => types.as_slice(),
                one => std::slice::from_ref(one),
            };
            match types.iter().any(|name| is_a(value, name)) {
                true => Ok(()),
                false => wrong(format!("{value} is no {rule}")),
            }
        }
        "enum" => match rule.as_array().is_some_and(|all| all.contains(value)) {
            true => Ok(()),
            false => wrong(format!("{value} is none of {rule}")),
        },
        "const" => match rule == value {
            true => Ok(()),
            false => wrong(format!("{value} is not {rule}")),
        },
        "allOf" => parts(rule).try_for_each(|part| fit(document, part, value, at, true)),
        "anyOf" | "oneOf" => {
            let wrongs: Vec<String> = parts(rule)
                .filter_map(|part| validate(document, part, value, at).err())
                .collect();
            let right = parts(rule).count() - wrongs.len();
            match right == 1 || keyword == "anyOf" && right > 1 {
                true => Ok(()),
                false => wrong(format!("{right} of {keyword} fit: {}", wrongs.join("; "))),
            }
        }
        "required" => {
            let Some(members) = value.as_object() else {
                return Ok(());
            };
            let missing =
                parts(rule).find(|name| !members.contains_key(name.as_str().unwrap_or("")));
            match missing {
                None => Ok(()),
                Some(name) => wrong(format!("{name} is missing")),
            }
        }
        "properties" => {
            let Some(properties) = rule.as_object() else {
                return wrong("properties are no object".to_owned());
            };
            for (name, schema) in properties {
                if let Some(member) = value.get(name) {
                    validate(document, schema, member, &format!("{at}.{name}"))?;
                }
            }
            match in_part || rules.contains_key("additionalProperties") {
                true => Ok(()),
                false => undescribed(properties, value, at),
            }
        }
        "additionalProperties" => {
            let named = rules.get("properties").and_then(Value::as_object);
            let others = value.as_object().into_iter().flatten();
            for (name, member) in others {
                if named.is_none_or(|named| !named.contains_key(name)) {
                    if *rule == Value::Bool(false) {
                        return wrong(format!("{name} is not described"));
                    }
                    validate(document, rule, member, &format!("{at}.{name}"))?;
                }
            }
            Ok(())
        }
        "items" => {
            for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                validate(document, rule, item, &format!("{at}[{place}]"))?;
            }
            Ok(())
        }
        "minimum" | "maximum" => match (value.as_f64(), rule.as_f64()) {
            (Some(number), Some(bound)) if keyword == "minimum" && number < bound => {
                wrong(format!("{value} is below {rule}"))
            }
            (Some(number), Some(bound)) if keyword == "maximum" && number > bound => {
                wrong(format!("{value} is above {rule}"))
            }
            _ => Ok(()),
        },
        "minLength" | "maxLength" => {
            let length = value.as_str().map(|text| text.chars().count() as u64);
            match (length, rule.as_u64()) {
                (Some(length), Some(bound)) if keyword == "minLength" && length < bound => {
                    wrong(format!("{value} is shorter than {rule}"))
                }
                (Some(length), Some(bound)) if keyword == "maxLength" && length > bound => {
                    wrong(format!("{value} is longer than {rule}"))
                }
                _ => Ok(()),
            }
        }
        "pattern" => match (value.as_str(), rule.as_str()) {
            (Some(text), Some(pattern)) if !has_pattern(text, pattern)? => {
                wrong(format!("{value} does not match {pattern}"))
            }
            _ => Ok(()),
        },
        "minItems" | "maxItems" => {
            let length = value.as_array().map(|items| items.len() as u64);
            match (length, rule.as_u64()) {
                (Some(length), Some(bound)) if keyword == "minItems" && length < bound => {
                    wrong(format!("has fewer items than {rule}"))
                }
                (Some(length), Some(bound)) if keyword == "maxItems" && length > bound => {
                    wrong(format!("has more items than {rule}"))
                }
                _ => Ok(()),
            }
        }
        "format" => match value.as_str() {
            Some(text) if !is_formatted(text, rule.as_str().unwrap_or_default()) => {
                wrong(format!("{value} is no {rule}"))
            }
            _ => Ok(()),
        },
        saying if SAYINGS.contains(&saying) => Ok(()),
        unknown => wrong(format!("this check does not know the keyword {unknown:?}")),
    }
}

/// Patterns are compiled once: there are few, and every answer of every test is held against them.
fn has_pattern(text: &str, pattern: &str) -> Result<bool, String> {
    static KNOWN: Mutex<BTreeMap<String, Regex>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().map_err(|error| error.to_string())?;
    if let Some(regex) = known.get(pattern) {
        return Ok(regex.is_match(text));
    }
    let regex = Regex::new(pattern).map_err(|error| format!("{pattern}: {error}"))?;
    let matches = regex.is_match(text);
    known.insert(pattern.to_owned(), regex);
    Ok(matches)
}

/// A member that an answer has and its schema does not name is one that nobody can rely on: the document is behind.
fn undescribed(properties: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
    let mut members = value.as_object().into_iter().flatten();
    match members.find(|(name, _)| !properties.contains_key(*name)) {
        None => Ok(()),
        Some((name, _)) => Err(format!("{at}: {name} is not described")),
    }
}

fn parts(rule: &Value) -> impl Iterator<Item = &Value> {
    rule.as_array().into_iter().flatten()
}

fn is_a(value: &Value, name: &Value) -> bool {
    match name.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    }
}

/// As far as a reader of a date would notice.
fn is_formatted(text: &str, format: &str) -> bool {
    let digits = |text: &str, pattern: &str| {
        text.len() == pattern.len()
            && text
                .bytes()
                .zip(pattern.bytes())
                .all(|(byte, wanted)| match wanted {
                    b'0' => byte.is_ascii_digit(),
                    wanted => byte == wanted,
                })
    };
    match format {
        "date" => digits(text, "0000-00-00"),
        "date-time" => {
            text.is_char_boundary(19)
                && digits(&text[..text.len().min(19)], "0000-00-00T00:00:00")
                && text.ends_with('Z')
        }
        _ => true,
    }
}

/// Operations of the document that no answer with 2xx was checked of: for whoever wants to know what the tests leave out.
#[allow(dead_code)]
pub fn operations() -> HashSet<String> {
    let paths = document()["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    operations
        .filter_map(|(_, operation)| Some(operation["operationId"].as_str()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judged(status: u16, body: Value) -> Result<(), String> {
        let document = json!({
            "paths": {
                "/things/{id}": {"get": {"responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
                    "404": {"$ref": "#/components/responses/Gone"},
                }}},
                "/things/all": {"get": {"responses": {"204": {}}}},
            },
            "components": {
                "schemas": {"Thing": {"type": "object", "required": ["a"], "properties": {
                    "a": {"type": ["integer", "null"]},
                    "b": {"type": "array", "items": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]}},
                    "d": {"type": "string", "pattern": "^[a-z]+$"},
                }}},
                "responses": {"Gone": {"x-codes": ["GONE", "LOST"], "content": {"application/json": {"schema": {"type": "object", "required": ["error"], "properties": {"error": {
                    "type": "object", "required": ["code"], "properties": {"code": {"type": "string"}},
                }}}}}}},
            },
        });
        let body = body.to_string();
        let seen = Seen {
            method: "GET",
            path: "/things/7?x=y",
            status,
            content_type: "application/json; charset=utf-8",
            body: body.as_bytes(),
        };
        let all = Seen {
            path: "/things/all",
            status: 204,
            body: b"",
            ..seen
        };
        judge(&document, &all)?;
        judge(&document, &seen)
    }

    /// What contradicts is found; what agrees is not.
    #[test]
    fn contradictions_are_found() {
        for (status, body, agrees) in [
            (200, json!({"a": 1}), true),
            (
                200,
                json!({"a": null, "b": [null, "2026-11-21T21:00:00.5Z"]}),
                true,
            ),
            (201, json!({"a": 1}), false),
            (200, json!([{"a": 1}]), false),
            (200, Value::Null, false),
            (200, json!({}), false),
            (200, json!({"a": 1.5}), false),
            (200, json!({"a": 1, "b": ["yesterday"]}), false),
            (200, json!({"a": 1, "c": 1}), false),
            (200, json!({"a": 1, "d": "word"}), true),
            (200, json!({"a": 1, "d": "two words"}), false),
            (404, json!({"error": {"code": "LOST"}}), true),
            (404, json!({"error": {"code": "CONFLICT"}}), false),
            (409, json!({"error": {"code": "CONFLICT"}}), false),
            (404, json!({"error": {}}), false),
            (404, json!({"message": "no"}), false),
        ] {
            let judged = judged(status, body.clone());
            assert_eq!(judged.is_ok(), agrees, "{status} {body}: {judged:?}");
        }
    }
}
