use super::{LIMIT, START, path_url, serve};
use crate::openapi::any_object;
use crate::{Access, ApiState, Caller, Operation, Path, Problem, Query, RawBody, Shape};
use axum::extract::State;
use axum::response::Response;

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
.query(&[START, LIMIT])
.open_query()
.returns(200, Shape::Bare(any_object));

/// Fetches a page of a seller's endpoint.
pub async fn fetch_data_by_handle(
    State(api): State<ApiState>,
    caller: Caller,
    Path((handle, slug)): Path<(String, String)>,
    query: Query,
    raw: RawBody,
) -> Result<Response, Problem> {
    let link = path_url(api.settings(), &handle, &slug);
    serve(api, caller, Some(handle), slug, link, query, raw).await
}
