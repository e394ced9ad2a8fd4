//! What a member may look like: an example by its name, so that the same thing looks the same wherever it stands.
//!
//! Members of the named schemas get theirs ([`illustrate`]), bodies of requests are and answers put together from them ([`of_body`]). Refuses to know
//! any operation.

use crate::ids::{self, is_of};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Whose `id` it is, by the schema's name.
const KINDS: &[(&str, &str)] = &[
    ("Alert", "alr"),
    ("ApiKey", "key"),
    ("AssetOut", "ast"),
    ("Company", "cmp"),
    ("ConnectionOut", "con"),
    ("EndpointOut", "end"),
    ("Favorite", "fav"),
    ("Integration", "int"),
    ("Payout", "pay"),
    ("Post", "pst"),
    ("Price", "prc"),
    ("Product", "ast"),
    ("Purchase", "pur"),
    ("Session", "ses"),
    ("TopUp", "top"),
    ("Transaction", "txn"),
    ("User", "usr"),
    ("Webhook", "whk"),
    ("WebhookDelivery", "dlv"),
];

const TEXTS: &[(&str, &str)] = &[
    ("account_holder", "Acme Analytics Ltd"),
    ("address", "203.0.113.7"),
    ("amount", "12.50"),
    ("base_url", "https://api.acme.example"),
    ("body_markdown", "What the season tells."),
    ("category", "football"),
    ("checkout_url", "https://pay.example/checkout"),
    ("column", "goals"),
    ("company_handle", "acme"),
    ("contact_email", "data@acme.example"),
    ("country", "DE"),
    ("cover_image_url", "https://acme.example/cover.png"),
    (
        "credentials",
        "{\"username\":\"reader\",\"password\":\"…\"}",
    ),
    ("database", "league"),
    ("description", "Goals of the last season, by match."),
    ("destination", "DE02120300000000202051"),
    ("email", "ada@acme.example"),
    ("endpoint_slug", "league-goals"),
    ("freshness_column", "updated_at"),
    ("handle", "acme"),
    ("host", "db.acme.example"),
    ("logo_url", "https://acme.example/logo.png"),
    ("name", "Goals per match"),
    ("nonce", "n-0S6_WzA2Mj"),
    ("note", "For the board."),
    ("payment_method", "card"),
    ("platform", "webhook"),
    ("reason", "Agreed with the customer."),
    ("reference", "INV-2026-001"),
    ("return_url", "https://acme.example/paid"),
    ("slug", "goals-per-match"),
    ("sport", "football"),
    ("sql_logic", "SELECT AVG(goals) FROM matches"),
    ("summary", "A season in numbers."),
    ("table", "matches"),
    ("title", "A season in numbers"),
    ("unit", "goals"),
    ("url", "https://acme.example/hooks"),
    ("version", "1.0.0"),
    ("website", "https://acme.example"),
];

/// What is called otherwise in some schemas than elsewhere.
const SPECIAL: &[(&str, &str, &str)] = &[
    ("ApiKey", "name", "Nightly job"),
    ("ApiKey", "description", "For the nightly job."),
    ("Company", "name", "Acme Analytics"),
    ("Company", "description", "Football data since 1998."),
    ("Connection", "name", "League results"),
    ("EndpointField", "name", "team"),
    ("EndpointSort", "name", "newest"),
    ("EndpointKey", "name", "Website"),
    ("EndpointKey", "description", "For the website."),
    ("Endpoint", "name", "League goals"),
    ("Endpoint", "slug", "league-goals"),
    ("Post", "slug", "a-season-in-numbers"),
    ("Saved", "name", "matches"),
    ("User", "name", "Ada Lovelace"),
    ("Webhook", "description", "For the data team."),
];

const NUMBERS: &[(&str, i64)] = &[
    ("amount_credits", 25),
    ("balance_credits", 120),
    ("check_interval_seconds", 3600),
    ("credits", 100),
    ("credits_used", 25),
    ("default_limit", 100),
    ("discount_percent", 20),
    ("engine_id", 1),
    ("execution_time_ms", 12),
    ("grace_seconds", 3600),
    ("limit", 100),
    ("max_credits_per_day", 100),
    ("max_limit", 1000),
    ("page", 1),
    ("per_page", 50),
    ("port", 5432),
    ("price_credits", 25),
    ("rate_limit", 1000),
    ("role_id", 2),
    ("statement_timeout_ms", 10_000),
    ("timeout_ms", 10_000),
    ("total", 1),
];

/// Members of a body that are no more than possible, and shown all the same: without them it would say nothing, or be refused.
const SHOWN: &[(&str, &[&str])] = &[
    ("AlertIn", &["condition", "check_interval_seconds"]),
    ("AlertPatch", &["is_active"]),
    ("ApiKeyIn", &["role_id", "rate_limit"]),
    ("ApiKeyPatch", &["name"]),
    ("AssetIn", &["sql_logic", "description", "category", "unit"]),
    ("AssetPatch", &["name", "description"]),
    ("CompanyPatch", &["description", "website"]),
    ("ConnectionIn", &["host", "database"]),
    ("ConnectionPatch", &["name"]),
    ("EndpointIn", &["source", "filters"]),
    ("EndpointPatch", &["name", "description"]),
    ("EndpointKeyPatch", &["name"]),
    ("FavoriteIn", &["asset_id", "category"]),
    ("FavoritePatch", &["note"]),
    ("IntegrationPatch", &["name"]),
    ("PayoutIn", &["amount_usd"]),
    ("PostIn", &["summary", "tags"]),
    ("PostPatch", &["summary"]),
    ("PriceIn", &["price_credits"]),
    ("PricePatch", &["price_credits"]),
    ("PublishEndpointIn", &["price_credits"]),
    ("RevokeIn", &["reason_code"]),
    ("RotateIn", &["grace_seconds"]),
    ("TopUpIn", &["credits"]),
    ("UserIn", &["name", "role_id"]),
    ("UserPatch", &["name"]),
    ("WebhookPatch", &["is_active"]),
];

fn found<T: Copy>(all: &[(&str, T)], name: &str) -> Option<T> {
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, found)| *found)
}

fn special(schema: &str, member: &str) -> Option<&'static str> {
    let found = SPECIAL
        .iter()
        .find(|(kind, name, _)| schema.starts_with(kind) && *name == member);
    found.map(|(_, _, text)| *text)
}

/// Whether it is a body that clients send.
fn is_request(name: &str) -> bool {
    name.ends_with("In") || name.ends_with("Patch")
}

/// Gives the members of all schemas their examples, and what bodies of requests are restricted to besides.
pub fn illustrate(schemas: &mut BTreeMap<String, Value>) {
    for (name, schema) in schemas {
        let members = schema.get_mut("properties").and_then(Value::as_object_mut);
        for (member, rules) in members.into_iter().flatten() {
            let Some(rules) = rules.as_object_mut() else {
                continue;
            };
            if is_request(name) {
                ids::restrict(member, rules);
            }
            if let (None, Some(example)) = (rules.get("examples"), of_member(name, member, rules)) {
                rules.insert("examples".to_owned(), json!([example]));
            }
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
                ("id", _) => ids::example(found(KINDS, schema)?),
                (_, Some(of)) if ids::of(of).is_some() => ids::of(of)?,
                _ => special(schema, member)
                    .or_else(|| found(TEXTS, member))?
                    .to_owned(),
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
        return match member {
            "tags" => Some(json!(["football"])),
            "filters" => Some(json!(["team"])),
            _ => {
                let of = member.strip_suffix("_ids")?;
                let items = rules.get("items")?.as_object()?;
                let is_text = is_of(items, "string");
                is_text.then(|| Some(json!([ids::of(of)?])))?
            }
        };
    }
    None
}

/// A body that a request or an answer may have: what is required, and what [`SHOWN`] adds.
pub fn of_body(schema: &Value, schemas: &BTreeMap<String, Value>) -> Option<Value> {
    example(schema, schemas, 0)
}

/// Deeper than any body.
const DEPTH_MAX: usize = 12;

fn example(schema: &Value, schemas: &BTreeMap<String, Value>, depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next()?;
        return object(name, schemas.get(name)?, schemas, depth);
    }
    object("", schema, schemas, depth)
}

fn object(
    name: &str,
    schema: &Value,
    schemas: &BTreeMap<String, Value>,
    depth: usize,
) -> Option<Value> {
    let first = |list: &str| schema.get(list)?.as_array()?.first().cloned();
    if let Some(example) = first("examples").or_else(|| first("enum")) {
        return Some(example);
    }
    let parts = |list: &str| schema.get(list).and_then(Value::as_array);
    if let Some(all) = parts("allOf") {
        let mut whole = Map::new();
        for part in all {
            if let Some(Value::Object(members)) = example(part, schemas, depth + 1) {
                whole.extend(members);
            }
        }
        return Some(whole.into());
    }
    if let Some(one) = parts("oneOf").or_else(|| parts("anyOf")) {
        let mut real = one
            .iter()
            .filter(|part| part.get("type").is_none_or(|kind| kind != "null"));
        return example(real.next()?, schemas, depth + 1);
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
        for member in required.chain(shown) {
            let part = schema.get("properties")?.get(member)?;
            whole.insert(member.to_owned(), example(part, schemas, depth + 1)?);
        }
        return Some(whole.into());
    }
    if is_of(rules, "array") {
        return Some(json!([example(schema.get("items")?, schemas, depth + 1)?]));
    }
    if is_of(rules, "boolean") {
        return Some(true.into());
    }
    if is_of(rules, "integer") || is_of(rules, "number") {
        return Some(schema.get("minimum").cloned().unwrap_or_else(|| 1.into()));
    }
    // What may be anything has no type.
    let is_text = is_of(rules, "string") || !rules.contains_key("type");
    is_text.then(|| "text".into())
}
