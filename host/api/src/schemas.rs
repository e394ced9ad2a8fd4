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
    reference(&name)
}

/// What may be changed of a `T`: the same members but for its user, none of them required. `AssetIn` becomes `AssetPatch`.
pub fn change<T: ToSchema>(schemas: &mut Schemas) -> Value {
    let mut changed = serde_json::to_value(T::schema()).unwrap_or_default();
    if let Some(members) = changed.as_object_mut() {
        members.remove("required");
        // Whose a thing is stays as it is: a change does not look at it.
        if let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove("user_id");
        }
        let about = "What to change. Members that are left out stay as they are.";
        members.insert("description".to_owned(), about.into());
    }
    let mut nested = Vec::new();
    T::schemas(&mut nested);
    for (name, schema) in nested {
        schemas.add(name, schema);
    }
    let name = T::name();
    schemas.named(format!("{}Patch", name.trim_end_matches("In")), changed)
}

/// The envelope around a `T`, under a name of its own: generated clients have a type for it.
pub fn enveloped<T: ToSchema>(schemas: &mut Schemas) -> Value {
    let data = schema::<T>(schemas);
    let envelope = json!({"type": "object", "required": ["data"], "properties": {"data": data}});
    schemas.named(format!("{}Response", T::name()), envelope)
}

/// The envelope around a list of `T`, with its `meta` if it has one. `kind` tells lists of the same things apart.
pub fn listed<T: ToSchema>(schemas: &mut Schemas, kind: &str, meta: Option<&str>) -> Value {
    let items = schema::<T>(schemas);
    let mut envelope = json!({"type": "object", "required": ["data"], "properties": {
        "data": {"type": "array", "items": items},
    }});
    if let Some(meta) = meta {
        envelope["required"] = json!(["data", "meta"]);
        envelope["properties"]["meta"] = reference(meta);
    }
    schemas.named(format!("{}{kind}Response", T::name()), envelope)
}

/// The envelope around a slice of a list of `T`, with what is recommended beside it, if that was asked for.
pub fn found<T: ToSchema>(schemas: &mut Schemas) -> Value {
    let items = schema::<T>(schemas);
    let list = json!({"type": "array", "items": items});
    let envelope = json!({"type": "object", "required": ["data", "meta"], "properties": {
        "data": list, "meta": reference("SliceMeta"), "recommended": list,
    }});
    schemas.named(format!("{}FoundResponse", T::name()), envelope)
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

impl Schemas {
    fn named(&mut self, name: String, schema: Value) -> Value {
        let reference = reference(&name);
        self.0.entry(name).or_insert(schema);
        reference
    }

    pub(crate) fn add(&mut self, name: String, schema: RefOr<Schema>) {
        self.0
            .entry(name)
            .or_insert_with(|| serde_json::to_value(schema).unwrap_or_default());
    }
}
