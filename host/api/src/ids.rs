//! What ids look like, and which members of a body are some: in the document, in paths, and where a body is held against its schema. Refuses to
//! know which of them exist.

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
    ("event", "aev"),
    ("execution", "exe"),
    ("favorite", "fav"),
    ("integration", "int"),
    ("payout", "pay"),
    ("post", "pst"),
    ("price", "prc"),
    ("product", "ast"),
    ("purchase", "pur"),
    ("request", "req"),
    ("seller_company", "cmp"),
    ("session", "ses"),
    ("subject", "ast"),
    ("top_up", "top"),
    ("transaction", "txn"),
    ("user", "usr"),
    ("webhook", "whk"),
];

/// Whose the member `id` is, by the beginning of its schema's name: the first that fits.
const OWN: &[(&str, &str)] = &[
    ("AlertEvent", "aev"),
    ("Alert", "alr"),
    ("ApiKey", "key"),
    ("Asset", "ast"),
    ("AuditEntry", "aud"),
    ("Company", "cmp"),
    ("Connection", "con"),
    ("CurrentSession", "ses"),
    ("Endpoint", "end"),
    ("Favorite", "fav"),
    ("Grant", "txn"),
    ("ListedCompany", "cmp"),
    ("Integration", "int"),
    ("Payout", "pay"),
    ("Post", "pst"),
    ("Price", "prc"),
    ("ProductSeller", "cmp"),
    ("Product", "ast"),
    ("Publication", "pub"),
    ("Purchase", "pur"),
    ("Revoked", "key"),
    ("Session", "ses"),
    ("TopUp", "top"),
    ("Transaction", "txn"),
    ("User", "usr"),
    ("WebhookDelivery", "dlv"),
    ("Webhook", "whk"),
];

/// An id of a thing, or the name of one that has none.
const OR_NAMES: &[&str] = &["subject_id"];

/// No list of reference data counts as far.
pub const LISTED_MAX: i64 = i32::MAX as i64;

/// What an id in a path or a body looks like. One that exists begins with its kind; one that does not may be anything.
pub fn pattern() -> String {
    format!("^[a-zA-Z0-9_-]{{1,{ID_CHARS_MAX}}}$")
}

/// An id of that kind.
pub fn example(prefix: &str) -> String {
    format!("{prefix}_0123456789abcdefghijkl")
}

/// An id of what is called so: `asset`.
pub fn of(what: &str) -> Option<String> {
    let known = KINDS.iter().find(|(known, _)| *known == what);
    known.map(|(_, prefix)| example(prefix))
}

/// An id of what a schema's own `id` is of.
pub fn of_own(schema: &str) -> Option<String> {
    let known = OWN.iter().find(|(known, _)| schema.starts_with(known));
    known.map(|(_, prefix)| example(prefix))
}

/// What a thing of that schema is called where it is named: `api_key`.
pub fn what(schema: &str) -> Option<&'static str> {
    let (_, own) = OWN.iter().find(|(known, _)| schema.starts_with(known))?;
    let (what, _) = KINDS.iter().find(|(_, prefix)| prefix == own)?;
    Some(*what)
}

/// What a member of a body is restricted to by its name: ids have their pattern, and numbers that are chosen from a list, `industry_ids`,
/// begin with one and end somewhere. Not `function_id`, which is the seller's own word.
pub fn restrict(member: &str, rules: &mut Map<String, Value>) {
    let (one, many) = (member.strip_suffix("_id"), member.strip_suffix("_ids"));
    let rules = match many {
        Some(_) => rules.get_mut("items").and_then(Value::as_object_mut),
        None => one.map(|_| rules),
    };
    let (Some(what), Some(rules)) = (one.or(many), rules) else {
        return;
    };
    if of(what).is_some() && is_of(rules, "string") && !OR_NAMES.contains(&member) {
        rules.entry("pattern").or_insert_with(|| pattern().into());
    }
    if is_of(rules, "integer") {
        rules.entry("minimum").or_insert(1.into());
        rules.entry("maximum").or_insert(LISTED_MAX.into());
    }
}

/// The same of a schema's own `id`.
pub fn restrict_own(schema: &str, member: &str, rules: &mut Map<String, Value>) {
    if member == "id" && is_of(rules, "string") && of_own(schema).is_some() {
        rules.entry("pattern").or_insert_with(|| pattern().into());
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
