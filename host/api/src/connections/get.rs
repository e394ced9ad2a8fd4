use super::refusal;
use super::shape::ConnectionOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_app::connections;
use souk_domain::ids::{CompanyId, ConnectionId};

pub const OPERATION: Operation = Operation::get(
    "get_connection",
    "/companies/{company_id}/connections/{connection_id}",
)
.about("Connections", "Read a connection, without its credentials");

pub async fn get_connection(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, ConnectionId)>,
) -> Result<Data<ConnectionOut>, Problem> {
    let found = connections::get(api.app(), caller.company(), &id).await;
    Ok(Data(found.map_err(refusal(id.as_str()))?.into()))
}
