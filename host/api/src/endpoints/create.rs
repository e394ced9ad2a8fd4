use super::shape::{EndpointIn, EndpointOut};
use crate::products::change as products;
use crate::refusals::{CONFLICT, CONNECTOR_UNAVAILABLE, SLUG_TAKEN, SQL_NOT_READ_ONLY};
use crate::{ApiState, Body, Caller, Created, Operation, Problem};
use axum::extract::State;
use souk_domain::ids::EndpointId;
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation =
    Operation::post("create_endpoint", "/companies/{company_id}/endpoints")
        .about("Endpoints", "Create an endpoint")
        .notes(
            "A draft: nothing is run. Only the named fields ever leave the source. A filter or an order that a test of the same table or \
             statement has found to be impossible is 400 `VALIDATION_ERROR`.",
        )
        .needs(Role::DataEngineer, Permission::Write)
        .refuses(&[
            SLUG_TAKEN,
            SQL_NOT_READ_ONLY,
            CONNECTOR_UNAVAILABLE,
            CONFLICT,
        ]);

/// Creates a draft of an endpoint.
pub async fn create_endpoint(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<EndpointIn>,
) -> Result<Created<EndpointOut>, Problem> {
    products::create(&api, &caller, EndpointId::generate(), body).await
}
