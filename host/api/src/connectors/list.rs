use super::{ConnectorOut, refusal};
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query};
use axum::extract::State;
use souk_app::connectors;

choices! {
    pub enum Status {
        Staged = "staged",
        Active = "active",
        Canary = "canary",
        Draining = "draining",
        Retired = "retired",
        Rejected = "rejected",
    }
}

parameters! {
    pub struct Wanted {
        ..paging: Paging,
        /// Versions with this status only.
        status: Option<Status>,
    }
}

pub const OPERATION: Operation = Operation::get("list_connectors", "/connectors")
    .about("Connectors", "List the versions of all connectors")
    .notes("The platform's, and the company's own.");

pub async fn list_connectors(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
) -> Result<List<ConnectorOut>, Problem> {
    let page = query.paging.page();
    let engines = connectors::Engines::load(api.app(), caller.company())
        .await
        .map_err(refusal(""))?;
    let visible = connectors::visible(api.app(), caller.company(), caller.is_staff())
        .await
        .map_err(refusal(""))?;
    let rows = visible
        .into_iter()
        .map(|info| ConnectorOut::new(info, &engines));
    let rows: Vec<ConnectorOut> = match query.status.map(Status::as_str) {
        Some(status) => rows.filter(|row| row.status == status).collect(),
        None => rows.collect(),
    };
    Ok(List::within(page, rows))
}
