//! What ids look like, and which members of a body are some: in the document, in paths, and where a body is held against its schema.

use serde_json::{Map, Value};
use souk_domain::ids::ID_CHARS_MAX;

/// The members of other things' ids, by their names' ends: `asset_id`, `asset_ids`.
const KINDS: &[(&str, &str)] = &[
    ("alert", "alr"),
    ("api_key", "key"),
    ("asset", "ast"),
    ("company", "cmp"),
    ("connection", "con"),
    ("delivery", "dlv"),
    ("endpoint", "end"),
    ("endpoint_key", "key"),
    ("execution", "exe"),
    ("favorite", "fav"),
    ("integration", "int"),
    ("payout", "pay"),
    ("post", "pst"),
    ("price", "prc"),
    ("product", "ast"),
    ("purchase", "pur"),
    ("request", "req"),
    ("session", "ses"),
    ("subject", "ast"),
    ("top_up", "top"),
    ("transaction", "txn"),
    ("user", "usr"),
    ("webhook", "whk"),
];

/// No list of reference data counts as far.
pub const LISTED_MAX: i64 = i32::MAX as i64;

/// What an id in a path or a body looks like. One that exists begins with its kind; one that does not may be anything.
pub fn pattern() -> String {
    format!("^[a-zA-Z0-9_-]{{1,{ID_CHARS_MAX}}}$")
}

/// An id of that kind.
pub fn example(prefix: &str) -> String {
    format!("{prefix}_0123456789abcdefghij")
}

/// An id of what is called so: `asset`.
pub fn of(what: &str) -> Option<String> {
    let known = KINDS.iter().find(|(known, _)| *known == what);
    known.map(|(_, prefix)| example(prefix))
}

/// What a member of a body is restricted to by its name: ids have their pattern, and numbers that are chosen from a list, `industry_ids`,
/// begin with one and end somewhere. Not `function_id`, which is the seller's own word.
pub fn restrict(member: &str, rules: &mut Map<String, Value>) {
    let one = member.strip_suffix("_id");
    if one.is_some_and(|what| of(what).is_some()) && is_of(rules, "string") {
        rules.entry("pattern").or_insert_with(|| pattern().into());
    }
    let numbers = match member.strip_suffix("_ids") {
        Some(_) => rules.get_mut("items").and_then(Value::as_object_mut),
        None => one.map(|_| rules),
    };
    if let Some(numbers) = numbers.filter(|numbers| is_of(numbers, "integer")) {
        numbers.entry("minimum").or_insert(1.into());
        numbers.entry("maximum").or_insert(LISTED_MAX.into());
    }
}

/// Whether a schema is of that type, or of it and `null`.
pub fn is_of(rules: &Map<String, Value>, kind: &str) -> bool {
    match rules.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        Some(one) => one == kind,
        None => false,
    }
}
