//! What a member may look like: an example by its name, so that the same thing looks the same wherever it stands.
//!
//! Members of the named schemas get theirs ([`illustrate`]), bodies of requests and answers are put together from them ([`of_body`]). The tables
//! stand in [`super::values`] and [`super::special`]. Refuses to know any operation.

use super::special::{SHOWN, SPECIAL, WHOLE};
use super::values::{FALSE, FRACTIONS, NUMBERS, TEXTS};
use crate::ids::{self, is_of};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Of a text that no table knows. The tests find it, and say where.
const UNKNOWN: &str = "…";

fn found<T: Copy>(all: &[(&str, T)], name: &str) -> Option<T> {
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, found)| *found)
}

/// What the tables say of a member in just this schema, or wherever it stands.
fn special(schema: &str, member: &str, rules: &Value) -> Option<Value> {
    let found = SPECIAL
        .iter()
        .find(|(kind, name, _)| schema.starts_with(kind) && *name == member);
    let special: Option<Value> = found.and_then(|(.., text)| serde_json::from_str(text).ok());
    let words = rules.get("enum").and_then(Value::as_array);
    special
        .filter(|value| words.is_none_or(|words| words.contains(value)))
        .or_else(|| by_type(member, rules))
}

/// A fraction (an amount of dollars refers to a schema of its own, and has no type here), and what is false.
fn by_type(member: &str, rules: &Value) -> Option<Value> {
    let rules = rules.as_object()?;
    if is_of(rules, "boolean") {
        return FALSE.contains(&member).then_some(Value::Bool(false));
    }
    let may_be = is_of(rules, "number") || !rules.contains_key("type");
    let number = found(FRACTIONS, member).filter(|_| may_be && !rules.contains_key("examples"))?;
    Some(match number.fract() == 0.0 {
        true => (number as i64).into(),
        false => number.into(),
    })
}

/// Gives the members of all schemas their examples, and what ids are restricted to.
pub fn illustrate(schemas: &mut BTreeMap<String, Value>) {
    for (name, schema) in schemas {
        in_members(name, schema);
    }
}

fn in_members(name: &str, schema: &mut Value) {
    let parts = schema.get_mut("allOf").and_then(Value::as_array_mut);
    for part in parts.into_iter().flatten() {
        in_members(name, part);
    }
    let members = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (member, rules) in members.into_iter().flatten() {
        let special = special(name, member, rules).filter(|value| !value.is_null());
        in_members(name, rules);
        let Some(rules) = rules.as_object_mut() else {
            continue;
        };
        ids::restrict(member, rules);
        ids::restrict_own(name, member, rules);
        let is_said = ["examples", "$ref", "enum"]
            .iter()
            .any(|keyword| rules.contains_key(*keyword));
        let example = || special.or_else(|| of_member(name, member, rules));
        if let Some(example) = (!is_said).then(example).flatten() {
            rules.insert("examples".to_owned(), json!([example]));
        }
    }
}

/// An example of a member that a schema describes itself.
fn of_member(schema: &str, member: &str, rules: &Map<String, Value>) -> Option<Value> {
    if rules.contains_key("enum") || rules.contains_key("const") {
        return None;
    }
    if is_of(rules, "string") {
        let text = match rules.get("format").and_then(Value::as_str) {
            Some("date-time") => "2026-03-01T12:00:00Z".to_owned(),
            Some("date") => "2026-03-01".to_owned(),
            _ => match (member, member.strip_suffix("_id")) {
                ("id", _) => ids::of_own(schema)?,
                (_, Some(of)) if ids::of(of).is_some() => ids::of(of)?,
                _ => found(TEXTS, member)?.to_owned(),
            },
        };
        let fits = |bound: &str, wrong: fn(usize, usize) -> bool| {
            let bound = rules.get(bound).and_then(Value::as_u64);
            bound.is_none_or(|bound| !wrong(text.chars().count(), bound as usize))
        };
        let fits = fits("minLength", |length, min| length < min)
            && fits("maxLength", |length, max| length > max);
        return fits.then(|| text.into());
    }
    if is_of(rules, "integer") {
        let number = found(NUMBERS, member)?;
        let fits = |bound: &str, wrong: fn(i64, i64) -> bool| {
            let bound = rules.get(bound).and_then(Value::as_f64);
            bound.is_none_or(|bound| !wrong(number, bound as i64))
        };
        let fits = fits("minimum", |number, min| number < min)
            && fits("maximum", |number, max| number > max);
        return fits.then(|| number.into());
    }
    if is_of(rules, "array") {
        let of = member.strip_suffix("_ids")?;
        let items = rules.get("items")?.as_object()?;
        let is_text = is_of(items, "string");
        return is_text.then(|| Some(json!([ids::of(of)?])))?;
    }
    None
}

/// A body that a request or an answer may have: what is required, and what [`SHOWN`] adds.
pub fn of_body(schema: &Value, schemas: &BTreeMap<String, Value>) -> Option<Value> {
    example("", schema, schemas, 0)
}

/// Deeper than any body.
const DEPTH_MAX: usize = 12;

/// `name`: of the schema that this one is a part of, if it has none itself.
fn example(
    name: &str,
    schema: &Value,
    schemas: &BTreeMap<String, Value>,
    depth: usize,
) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next()?;
        return object(name, schemas.get(name)?, schemas, depth);
    }
    object(name, schema, schemas, depth)
}

fn object(
    name: &str,
    schema: &Value,
    schemas: &BTreeMap<String, Value>,
    depth: usize,
) -> Option<Value> {
    if let Some(whole) = found(WHOLE, name) {
        return serde_json::from_str(whole).ok();
    }
    let first = |list: &str| schema.get(list)?.as_array()?.first().cloned();
    if let Some(example) = first("examples").or_else(|| first("enum")) {
        return Some(example);
    }
    let parts = |list: &str| schema.get(list).and_then(Value::as_array);
    if let Some(all) = parts("allOf") {
        let mut whole = Map::new();
        for part in all {
            if let Some(Value::Object(members)) = example(name, part, schemas, depth + 1) {
                whole.extend(members);
            }
        }
        return Some(whole.into());
    }
    if let Some(one) = parts("oneOf").or_else(|| parts("anyOf")) {
        let mut real = one
            .iter()
            .filter(|part| part.get("type").is_none_or(|kind| kind != "null"));
        return example(name, real.next()?, schemas, depth + 1);
    }
    let rules = schema.as_object()?;
    if is_of(rules, "object") {
        let mut whole = Map::new();
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let required = required.filter_map(Value::as_str);
        let shown = found(SHOWN, name).unwrap_or_default().iter().copied();
        let known = schema.get("properties").and_then(Value::as_object);
        for member in required.chain(shown) {
            // Of what is said in several parts each has its own.
            let Some(part) = known.and_then(|known| known.get(member)) else {
                continue;
            };
            let value = special(name, member, part);
            let value = value.or_else(|| example(name, part, schemas, depth + 1));
            whole.insert(member.to_owned(), value?);
        }
        return Some(whole.into());
    }
    if is_of(rules, "array") {
        let item = example(name, schema.get("items")?, schemas, depth + 1)?;
        return Some(json!([item]));
    }
    if is_of(rules, "boolean") {
        return Some(true.into());
    }
    if is_of(rules, "integer") || is_of(rules, "number") {
        return Some(schema.get("minimum").cloned().unwrap_or_else(|| 1.into()));
    }
    // What may be anything has no type.
    let is_text = is_of(rules, "string") || !rules.contains_key("type");
    is_text.then(|| UNKNOWN.into())
}
