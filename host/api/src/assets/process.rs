use super::execute::asset;
use crate::openapi::any_object;
use crate::runs::{self, ExecuteIn, Params};
use crate::{ApiState, Caller, Operation, Path, Problem, Query, RawBody, Shape, schema};
use axum::extract::State;
use axum::response::Response;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::post(
    "process_asset",
    "/companies/{company_id}/assets/{asset_id}/process",
)
.about("Assets", "Run an asset as its buyer")
.notes("The same as `execute`.")
.needs(Role::Analyst, Permission::Read)
.any_company()
.billed()
.runs_connector()
.optional_body(schema::<ExecuteIn>)
.returns(200, Shape::Bare(any_object));

pub const GET_OPERATION: Operation = Operation::get("process_asset_by_query", "/companies/{company_id}/assets/{asset_id}/process")
    .about("Assets", "Run an asset, with parameters in the query")
    .notes("Parameters are written `params.<name>=value`, or `<name>=value`. Billed like `execute`; takes an `Idempotency-Key`.")
    .needs(Role::Analyst, Permission::Read)
    .any_company()
    .billed()
    .runs_connector()
    .open_query()
    .returns(200, Shape::Bare(any_object));

/// Runs an asset for its result.
pub async fn process_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Path((company, id)): Path<(CompanyId, AssetId)>,
    raw: RawBody,
) -> Result<Response, Problem> {
    let params = Params::of_body(&raw)?;
    let asset = asset(&api, &caller, &company, &id).await?;
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

/// Runs an asset with parameters from the query.
pub async fn process_asset_by_query(
    State(api): State<ApiState>,
    caller: Caller,
    Path((company, id)): Path<(CompanyId, AssetId)>,
    query: Query,
    raw: RawBody,
) -> Result<Response, Problem> {
    let params = Params::of_query(query.rest());
    let asset = asset(&api, &caller, &company, &id).await?;
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
