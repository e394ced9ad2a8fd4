use super::{Address, Rows, serve};
use crate::refusals::{COMPANY_ACCESS_DENIED, ENDPOINT_NOT_FOUND, ENDPOINT_SCOPE_MISMATCH};
use crate::runs::page::RanPage;
use crate::{Access, ApiState, Caller, Nothing, Open, Operation, Path, Problem, Query, RawBody};
use axum::extract::State;

pub const OPERATION: Operation = Operation::get(
    "fetch_data_by_handle",
    "/endpoints/v1/{company_handle}/{endpoint_slug}",
)
.about(
    "Data",
    "Fetch a page of an endpoint, with the seller in the path",
)
.notes("The same as `/endpoints/v1/{endpoint_slug}` on the seller's subdomain.")
.access(Access::Data)
.billed()
.runs_connector()
.refuses(&[
    COMPANY_ACCESS_DENIED,
    ENDPOINT_NOT_FOUND,
    ENDPOINT_SCOPE_MISMATCH,
]);

/// Fetches a page of a seller's endpoint.
pub async fn fetch_data_by_handle(
    State(api): State<ApiState>,
    caller: Caller,
    Path((handle, slug)): Path<(String, String)>,
    Query(query): Query<Open<Rows>>,
    raw: RawBody<Nothing>,
) -> Result<RanPage, Problem> {
    let address = Address::Path { handle, slug };
    serve(&api, &caller, address, query, &raw).await
}
