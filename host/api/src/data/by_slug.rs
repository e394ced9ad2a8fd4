use super::{Rows, handle_of_host, serve, url};
use crate::refusals::{COMPANY_ACCESS_DENIED, ENDPOINT_NOT_FOUND, ENDPOINT_SCOPE_MISMATCH};
use crate::runs::shape::PageAnswer;
use crate::{
    Access, ApiState, Caller, Nothing, Open, Operation, Path, Problem, Query, Ran, RawBody,
};
use axum::extract::State;

pub const OPERATION: Operation = Operation::get("fetch_data", "/endpoints/v1/{endpoint_slug}")
    .about("Data", "Fetch a page of an endpoint")
    .notes(
        "With an endpoint key (billed per request), or the seller's own analytics key at no charge. The seller is named by the subdomain of \
         `Host`, or else by the key. Filters are `column=value`. An empty page is free. Takes an `Idempotency-Key`.",
    )
    .access(Access::Data)
    .billed()
    .runs_connector()
    .refuses(&[COMPANY_ACCESS_DENIED, ENDPOINT_NOT_FOUND, ENDPOINT_SCOPE_MISMATCH]);

/// Fetches a page of the endpoint that the host or the key names.
pub async fn fetch_data(
    State(api): State<ApiState>,
    caller: Caller,
    Path(slug): Path<String>,
    Query(query): Query<Open<Rows>>,
    raw: RawBody<Nothing>,
) -> Result<Ran<PageAnswer>, Problem> {
    let handle = handle_of_host(api.settings(), &raw.parts);
    let link = match &handle {
        Some(handle) => url(api.settings(), handle, &slug),
        None => format!("{}/endpoints/v1/{slug}", api.settings().base_url),
    };
    serve(api, caller, handle, slug, link, query, raw).await
}
