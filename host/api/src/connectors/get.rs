use super::{ConnectorOut, refusal};
use crate::refusals::CONNECTOR_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use serde::Serialize;
use souk_app::connectors;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("get_connector", "/connectors/{name}")
    .about("Connectors", "Read a connector with every version of it")
    .refuses(&[CONNECTOR_NOT_FOUND]);

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Connector)]
pub struct VersionsOut {
    pub name: String,
    /// The version that a call of this company reaches; null when none is active.
    pub active_version: Option<String>,
    /// The company's own first, each in the order of loading.
    pub versions: Vec<ConnectorOut>,
}

pub async fn get_connector(
    State(api): State<ApiState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Data<VersionsOut>, Problem> {
    let engines = connectors::Engines::load(api.app(), caller.company())
        .await
        .map_err(refusal(&name))?;
    let mut versions: Vec<ConnectorOut> =
        connectors::visible(api.app(), caller.company(), caller.is_staff())
            .await
            .map_err(refusal(&name))?
            .into_iter()
            .filter(|info| info.name == name)
            .map(|info| ConnectorOut::new(info, &engines))
            .collect();
    if versions.is_empty() {
        return Err(Problem::not_found("connector", &name));
    }
    versions.sort_by_key(|version| version.company_id.is_none());
    // Staff sees those of all companies, none of which it reaches.
    let is_reached = |version: &&ConnectorOut| {
        let owner = version.company_id.as_deref();
        version.status == "active" && owner.is_none_or(|owner| owner == caller.company().as_str())
    };
    let active = versions.iter().find(is_reached);
    Ok(Data(VersionsOut {
        active_version: active.map(|version| version.version.clone()),
        name,
        versions,
    }))
}
