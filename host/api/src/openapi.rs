//! The OpenAPI document, made from the operations that are mounted. Nothing is described that does not exist.

use crate::operation::{Access, Operation, Param, ParamKind, Shape};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, schema::Schema};

/// Schemas by name, collected while operations refer to them.
#[derive(Default)]
pub struct Schemas(BTreeMap<String, Value>);

/// Adds a type's schema and answers a reference to it.
pub type SchemaFn = fn(&mut Schemas) -> Value;

/// The [`SchemaFn`] of a type: `.body(schema::<KeyIn>)`.
pub fn schema<T: ToSchema>(schemas: &mut Schemas) -> Value {
    let name = T::name().into_owned();
    if !schemas.0.contains_key(&name) {
        schemas.add(name.clone(), T::schema());
        let mut nested = Vec::new();
        T::schemas(&mut nested);
        for (name, schema) in nested {
            schemas.add(name, schema);
        }
    }
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// A list of a type without paging: `.returns(200, Shape::One(list::<RouteOut>))`.
pub fn list<T: ToSchema>(schemas: &mut Schemas) -> Value {
    json!({"type": "array", "items": schema::<T>(schemas)})
}

/// For bodies whose shape is open: results of a seller's query, JSON Schemas.
pub fn any_object(_: &mut Schemas) -> Value {
    json!({"type": "object"})
}

impl Schemas {
    fn add(&mut self, name: String, schema: RefOr<Schema>) {
        self.0
            .entry(name)
            .or_insert_with(|| serde_json::to_value(schema).unwrap_or_default());
    }
}

const DESCRIPTION: &str = "An analytics marketplace. Sellers connect a source and publish assets (one insight per execution) and endpoints \
(rows); buyers call them with credits. Every answer carries `X-Request-Id` and the three `X-RateLimit-*` headers; every refusal is \
`{\"error\": {\"code\", \"message\", \"details\"}}`. Every POST and billed GET takes an `Idempotency-Key`. Unknown members of a body are \
ignored, unknown query parameters are refused.";

/// The whole document, OpenAPI 3.1.
pub fn document<'a>(operations: impl Iterator<Item = &'a Operation>) -> Value {
    let mut schemas = Schemas::default();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for operation in operations {
        for (place, path) in std::iter::once(&operation.path)
            .chain(operation.aliases)
            .enumerate()
        {
            let id = if place == 0 {
                operation.id.to_owned()
            } else {
                format!("{}_{}", operation.id, place + 1)
            };
            let described = describe(operation, path, &id, &mut schemas);
            paths
                .entry(path)
                .or_default()
                .insert(operation.verb.name().to_ascii_lowercase(), described);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "souk", "version": "1.0", "description": DESCRIPTION, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "servers": [{"url": "/"}],
        "security": [{"api_key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"api_key": {"type": "apiKey", "in": "header", "name": "x-api-key"}},
            "schemas": with_problem(schemas),
            "responses": {"Problem": {
                "description": "Refused or failed; `code` says why, `message` what to do next.",
                "headers": headers(),
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }},
        },
    })
}

fn with_problem(mut schemas: Schemas) -> BTreeMap<String, Value> {
    let problem = json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["code", "message", "details"],
            "properties": {
                "code": {"type": "string", "description": "Stable, UPPER_SNAKE."},
                "message": {"type": "string"},
                "details": {
                    "type": "object",
                    "required": ["request_id"],
                    "additionalProperties": true,
                    "description": "What the code calls for: `limit`, `retry_after`, `required_role`, …",
                    "properties": {
                        "request_id": {"type": "string"},
                        "errors": {"type": "array", "items": {
                            "type": "object",
                            "properties": {"field": {"type": "string"}, "code": {"type": "string"}, "message": {"type": "string"}},
                        }},
                    },
                },
            },
        }},
    });
    let meta = json!({
        "type": "object",
        "required": ["total", "page", "per_page"],
        "properties": {"total": {"type": "integer"}, "page": {"type": "integer"}, "per_page": {"type": "integer"}},
    });
    let slice = json!({
        "type": "object",
        "required": ["total", "limit", "offset"],
        "properties": {"total": {"type": "integer"}, "limit": {"type": "integer"}, "offset": {"type": "integer"}},
    });
    schemas.0.insert("SliceMeta".to_owned(), slice);
    schemas.0.insert("Problem".to_owned(), problem);
    schemas.0.insert("Meta".to_owned(), meta);
    schemas.0
}

fn describe(operation: &Operation, path: &str, id: &str, schemas: &mut Schemas) -> Value {
    let mut responses = json!({
        operation.success.to_string(): success(operation, schemas),
        "default": {"$ref": "#/components/responses/Problem"},
    });
    if let Some(status) = operation.success_also {
        responses[status.to_string()] = success(operation, schemas);
    }
    let mut described = json!({
        "operationId": id,
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": parameters(operation, path),
        "responses": responses,
    });
    let Some(members) = described.as_object_mut() else {
        return described;
    };
    if !operation.notes.is_empty() {
        members.insert("description".to_owned(), operation.notes.into());
    }
    match operation.access {
        Access::Public => {
            members.insert("security".to_owned(), json!([]));
        }
        Access::Key { role, permission } => {
            members.insert("x-required-role".to_owned(), role.level().into());
            members.insert(
                "x-required-permission".to_owned(),
                permission.as_str().into(),
            );
        }
        Access::Data => {
            members.insert("x-required-permission".to_owned(), "read".into());
        }
    }
    if let Some(hourly) = operation.hourly {
        members.insert("x-requests-per-hour".to_owned(), hourly.into());
    }
    if let Some(hourly) = operation.hourly_each {
        members.insert("x-requests-per-hour-each".to_owned(), hourly.into());
    }
    if operation.billed {
        members.insert("x-billed".to_owned(), true.into());
    }
    let body = match operation.body {
        Some(body) => Some(body(schemas)),
        None if operation.body_bytes_max.is_none() => {
            Some(json!({"type": "string", "format": "binary"}))
        }
        None => None,
    };
    if let Some(body) = body {
        let content = json!({operation.body_type: {"schema": body}});
        members.insert(
            "requestBody".to_owned(),
            json!({"required": !operation.body_optional, "content": content}),
        );
    }
    described
}

fn success(operation: &Operation, schemas: &mut Schemas) -> Value {
    let content = match operation.shape {
        Shape::Empty => return json!({"description": "Done.", "headers": headers()}),
        Shape::One(schema) => {
            json!({"type": "object", "required": ["data"], "properties": {"data": schema(schemas)}})
        }
        Shape::List(schema) => {
            json!({"type": "object", "required": ["data", "meta"], "properties": {
                "data": {"type": "array", "items": schema(schemas)},
                "meta": {"$ref": "#/components/schemas/Meta"},
            }})
        }
        Shape::Slice(schema) => {
            json!({"type": "object", "required": ["data", "meta"], "properties": {
                "data": {"type": "array", "items": schema(schemas)},
                "meta": {"$ref": "#/components/schemas/SliceMeta"},
            }})
        }
        Shape::Bare(schema) => schema(schemas),
        Shape::Raw(kind) => {
            return json!({"description": "Success.", "headers": headers(), "content": {kind: {}}});
        }
    };
    let mut content = json!({"application/json": {"schema": content}});
    if let Some(kind) = operation.also {
        content[kind] = json!({"schema": {"type": "string"}});
    }
    json!({"description": "Success.", "headers": headers(), "content": content})
}

fn headers() -> Value {
    json!({
        "X-Request-Id": {"schema": {"type": "string"}},
        "X-RateLimit-Limit": {"schema": {"type": "integer"}},
        "X-RateLimit-Remaining": {"schema": {"type": "integer"}},
        "X-RateLimit-Reset": {"description": "Epoch seconds.", "schema": {"type": "integer"}},
    })
}

fn parameters(operation: &Operation, path: &str) -> Vec<Value> {
    let names = path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = names
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1, "maxLength": 255}}))
        .collect();
    parameters.extend(operation.query.iter().map(query_parameter));
    if operation.open_query {
        let rest = json!({"type": "object", "additionalProperties": {"type": "string"}});
        parameters.push(json!({"name": "filters", "in": "query", "style": "form", "explode": true, "schema": rest}));
    }
    if operation.verb == crate::operation::Verb::Post || operation.billed {
        let mut key = json!({
            "name": "Idempotency-Key", "in": "header", "description": "Retrying with the same key gets the first answer.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        });
        if operation.key_required {
            key["required"] = true.into();
        }
        parameters.push(key);
    }
    parameters
}

fn query_parameter(param: &Param) -> Value {
    let schema = match param.kind {
        ParamKind::Integer { min, max } => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        ParamKind::Boolean => json!({"type": "boolean"}),
        ParamKind::Text { chars_max } => json!({"type": "string", "maxLength": chars_max}),
        ParamKind::From | ParamKind::Until => {
            json!({"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]})
        }
        ParamKind::Date => json!({"type": "string", "format": "date"}),
        ParamKind::OneOf(choices) => json!({"type": "string", "enum": choices}),
    };
    json!({"name": param.name, "in": "query", "description": param.about, "schema": schema})
}
