use super::{Address, Rows, handle_of_host, serve};
use crate::refusals::{COMPANY_ACCESS_DENIED, ENDPOINT_NOT_FOUND, ENDPOINT_SCOPE_MISMATCH};
use crate::runs::page::RanPage;
use crate::{Access, ApiState, Caller, Nothing, Open, Operation, Path, Problem, Query, RawBody};
use axum::extract::State;

pub const OPERATION: Operation = Operation::get("fetch_data", "/endpoints/v1/{endpoint_slug}")
    .about("Data", "Fetch a page of an endpoint")
    .notes(
        "With an endpoint key (billed per request), or the seller's own analytics key at no charge. The seller is named by the subdomain of \
         `Host`, or else by the key. Follow `next_url`: any page costs the source what the first does. `Accept` chooses JSON, NDJSON, CSV, an \
         Arrow IPC stream or Parquet; without the envelope of JSON its members are headers (`Link`, `X-Pagination-…`, `X-Billing-…`). An \
         empty page is free, and so is 304 for an `If-None-Match` with the `ETag` of rows that did not change: the source was asked, the \
         caller has them. Takes an `Idempotency-Key`; answers that are no JSON are not kept for it.",
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
) -> Result<RanPage, Problem> {
    let address = match handle_of_host(api.settings(), &raw.parts) {
        Some(handle) => Address::Subdomain { handle, slug },
        None => Address::Slug(slug),
    };
    serve(&api, &caller, address, query, &raw).await
}
