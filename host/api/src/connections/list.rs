use super::shape::ConnectionOut;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, Integer, List, Operation, Paging, Problem, Query};
use axum::extract::State;
use souk_store::connections::{self, ConnectionFilter};

choices! {
    pub enum Status {
        Unverified = "unverified",
        Active = "active",
        Failed = "failed",
    }
}

parameters! {
    pub struct Wanted {
        ..paging: Paging,
        /// Connections of this storage engine only.
        engine_id: Option<Integer<1, { i64::MAX }>>,
        /// Connections with this status only.
        status: Option<Status>,
    }
}

pub const OPERATION: Operation =
    Operation::get("list_connections", "/companies/{company_id}/connections")
        .about("Connections", "List connections, newest first");

pub async fn list_connections(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
) -> Result<List<ConnectionOut>, Problem> {
    let page = query.paging.page();
    let filter = ConnectionFilter {
        engine_id: query.engine_id.map(Integer::get),
        status: query.status.map(Status::as_str),
    };
    let mut read = api.db().read().await?;
    let listed = connections::list(&mut read, caller.company(), &filter, page.part()).await?;
    Ok(List::of(page, listed, ConnectionOut::from))
}
