use super::asset;
use crate::openapi::any_object;
use crate::runs::{self, ExecuteIn, Params};
use crate::{ApiState, Caller, Operation, Path, Problem, RawBody, Shape, schema};
use axum::extract::State;
use axum::response::Response;
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation =
    Operation::post("analyze", "/analyze/{company_handle}/assets/{asset_slug}")
        .about("Assets", "Run an asset by handle and slug")
        .notes("The same as `execute`; the key's company pays.")
        .needs(Role::Analyst, Permission::Read)
        .any_company()
        .billed()
        .runs_connector()
        .optional_body(schema::<ExecuteIn>)
        .returns(200, Shape::Bare(any_object));

/// Runs an asset for its result.
pub async fn analyze(
    State(api): State<ApiState>,
    caller: Caller,
    Path((handle, slug)): Path<(String, String)>,
    raw: RawBody,
) -> Result<Response, Problem> {
    let params = Params::of_body(&raw)?;
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
