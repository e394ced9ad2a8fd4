//! Misspelt members of the objects within a body: a filter with `operator` where `operators` is meant would be one that compares for equality only.
//!
//! Members that nobody knows are ignored, since clients of other versions send more than is documented here; and what an answer shows may be sent back,
//! though not all of it can be written (`fields[0].type`). So only that is refused which looks like a member that its object knows and does not have,
//! and only within a body: what its objects look like is told by this API alone. Start reading at [`spelt`].

use crate::fitting::{DEPTH_MAX, ERRORS_MAX, Shape, joined};
use crate::problem::Problem;
use crate::refusals::VALIDATION_ERROR;
use serde_json::{Map, Value};
use souk_domain::fields::FieldErrors;
use souk_domain::spelling::is_near;

/// As many members that an object does not know are looked at in a body: whoever sends more of them means something else.
const LOOKED_AT_MAX: usize = 500;

/// What was read of a body, if no member of its objects is misspelt. `shape`: of the body.
pub fn spelt<T>(
    read: Result<T, Problem>,
    bytes: &[u8],
    shape: impl FnOnce() -> Shape,
) -> Result<T, Problem> {
    let read = read?;
    let mut objects = bytes.iter().filter(|byte| **byte == b'{');
    // Most bodies have no objects in them.
    if objects.nth(1).is_none() {
        return Ok(read);
    }
    let Ok(body) = serde_json::from_slice::<Value>(bytes) else {
        return Ok(read);
    };
    let (shape, mut errors) = (shape(), FieldErrors::default());
    misspelt(&shape, &body, &mut errors);
    if errors.is_empty() {
        return Ok(read);
    }
    shape.misfits(&body, &mut errors);
    Err(Problem::fields(VALIDATION_ERROR, errors.into_vec()))
}

/// Adds what is misspelt.
pub fn misspelt(shape: &Shape, body: &Value, errors: &mut FieldErrors) {
    let mut speller = Speller {
        shape,
        left: ERRORS_MAX.saturating_sub(errors.names().count()),
        errors,
        looked_at: 0,
    };
    speller.in_value("", body, shape.root(), 0);
}

struct Speller<'a> {
    shape: &'a Shape,
    errors: &'a mut FieldErrors,
    /// May still be named. At 0 nothing is looked at any more.
    left: usize,
    looked_at: usize,
}

impl Speller<'_> {
    fn in_value(&mut self, path: &str, value: &Value, rules: &Value, depth: usize) {
        if self.left == 0 || depth > DEPTH_MAX {
            return;
        }
        match value {
            Value::Object(members) => {
                let rules = self.shape.of_type(rules, "object");
                let known = rules.and_then(|rules| rules["properties"].as_object());
                let Some(known) = known else {
                    return;
                };
                if depth > 0 {
                    self.in_object(path, members, known);
                }
                for (name, rules) in known {
                    if let Some(value) = members.get(name) {
                        self.in_value(&joined(path, name), value, rules, depth + 1);
                    }
                }
            }
            Value::Array(items) => {
                let Some(rules) = self.shape.of_type(rules, "array") else {
                    return;
                };
                for (place, item) in items.iter().enumerate() {
                    let path = format!("{path}[{place}]");
                    self.in_value(&path, item, &rules["items"], depth + 1);
                }
            }
            _ => {}
        }
    }

    fn in_object(&mut self, path: &str, members: &Map<String, Value>, known: &Map<String, Value>) {
        for name in members.keys().filter(|name| !known.contains_key(*name)) {
            if self.left == 0 || self.looked_at == LOOKED_AT_MAX {
                return;
            }
            self.looked_at += 1;
            // With the right name beside it, it is a member like any other.
            let mut lacking = known.keys().filter(|known| !members.contains_key(*known));
            if let Some(meant) = lacking.find(|known| is_near(name, known)) {
                let message = format!("is not known here: is \"{meant}\" meant?");
                self.errors.add(joined(path, name), "unknown", message);
                self.left -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::shape::EndpointIn;
    use serde_json::json;
    use std::time::{Duration, Instant};

    fn named(body: &Value) -> Vec<String> {
        let mut errors = FieldErrors::default();
        misspelt(&Shape::of::<EndpointIn>(true), body, &mut errors);
        let errors = errors.into_vec().into_iter();
        errors.map(|error| error.field).collect()
    }

    /// In objects, in lists and in those that may be a text or an object; not in the body itself, and not what is merely unknown.
    #[test]
    fn what_looks_like_a_member_is_named() {
        let body = json!({
            "field": [], "sources": {},
            "source": {"tables": "t", "schemas": "s"},
            "fields": [{"name": "id", "type": "int64"}, {"name": "a", "Alias": "b", "descriptions": null}],
            "order_by": ["id", {"field": "a", "directions": "desc", "descending": true}],
            "filters": [{"field": "a", "operator": ["eq"]}, "id"],
            "sorts": [{"name": "new", "orderBy": []}, {"name": "old", "order_by": [{"field": "id", "isNullable": false}]}],
        });
        assert_eq!(
            named(&body),
            [
                "fields[1].Alias",
                "fields[1].descriptions",
                "filters[0].operator",
                "order_by[1].directions",
                "sorts[0].orderBy",
                "sorts[1].order_by[0].isNullable",
                "source.schemas",
                "source.tables",
            ]
        );
        let beside = json!({"filters": [{"field": "a", "operators": ["eq"], "operator": "eq"}]});
        assert!(named(&beside).is_empty());
    }

    /// However much there is that nobody knows.
    #[test]
    fn what_is_looked_at_is_bounded() {
        let odd = |count: usize, name: &str| {
            let members = (0..count).map(|number| (format!("{name}{number}"), json!(1)));
            members.collect::<Map<String, Value>>()
        };
        let began = Instant::now();
        assert!(named(&json!({"source": odd(20_000, "aaaa_bbbb_cc")})).is_empty());
        let fields = vec![json!({"name": "id", "Alias": "a"}); 20_000];
        assert_eq!(named(&json!({"fields": fields})).len(), ERRORS_MAX);
        let took = began.elapsed();
        assert!(took < Duration::from_secs(2), "{took:?}");
    }

    /// Of a body without objects the schema is not even made.
    #[test]
    fn most_bodies_are_not_looked_at() {
        let plain = br#"{"min_group_size": 5, "privacyUnitColumn": "people"}"#;
        assert!(spelt(Ok(()), plain, || unreachable!()).is_ok());
        let nested = br#"{"source": {"tables": "goods"}}"#;
        let refused = spelt(Ok(()), nested, || Shape::of::<EndpointIn>(true)).unwrap_err();
        assert_eq!(refused.code(), VALIDATION_ERROR.code);
    }
}
