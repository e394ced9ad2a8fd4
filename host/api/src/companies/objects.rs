use crate::query::parameters;
use crate::refusals::INVALID_PARAMETER;
use crate::{ApiState, Caller, Data, FieldError, Operation, Problem, Query, Text};
use axum::extract::State;
use serde::Serialize;
use souk_store::overview::{self, Kind, Object};
use utoipa::ToSchema;

/// Of each kind: as many as somebody can choose from.
const OBJECTS_MAX: usize = 1_000;

pub const OPERATION: Operation = Operation::get("company_objects", "/companies/{company_id}/objects")
    .about("Companies", "List what a company has, lightly")
    .notes(
        "Id, name and status of each, newest first, to choose from. Of each type at most 1,000: `truncated` names the types that have more, \
         whose own lists have pages. What was archived or deleted is left out.",
    );

const KINDS: [(&str, Kind); 8] = [
    ("connections", Kind::Connections),
    ("files", Kind::Files),
    ("assets", Kind::Assets),
    ("endpoints", Kind::Endpoints),
    ("api_keys", Kind::ApiKeys),
    ("users", Kind::Users),
    ("webhooks", Kind::Webhooks),
    ("purchases", Kind::Purchases),
];

parameters! {
    pub struct ObjectsQuery {
        /// Comma-separated: `connections`, `files`, `assets`, `endpoints`, `api_keys`, `users`, `webhooks`, `purchases`. Default all.
        types: Option<Text<0, 255>>,
    }
}

/// A type that was not asked for is left out.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = CompanyObjects)]
pub struct ObjectsOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<Vec<ObjectOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<ObjectOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assets: Option<Vec<ObjectOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<Vec<ObjectOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_keys: Option<Vec<ObjectOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<Vec<ObjectOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhooks: Option<Vec<ObjectOut>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    purchases: Option<Vec<ObjectOut>>,
    /// Types of which there are more than are listed.
    truncated: Vec<&'static str>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = LightObject)]
pub struct ObjectOut {
    /// Of a file its name.
    id: String,
    /// Of a webhook its address, of a purchase the product's name.
    name: String,
    status: String,
}

impl From<Object> for ObjectOut {
    fn from(object: Object) -> ObjectOut {
        ObjectOut {
            id: object.id,
            name: object.name,
            status: object.status,
        }
    }
}

/// Lists what a company has, lightly.
pub async fn company_objects(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<ObjectsQuery>,
) -> Result<Data<ObjectsOut>, Problem> {
    let kinds = kinds(query.types.as_deref())?;
    let mut read = api.db().read().await?;
    let mut out = ObjectsOut::default();
    for (name, kind) in kinds {
        let limit = OBJECTS_MAX as i64 + 1;
        let mut found =
            overview::objects(&mut read, caller.company(), kind, caller.now(), limit).await?;
        if found.len() > OBJECTS_MAX {
            found.truncate(OBJECTS_MAX);
            out.truncated.push(name);
        }
        let found = Some(found.into_iter().map(ObjectOut::from).collect());
        match kind {
            Kind::Connections => out.connections = found,
            Kind::Files => out.files = found,
            Kind::Assets => out.assets = found,
            Kind::Endpoints => out.endpoints = found,
            Kind::ApiKeys => out.api_keys = found,
            Kind::Users => out.users = found,
            Kind::Webhooks => out.webhooks = found,
            Kind::Purchases => out.purchases = found,
        }
    }
    Ok(Data(out))
}

/// The types that are asked for, each once.
fn kinds(types: Option<&str>) -> Result<Vec<(&'static str, Kind)>, Problem> {
    let Some(types) = types else {
        return Ok(KINDS.to_vec());
    };
    let wanted: Vec<&str> = types.split(',').map(str::trim).collect();
    let is_known = |name: &&str| KINDS.iter().any(|(known, _)| known == name);
    if let Some(unknown) = wanted.iter().find(|name| !is_known(name)) {
        let known: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        let message = format!("{unknown:?} is none of {}", known.join(", "));
        let errors = vec![FieldError::new("types", "invalid", message)];
        return Err(Problem::fields(INVALID_PARAMETER, errors));
    }
    let kinds = KINDS.into_iter().filter(|(name, _)| wanted.contains(name));
    Ok(kinds.collect())
}
