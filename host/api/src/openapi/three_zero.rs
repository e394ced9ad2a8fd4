//! The same document in OpenAPI 3.0, for tools that have not learned 3.1: written anew by rules, so that both always say the same.
//!
//! 3.1 has the whole of JSON Schema, 3.0 a dialect of its own: `nullable` instead of a type `null`, one `example` instead of `examples`, no
//! `const`, nothing beside a `$ref`, no webhooks and so nothing of what is only told there.

use serde_json::{Map, Value, json};

const VERSION: &str = "3.0.3";

/// `document` as 3.0 has it.
pub fn three_zero(document: &Value) -> Value {
    let mut whole = part(document, document);
    whole["openapi"] = VERSION.into();
    if let Some(license) = whole["info"]["license"].as_object_mut() {
        license.remove("identifier");
        let url = "https://www.apache.org/licenses/LICENSE-2.0";
        license.insert("url".to_owned(), url.into());
    }
    if let Some(members) = whole.as_object_mut() {
        members.remove("webhooks");
    }
    // What only they spoke of.
    let text = whole.to_string();
    let is_used = |name: &String| text.contains(&format!("\"#/components/schemas/{name}\""));
    if let Some(schemas) = whole["components"]["schemas"].as_object_mut() {
        schemas.retain(|name, _| is_used(name));
    }
    whole
}

/// Whatever is no schema: looked through for schemas.
fn part(value: &Value, document: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, member)| {
                let member = match name.as_str() {
                    "schema" => schema(member, document),
                    "schemas" => each(member, document),
                    "example" | "examples" => member.clone(),
                    _ => part(member, document),
                };
                (name.clone(), member)
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => items.iter().map(|item| part(item, document)).collect(),
        other => other.clone(),
    }
}

fn each(schemas: &Value, document: &Value) -> Value {
    let schemas = schemas.as_object().into_iter().flatten();
    let schemas = schemas.map(|(name, one)| (name.clone(), schema(one, document)));
    Value::Object(schemas.collect())
}

fn schema(value: &Value, document: &Value) -> Value {
    let Value::Object(rules) = value else {
        // `true`: anything.
        return match value {
            Value::Bool(true) => json!({}),
            other => other.clone(),
        };
    };
    let mut out = Map::new();
    for (keyword, rule) in rules {
        match keyword.as_str() {
            "type" => types(rule, &mut out),
            "const" => {
                out.insert("enum".to_owned(), json!([rule]));
            }
            "examples" => {
                if let Some(example) = rule.get(0) {
                    out.insert("example".to_owned(), example.clone());
                }
            }
            "properties" => {
                out.insert(keyword.clone(), each(rule, document));
            }
            "items" | "additionalProperties" | "not" => {
                let rule = match rule {
                    Value::Bool(_) => rule.clone(),
                    rule => schema(rule, document),
                };
                out.insert(keyword.clone(), rule);
            }
            "allOf" => {
                out.insert(keyword.clone(), list(rule, document));
            }
            "oneOf" | "anyOf" => alternatives(keyword, rule, &mut out, document),
            "propertyNames" | "contentEncoding" => {}
            _ => {
                out.insert(keyword.clone(), rule.clone());
            }
        }
    }
    // What stands beside a reference is not read in 3.0.
    if out.len() > 1
        && let Some(reference) = out.remove("$ref")
    {
        out.insert("allOf".to_owned(), json!([{"$ref": reference}]));
    }
    // 3.0 says that null is allowed where a type stands beside, and lists it where words are listed.
    if out.get("nullable") == Some(&Value::Bool(true)) {
        if let Some(words) = out.get_mut("enum").and_then(Value::as_array_mut)
            && !words.contains(&Value::Null)
        {
            words.push(Value::Null);
        }
        let named = out
            .get("allOf")
            .and_then(|all| all.get(0)?.get("$ref")?.as_str());
        let kind =
            named.and_then(|name| document.pointer(name.trim_start_matches('#'))?.get("type"));
        if let Some(kind @ Value::String(_)) = kind
            && !out.contains_key("type")
        {
            let kind = kind.clone();
            out.insert("type".to_owned(), kind);
        }
    }
    Value::Object(out)
}

fn list(rule: &Value, document: &Value) -> Value {
    let parts = rule.as_array().into_iter().flatten();
    parts.map(|part| schema(part, document)).collect()
}

fn types(rule: &Value, out: &mut Map<String, Value>) {
    let Value::Array(kinds) = rule else {
        out.insert("type".to_owned(), rule.clone());
        return;
    };
    let real: Vec<&Value> = kinds.iter().filter(|kind| *kind != "null").collect();
    if real.len() < kinds.len() {
        out.insert("nullable".to_owned(), true.into());
    }
    match real.as_slice() {
        [one] => {
            out.insert("type".to_owned(), (*one).clone());
        }
        // Several kinds: 3.0 has no word for it but this, and null goes with the first. Of `anyOf` openapi-generator makes an empty type.
        several => {
            let mut kinds: Vec<Value> = several.iter().map(|kind| json!({"type": kind})).collect();
            if let (Some(nullable), Some(first)) = (out.remove("nullable"), kinds.first_mut()) {
                first["nullable"] = nullable;
            }
            out.insert("oneOf".to_owned(), kinds.into());
        }
    }
}

/// Of something or null the something is left, and what else there is beside it.
fn alternatives(keyword: &str, rule: &Value, out: &mut Map<String, Value>, document: &Value) {
    let parts = rule.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_null = |part: &&Value| part.get("type").is_some_and(|kind| kind == "null");
    let real: Vec<&Value> = parts.iter().filter(|part| !is_null(part)).collect();
    if real.len() < parts.len() {
        out.insert("nullable".to_owned(), true.into());
    }
    let mut real: Vec<Value> = real
        .into_iter()
        .map(|part| schema(part, document))
        .collect();
    match (real.len(), parts.len()) {
        (1, 2..) => {
            let Value::Object(one) = real.remove(0) else {
                return;
            };
            for (keyword, rule) in one {
                match keyword.as_str() {
                    "$ref" => {
                        out.insert("allOf".to_owned(), json!([{"$ref": rule}]));
                    }
                    _ => {
                        out.entry(keyword).or_insert(rule);
                    }
                }
            }
        }
        _ => {
            out.insert(keyword.to_owned(), real.into());
        }
    }
}
