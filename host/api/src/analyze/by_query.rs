use super::asset;
use crate::openapi::any_object;
use crate::runs::{self, Params};
use crate::{ApiState, Caller, Operation, Path, Problem, Query, RawBody, Shape};
use axum::extract::State;
use axum::response::Response;
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::get("analyze_by_query", "/analyze/{company_handle}/assets/{asset_slug}")
    .about("Assets", "Run an asset by handle and slug, with parameters in the query")
    .notes("Parameters are written `params.<name>=value`, or `<name>=value`. Billed like `execute`; takes an `Idempotency-Key`.")
    .needs(Role::Analyst, Permission::Read)
    .any_company()
    .billed()
    .runs_connector()
    .open_query()
    .returns(200, Shape::Bare(any_object));

/// Runs an asset with parameters from the query.
pub async fn analyze_by_query(
    State(api): State<ApiState>,
    caller: Caller,
    Path((handle, slug)): Path<(String, String)>,
    query: Query,
    raw: RawBody,
) -> Result<Response, Problem> {
    let params = Params::of_query(query.rest());
    let asset = asset(&api, &caller, &handle, &slug).await?;
    let product = asset.row.id.clone();
    runs::once(
        &api,
        &caller,
        &raw,
        product.as_str(),
        asset.timeout,
        |ticket| runs::asset(api.clone(), caller.clone(), asset, params, ticket),
    )
    .await
}
