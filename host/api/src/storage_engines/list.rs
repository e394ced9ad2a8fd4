use crate::words;
use crate::{AnyObject, ApiState, Caller, Operation, Problem, Whole};
use axum::extract::State;
use serde::Serialize;
use souk_app::connectors::{self, ConnectorError};
use souk_domain::connections::{
    Need, STATEMENT_TIMEOUT_MS_DEFAULT, STATEMENT_TIMEOUT_MS_MAX, STATEMENT_TIMEOUT_MS_MIN,
};
use souk_store::reference::StorageEngine;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("list_storage_engines", "/storage-engines")
    .about("Reference data", "List storage engines")
    .notes("The ids are stable. An engine is `usable` while a connector for it is active; one that is not was taken off work.");

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StorageEngine)]
pub struct EngineOut {
    #[schema(minimum = 1)]
    pub id: i64,
    pub name: String,
    pub slug: String,
    /// How SQL is written for it; `none` when it takes none.
    pub dialect: String,
    #[schema(value_type = Vec<words::CredentialType>)]
    pub credential_types: Vec<String>,
    /// JSON Schema of what its connector reads, in `credentials` and of the members below; a secret is `writeOnly` or has the format
    /// `password`. Null while no connector for it is active.
    #[schema(value_type = Option<AnyObject>)]
    pub settings_schema: serde_json::Value,
    /// The members of a connection that this engine reads.
    pub connection_fields: Vec<ConnectionField>,
    pub usable: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ConnectionField {
    pub name: &'static str,
    pub required: bool,
    /// What holds when the member is absent: a text, a number, or null.
    #[schema(value_type = Value)]
    pub default: serde_json::Value,
}

/// Lists the platform's engines and those of the company's own connectors.
pub async fn list_storage_engines(
    State(api): State<ApiState>,
    caller: Caller,
) -> Result<Whole<EngineOut>, Problem> {
    let engines = match connectors::offered(api.app(), caller.company()).await {
        Ok(engines) => engines,
        Err(ConnectorError::Store(error)) => return Err(error.into()),
        Err(error) => return Err(Problem::internal(error)),
    };
    let engines = engines
        .into_iter()
        .map(|(row, active)| match active {
            // What runs knows better than what was written down when the engine got its id.
            Some(active) => engine(
                StorageEngine {
                    name: active.title.clone(),
                    dialect: active.dialect.clone(),
                    credential_types: active.credential_types.clone(),
                    ..row
                },
                Some(&active.settings_schema),
            ),
            None => engine(row, None),
        })
        .collect();
    Ok(Whole(engines))
}

fn engine(row: StorageEngine, schema: Option<&str>) -> EngineOut {
    let mut settings_schema: serde_json::Value = schema
        .and_then(|schema| serde_json::from_str(schema).ok())
        .unwrap_or_default();
    bound_time(&mut settings_schema);
    EngineOut {
        connection_fields: fields(row.need, settings_schema.get("properties")),
        settings_schema,
        id: row.id,
        name: row.name,
        slug: row.slug,
        dialect: row.dialect,
        credential_types: row.credential_types,
        usable: schema.is_some(),
    }
}

/// How long a statement may take is what a connection says, within the host's bounds, else what the host says: a connector says only what it can take.
fn bound_time(settings_schema: &mut serde_json::Value) {
    let time = settings_schema.pointer_mut("/properties/statement_timeout_ms");
    let Some(time) = time.and_then(serde_json::Value::as_object_mut) else {
        return;
    };
    let said = |word: &str| time.get(word).and_then(serde_json::Value::as_i64);
    let least = said("minimum").map_or(STATEMENT_TIMEOUT_MS_MIN, |said| {
        said.max(STATEMENT_TIMEOUT_MS_MIN)
    });
    let most = said("maximum").map_or(STATEMENT_TIMEOUT_MS_MAX, |said| {
        said.min(STATEMENT_TIMEOUT_MS_MAX)
    });
    for (word, value) in [
        ("minimum", least),
        ("maximum", most),
        ("default", STATEMENT_TIMEOUT_MS_DEFAULT),
    ] {
        time.insert(word.to_owned(), value.into());
    }
}

/// `members`: of the settings of its connector, if that names any.
fn fields(need: Need, members: Option<&serde_json::Value>) -> Vec<ConnectionField> {
    let is_unread =
        |name: &str| name == "database" && members.is_some_and(|all| all.get(name).is_none());
    let own_port = || Some(members?.get("port")?.get("default")?.clone());
    let default = |name: &str| match name {
        "port" => own_port().unwrap_or_default(),
        "ssl_mode" => "require".into(),
        "statement_timeout_ms" => STATEMENT_TIMEOUT_MS_DEFAULT.into(),
        _ => serde_json::Value::Null,
    };
    let common = [("statement_timeout_ms", false)];
    let members = need.fields().iter().copied().chain(common);
    members
        // Few APIs have databases.
        .filter(|(name, _)| need != Need::Http || !is_unread(name))
        .map(|(name, required)| ConnectionField {
            name,
            // A port is required where the engine has none of its own.
            required: required && !is_unread(name) || name == "port" && own_port().is_none(),
            default: default(name),
        })
        .collect()
}
