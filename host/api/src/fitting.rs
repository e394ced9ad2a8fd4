//! What the schema of a body says of its members, held against a body that is refused anyway.
//!
//! A type refuses one member at a time, and before its operation looks at any of them; an operation refuses what it stumbles over first: a
//! client would be told in two rounds what it is told here at once. Nothing is refused by this, so that it costs only whoever is wrong.
//! Refuses to know what several schemas say together; start reading at [`Shape::misfits`].

use crate::ids;
use parking_lot::Mutex;
use regex::Regex;
use serde_json::{Map, Value};
use souk_domain::fields::FieldErrors;
use souk_domain::money::UsdCents;
use souk_domain::parameters::integer;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Deeper than any body.
pub const DEPTH_MAX: usize = 6;
/// As many items of a list are looked at.
const ITEMS_MAX: usize = 100;
/// As many wrong fields one answer names, with those that were named before: each is held against all of them, and who has so many is told
/// of the rest when these are mended.
pub const ERRORS_MAX: usize = 50;

/// The schema of a type, with those that it refers to.
pub struct Shape {
    root: Value,
    named: BTreeMap<String, Value>,
    /// Nothing is lacking in it.
    is_change: bool,
}

impl Shape {
    pub fn of<T: ToSchema>(is_change: bool) -> Shape {
        let mut nested = Vec::new();
        T::schemas(&mut nested);
        let restricted = |schema| {
            let mut schema = serde_json::to_value(schema).unwrap_or_default();
            let members = schema.get_mut("properties").and_then(Value::as_object_mut);
            for (name, rules) in members.into_iter().flatten() {
                if let Some(rules) = rules.as_object_mut() {
                    ids::restrict(name, rules);
                }
            }
            schema
        };
        Shape {
            root: restricted(T::schema()),
            named: nested
                .into_iter()
                .map(|(name, schema)| (name, restricted(schema)))
                .collect(),
            is_change,
        }
    }

    /// Adds what does not fit and is not named yet.
    pub fn misfits(&self, body: &Value, errors: &mut FieldErrors) {
        let Some(members) = body.as_object() else {
            return;
        };
        let mut found = Misfits {
            shape: self,
            left: ERRORS_MAX.saturating_sub(errors.names().count()),
            errors,
        };
        found.in_members("", members, &self.root, 0);
        if !self.is_change {
            found.missing("", members, &self.root);
        }
    }

    /// The schema of a body.
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// What is said of values of this type: of a choice between several, the first that is one.
    pub fn of_type<'a>(&'a self, rules: &'a Value, wanted: &str) -> Option<&'a Value> {
        if let Some(name) = rules.get("$ref").and_then(Value::as_str) {
            return self.of_type(self.named.get(name.rsplit('/').next()?)?, wanted);
        }
        match choices(rules) {
            Some(parts) => parts.iter().find_map(|part| self.of_type(part, wanted)),
            None => (kind(rules) == Some(wanted)).then_some(rules),
        }
    }

    /// The schema itself, if it is one: not a choice between several.
    fn plain<'a>(&'a self, rules: &'a Value) -> Option<&'a Value> {
        if let Some(name) = rules.get("$ref").and_then(Value::as_str) {
            return self.plain(self.named.get(name.rsplit('/').next()?)?);
        }
        let Some(parts) = choices(rules) else {
            return Some(rules);
        };
        let mut real = parts.iter().filter(|part| part["type"] != "null");
        let (one, other) = (real.next()?, real.next());
        other.is_none().then(|| self.plain(one))?
    }
}

/// The schemas that one consists of.
fn choices(rules: &Value) -> Option<&Vec<Value>> {
    let kinds = ["oneOf", "anyOf", "allOf"];
    kinds.iter().find_map(|kind| rules.get(kind)?.as_array())
}

struct Misfits<'a> {
    shape: &'a Shape,
    errors: &'a mut FieldErrors,
    /// May still be named. At 0 nothing is looked at any more.
    left: usize,
}

impl Misfits<'_> {
    fn in_members(
        &mut self,
        path: &str,
        members: &Map<String, Value>,
        rules: &Value,
        depth: usize,
    ) {
        let Some(known) = rules["properties"]
            .as_object()
            .filter(|_| depth < DEPTH_MAX)
        else {
            return;
        };
        for (name, rules) in known {
            if self.left == 0 {
                return;
            }
            if let Some(value) = members.get(name) {
                self.in_value(&joined(path, name), value, rules, depth);
            }
        }
    }

    fn missing(&mut self, path: &str, members: &Map<String, Value>, rules: &Value) {
        let required = rules["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if self.left == 0 {
                return;
            }
            if !members.contains_key(name) {
                self.add(&joined(path, name), "required", "is required".to_owned());
            }
        }
    }

    fn in_value(&mut self, path: &str, value: &Value, rules: &Value, depth: usize) {
        let Some(rules) = self.shape.plain(rules).filter(|_| !value.is_null()) else {
            return;
        };
        if let Some(message) = misfit(value, rules) {
            return self.add(path, "invalid", message);
        }
        match value {
            Value::Object(members) => {
                self.in_members(path, members, rules, depth + 1);
                self.missing(path, members, rules);
            }
            Value::Array(items) if depth < DEPTH_MAX => {
                for (place, item) in items.iter().take(ITEMS_MAX).enumerate() {
                    if self.left == 0 {
                        return;
                    }
                    self.in_value(
                        &format!("{path}[{place}]"),
                        item,
                        &rules["items"],
                        depth + 1,
                    );
                }
            }
            _ => {}
        }
    }

    /// What was said of a member, of one above it or of one in it is enough.
    fn add(&mut self, path: &str, code: &'static str, message: String) {
        let is_of = |one: &str, other: &str| {
            let rest = one.strip_prefix(other);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let is_known = |known: &str| is_of(path, known) || code != "required" && is_of(known, path);
        if !self.errors.names().any(is_known) {
            self.errors.add(path, code, message);
            self.left = self.left.saturating_sub(1);
        }
    }
}

/// Where a member stands.
pub fn joined(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    }
}

/// What a value should be instead, by the rules for its type.
fn misfit(value: &Value, rules: &Value) -> Option<String> {
    if let Some(words) = rules["enum"].as_array() {
        let known: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        let is_known = words.contains(value);
        return (!is_known).then(|| format!("must be one of {}", known.join(", ")));
    }
    let bound = |name: &str| rules[name].as_i64();
    let is_beyond = |count: i64, least: &str, most: &str| {
        bound(least).is_some_and(|least| count < least)
            || bound(most).is_some_and(|most| count > most)
    };
    match (kind(rules)?, value) {
        ("string", Value::String(text)) => {
            let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            if is_beyond(count, "minLength", "maxLength") {
                let (least, most) = (bound("minLength"), bound("maxLength"));
                return Some(span("characters", least, most));
            }
            let pattern = rules["pattern"].as_str()?;
            (!has_pattern(text, pattern)).then(|| format!("must match {pattern}"))
        }
        ("integer", Value::Number(number)) => match integer(&number.to_string()) {
            Some(number) if !is_beyond(number, "minimum", "maximum") => None,
            _ => Some(match (bound("minimum"), bound("maximum")) {
                (Some(least), Some(most)) => format!("must be an integer from {least} to {most}"),
                (Some(least), None) => format!("must be an integer from {least}"),
                _ => "must be an integer".to_owned(),
            }),
        },
        ("array", Value::Array(items)) => {
            let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let is_wrong = is_beyond(count, "minItems", "maxItems");
            is_wrong.then(|| span("items", bound("minItems"), bound("maxItems")))
        }
        ("number", Value::Number(number)) => {
            let (least, most) = (rules["minimum"].as_f64(), rules["maximum"].as_f64());
            let is_dollars = rules["format"] == "decimal";
            if is_dollars && let Err(error) = UsdCents::parse(&number.to_string()) {
                return Some(error.to_string());
            }
            let number = number.as_f64()?;
            match (least, most) {
                (Some(least), _) if number < least => Some(format!("must be at least {least}")),
                (_, Some(most)) if number > most => Some(format!("must be at most {most}")),
                _ => None,
            }
        }
        ("object", Value::Object(_)) | ("boolean", Value::Bool(_)) => None,
        ("string", _) => Some("must be a string".to_owned()),
        ("integer", _) => Some("must be an integer".to_owned()),
        ("number", _) => Some("must be a number".to_owned()),
        ("array", _) => Some("must be an array".to_owned()),
        ("object", _) => Some("must be an object".to_owned()),
        ("boolean", _) => Some("must be true or false".to_owned()),
        _ => None,
    }
}

/// A pattern that cannot be read refuses nothing. There are as many as the document has, so that all of them are kept.
fn has_pattern(text: &str, pattern: &str) -> bool {
    static KNOWN: Mutex<BTreeMap<String, Option<Regex>>> = Mutex::new(BTreeMap::new());
    let read = || Regex::new(pattern).ok();
    let regex = KNOWN
        .lock()
        .entry(pattern.to_owned())
        .or_insert_with(read)
        .clone();
    regex.is_none_or(|regex| regex.is_match(text))
}

/// The one type that is meant, beside `null`.
fn kind(rules: &Value) -> Option<&str> {
    match &rules["type"] {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            let mut real = kinds.by_ref().filter(|kind| *kind != "null");
            let (one, other) = (real.next()?, real.next());
            other.is_none().then_some(one)
        }
        _ => None,
    }
}

fn span(what: &str, least: Option<i64>, most: Option<i64>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("must have {least} to {most} {what}"),
        (None, Some(most)) => format!("must have at most {most} {what}"),
        (least, None) => format!("must have at least {} {what}", least.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::PriceUsd;
    use serde_json::json;
    use std::time::{Duration, Instant};

    #[derive(ToSchema)]
    #[allow(dead_code)]
    struct Order {
        #[schema(min_length = 1, max_length = 5)]
        name: String,
        #[schema(minimum = 1, maximum = 9)]
        count: Option<i64>,
        kind: Option<Kind>,
        #[schema(max_items = 1)]
        lines: Vec<Line>,
        note: Option<String>,
        #[schema(pattern = "^[a-z]+$")]
        word: Option<String>,
        asset_id: Option<String>,
        #[schema(value_type = Option<PriceUsd>)]
        price: Option<f64>,
    }

    #[derive(ToSchema)]
    #[allow(dead_code)]
    struct Line {
        price: i64,
        tags: Option<Vec<String>>,
    }

    #[derive(ToSchema)]
    #[schema(rename_all = "lowercase")]
    #[allow(dead_code)]
    enum Kind {
        New,
        Used,
    }

    fn named(body: &Value, is_change: bool) -> Vec<String> {
        let mut errors = FieldErrors::default();
        Shape::of::<Order>(is_change).misfits(body, &mut errors);
        let errors = errors.into_vec().into_iter();
        errors
            .map(|error| format!("{} {}", error.field, error.message))
            .collect()
    }

    /// Bounds, words, types and what is missing, down to the items of lists.
    #[test]
    fn what_does_not_fit_is_named() {
        let wrong = json!({"name": "", "count": 10, "kind": "old", "lines": [{"tags": ["a", 1]}], "note": true});
        assert_eq!(
            named(&wrong, false),
            [
                "count must be an integer from 1 to 9",
                "kind must be one of new, used",
                "lines[0].tags[1] must be a string",
                "lines[0].price is required",
                "name must have 1 to 5 characters",
                "note must be a string",
            ]
        );
        assert_eq!(
            named(&json!({}), false),
            ["name is required", "lines is required"]
        );
        assert_eq!(
            named(&json!({"lines": [{"price": 1}, {"price": 2}]}), true),
            ["lines must have at most 1 items"]
        );
        let formed = json!({"word": "No", "asset_id": "no id", "price": 1.005});
        assert_eq!(
            named(&formed, true),
            [
                "asset_id must match ^[a-zA-Z0-9_-]{1,255}$",
                "price US dollars have at most two decimals",
                "word must match ^[a-z]+$",
            ]
        );
        assert_eq!(
            named(&json!({"price": -1}), true),
            ["price must be at least 0"]
        );
    }

    /// What fits, `null` where nothing is wanted, whole numbers with a fraction of zeros and members that nobody knows pass.
    #[test]
    fn what_fits_is_not_named() {
        let right = json!({"name": "é€x", "count": 3.0, "kind": null, "lines": [{"price": 1, "tags": []}], "more": [1]});
        assert!(named(&right, false).is_empty());
        assert!(named(&json!({"kind": "used"}), true).is_empty());
    }

    /// One remark for a place: neither again, nor of what is above it or in it.
    #[test]
    fn nothing_is_named_twice() {
        let mut errors = FieldErrors::default();
        errors.add("lines[0].price", "invalid", "must be an integer");
        errors.add("name", "invalid", "must be shorter");
        let body = json!({"name": "too long", "lines": [{"price": "1"}, {"price": 2}]});
        Shape::of::<Order>(false).misfits(&body, &mut errors);
        let names: Vec<&str> = errors.names().collect();
        assert_eq!(names, ["lines[0].price", "name"]);
    }

    #[derive(ToSchema)]
    #[allow(dead_code)]
    struct Sheet {
        pages: Vec<Page>,
    }

    #[derive(ToSchema)]
    #[allow(dead_code)]
    struct Page {
        lines: Vec<Line>,
    }

    /// A body that is wrong in 10,000 places is named some of them, in a moment; none beside as many that were found before.
    #[test]
    fn what_is_named_is_bounded() {
        let page = json!({"lines": vec![json!({}); ITEMS_MAX]});
        let body = json!({"pages": vec![page; ITEMS_MAX]});
        let is_named_in_a_moment = |_| {
            let since = Instant::now();
            let mut errors = FieldErrors::default();
            errors.add("other", "invalid", "must be shorter");
            let shape = Shape::of::<Sheet>(false);
            shape.misfits(&body, &mut errors);
            assert_eq!(errors.names().count(), ERRORS_MAX);
            assert_eq!(errors.names().nth(1), Some("pages[0].lines[0].price"));
            // Asked again, of what was answered with.
            shape.misfits(&body, &mut errors);
            assert_eq!(errors.names().count(), ERRORS_MAX);
            let mut errors = FieldErrors::default();
            for place in 0..ITEMS_MAX * ITEMS_MAX {
                errors.add(format!("others[{place}]"), "invalid", "must be shorter");
            }
            shape.misfits(&body, &mut errors);
            assert_eq!(errors.names().count(), ITEMS_MAX * ITEMS_MAX);
            since.elapsed() < Duration::from_secs(2)
        };
        // A loaded machine is slow now and then, but not each time.
        assert!((0..5).any(is_named_in_a_moment));
    }
}
