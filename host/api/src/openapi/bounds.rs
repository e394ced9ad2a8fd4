//! What bounds a body's texts and lists that no rule of their own bounds: the body. Nothing longer was ever read.

use crate::ids::is_of;
use crate::json::VALUES_MAX;
use crate::operation::BODY_BYTES_MAX;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Gives them to the schemas that only `requests` refer to: what is answered may be longer.
pub fn of_bodies(schemas: &mut BTreeMap<String, Value>, requests: &[Value], answers: &[Value]) {
    let (mut sent, mut told) = (BTreeSet::new(), BTreeSet::new());
    requests
        .iter()
        .for_each(|one| reach(one, schemas, &mut sent));
    answers
        .iter()
        .for_each(|one| reach(one, schemas, &mut told));
    for name in sent.difference(&told) {
        if let Some(schema) = schemas.get_mut(name) {
            bound(schema);
        }
    }
}

fn reach(value: &Value, schemas: &BTreeMap<String, Value>, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str);
            let name = reference.and_then(|reference| reference.rsplit('/').next());
            if let Some((name, schema)) = name.and_then(|name| schemas.get_key_value(name))
                && found.insert(name.clone())
            {
                reach(schema, schemas, found);
            }
            members
                .values()
                .for_each(|member| reach(member, schemas, found));
        }
        Value::Array(items) => items.iter().for_each(|item| reach(item, schemas, found)),
        _ => {}
    }
}

fn bound(schema: &mut Value) {
    let Some(rules) = schema.as_object_mut() else {
        return;
    };
    let is_bounded = ["maxLength", "pattern", "enum", "format"]
        .iter()
        .any(|keyword| rules.contains_key(*keyword));
    if is_of(rules, "string") && !is_bounded {
        rules.insert("maxLength".to_owned(), BODY_BYTES_MAX.into());
    }
    if is_of(rules, "array") {
        rules.entry("maxItems").or_insert(VALUES_MAX.into());
    }
    if let Some(members) = rules.get_mut("properties").and_then(Value::as_object_mut) {
        members.values_mut().for_each(bound);
    }
    rules.get_mut("items").into_iter().for_each(bound);
    for kind in ["allOf", "anyOf", "oneOf"] {
        let parts = rules.get_mut(kind).and_then(Value::as_array_mut);
        parts.into_iter().flatten().for_each(bound);
    }
}
