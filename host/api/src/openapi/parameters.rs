//! What the parameters of an operation are: of its path with what they look like, of its query, and `Idempotency-Key`.

use crate::describe::Description;
use crate::ids;
use crate::operation::{Access, Operation};
use crate::path::Segment;
use crate::query::Param;
use serde_json::{Value, json};
use souk_domain::connections::FILE_NAME_CHARS_MAX;

/// What further parameters are.
const OPEN: &str = "What the product declares, by its own names. Of an endpoint: `field=value`, `field[gte]=`, `[gt]`, `[lte]`, `[lt]`, \
`[in]=a,b` (`\\,` is a comma of a value), `[like]=prefix`, each also as `filters[field]` and `filters[field][gte]`.";

/// What companies and products are called in addresses.
const LABEL: &str = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$";
/// As `souk_domain::connections::is_file_name` has it.
const FILE_NAME: &str = "^[A-Za-z0-9_][A-Za-z0-9_-]*([.][A-Za-z0-9_-]+)*$";
/// As a connector may call its version: semantic versions.
const VERSION: &str = "^(0|[1-9][0-9]*)([.](0|[1-9][0-9]*)){2}(-[0-9A-Za-z-]+([.][0-9A-Za-z-]+)*)?([+][0-9A-Za-z-]+([.][0-9A-Za-z-]+)*)?$";

/// The parameters of an operation at one of its paths.
pub fn of(operation: &Operation, description: &Description, path: &str) -> Vec<Value> {
    let pairs = path.split('/').zip(path.split('/').skip(1));
    let names = pairs.filter_map(|(kind, segment)| {
        let name = segment.strip_prefix('{')?.strip_suffix('}')?;
        Some((kind, name))
    });
    let schemas = description.segments.as_deref().unwrap_or_default();
    let mut parameters: Vec<Value> = names
        .enumerate()
        .map(|(place, (kind, name))| {
            let schema = schemas.get(place).cloned().unwrap_or_else(String::schema);
            let (about, schema) = segment(kind, name, schema);
            json!({"name": name, "in": "path", "required": true, "description": about, "schema": schema})
        })
        .collect();
    parameters.extend(description.query.params.iter().map(query_parameter));
    if description.query.open {
        let rest = json!({"type": "object", "additionalProperties": {"type": "string"}});
        parameters.push(json!({"name": "filters", "in": "query", "style": "form", "explode": true, "schema": rest, "description": OPEN}));
    }
    if description
        .answers
        .iter()
        .any(|answer| answer.status == 304)
    {
        let schema = json!({"type": "string", "examples": ["W/\"j1-5d41402abc4b2a76\""]});
        let about = "The `ETag` of a page that the caller has already, or several with commas between them: 304, and no charge, if it is still the same.";
        parameters.push(json!({"name": "If-None-Match", "in": "header", "description": about, "schema": schema}));
    }
    if operation.billed {
        let schema = json!({"type": "integer", "minimum": 0, "examples": [5]});
        let about = "Credits that this may cost at most, each page of an export for itself: 409 `PRICE_ABOVE_MAX`, and no charge, where the price is higher by now.";
        parameters.push(json!({"name": "X-Max-Credits", "in": "header", "description": about, "schema": schema}));
    }
    let has_key = operation.access != Access::Public;
    if has_key && operation.keeps_answers() || operation.billed {
        let mut key = json!({
            "name": "Idempotency-Key", "in": "header", "description": "Retrying with the same key gets the first answer.",
            "schema": {"type": "string", "pattern": "^[!-~]{1,255}$", "examples": ["7f8a2c1e-order-42"]},
        });
        if operation.key_required {
            key["required"] = true.into();
        }
        parameters.push(key);
    }
    parameters
}

fn query_parameter(param: &Param) -> Value {
    json!({"name": param.name, "in": "query", "description": param.about, "schema": param.schema})
}

/// What a path's parameter means, after the segment that says of what `kind` it is; of one that is any text to its handler, also what it
/// looks like.
fn segment(kind: &str, name: &str, schema: Value) -> (String, Value) {
    let is_any = schema.get("pattern").is_none();
    let text = |pattern: &str, example: &str| json!({"type": "string", "pattern": pattern, "examples": [example]});
    if let Some(of) = name.strip_suffix("_id") {
        let about = format!("The id of the {}.", of.replace('_', " "));
        let known = ids::of(of);
        let schema = match (is_any, of) {
            (true, "industry") => {
                json!({"type": "integer", "minimum": 1, "maximum": ids::LISTED_MAX, "examples": [51]})
            }
            (true, _) => text(&ids::pattern(), known.as_deref().unwrap_or("1")),
            (false, _) => schema,
        };
        return (about, schema);
    }
    let bounded = |pattern: &str, most: usize, example: &str| {
        let mut schema = text(pattern, example);
        schema["maxLength"] = most.into();
        schema
    };
    match name {
        "company_handle" => ("The company's handle.".to_owned(), text(LABEL, "acme")),
        "asset_slug" => (
            "The asset's slug.".to_owned(),
            text(LABEL, "goals-per-match"),
        ),
        "endpoint_slug" => (
            "The endpoint's slug.".to_owned(),
            text(LABEL, "league-goals"),
        ),
        "category" => ("A category of the user's own.".to_owned(), schema),
        "provider" => (
            "The payment provider.".to_owned(),
            text("^[a-z][a-z0-9_-]{0,62}$", "stripe"),
        ),
        "version" => (
            "A semantic version.".to_owned(),
            bounded(VERSION, 64, "1.0.0"),
        ),
        "name" if kind == "connectors" => (
            "The connector's name.".to_owned(),
            text("^[a-z][a-z0-9-]{0,63}$", "postgres"),
        ),
        "name" if kind == "files" => (
            "The file's name.".to_owned(),
            bounded(FILE_NAME, FILE_NAME_CHARS_MAX, "league.db"),
        ),
        "file" => (
            "The file.".to_owned(),
            text("^[A-Za-z0-9._-]+$", "swagger-ui.css"),
        ),
        _ => (format!("The {name}."), schema),
    }
}
