//! The schemas of the types that handlers take and answer, by name.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, schema::Schema};

/// Schemas by name, collected while operations refer to them.
#[derive(Default)]
pub struct Schemas(pub(crate) BTreeMap<String, Value>);

/// Adds a type's schema and answers a reference to it.
pub type SchemaFn = fn(&mut Schemas) -> Value;

/// The [`SchemaFn`] of a type.
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

/// The envelope around what is answered.
pub fn enveloped(data: Value, meta: Option<&str>) -> Value {
    match meta {
        None => json!({"type": "object", "required": ["data"], "properties": {"data": data}}),
        Some(meta) => json!({"type": "object", "required": ["data", "meta"], "properties": {
            "data": data,
            "meta": {"$ref": format!("#/components/schemas/{meta}")},
        }}),
    }
}

pub fn listed(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

impl Schemas {
    pub(crate) fn add(&mut self, name: String, schema: RefOr<Schema>) {
        self.0
            .entry(name)
            .or_insert_with(|| serde_json::to_value(schema).unwrap_or_default());
    }
}
