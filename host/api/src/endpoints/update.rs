use super::shape::{EndpointIn, EndpointOut};
use crate::products::change as products;
use crate::refusals::{
    CONFLICT, CONNECTOR_UNAVAILABLE, INVALID_STATE, SLUG_TAKEN, SQL_NOT_READ_ONLY,
};
use crate::{ApiState, Caller, Changes, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::patch("update_endpoint", "/companies/{company_id}/endpoints/{endpoint_id}")
    .about("Endpoints", "Change an endpoint")
    .notes(
        "Members that are absent stay, `null` clears. A new `source` or `sql_logic` replaces the former one. The slug of a published \
         endpoint stays (409 `INVALID_STATE`), because buyers call it. A change of what is sold (its \
         source, fields or order) takes the preview away until the next test or publication, unless it is tested itself. A filter or an order that a test of the same \
         table or statement has found to be impossible is 400 `VALIDATION_ERROR`. Before a change of a published endpoint is saved that asks more of \
         the source (another connection, table, statement or order; fields, filters or sorts that were not there), it is tested as \
         `publish_endpoint` tests it, and what that returns becomes the preview; if the test fails, also because the source is away, it is 409 \
         `INVALID_STATE`, nothing is changed, and buyers go on with what was. No other change asks the source.",
    )
    .needs(Role::DataEngineer, Permission::Write)
    .runs_connector()
    .refuses(&[SLUG_TAKEN, SQL_NOT_READ_ONLY, CONNECTOR_UNAVAILABLE, INVALID_STATE, CONFLICT]);

/// Lays a patch over an endpoint and checks the whole.
pub async fn update_endpoint(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, EndpointId)>,
    Changes { members, .. }: Changes<EndpointIn>,
) -> Result<Data<EndpointOut>, Problem> {
    products::update(&api, &caller, &id, &members).await
}
