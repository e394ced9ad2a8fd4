use super::asset;
use crate::refusals::ASSET_NOT_FOUND;
use crate::runs::shape::AssetAnswer;
use crate::runs::{self, Params};
use crate::{ApiState, Caller, Nothing, Open, Operation, Path, Problem, Query, Ran, RawBody};
use axum::extract::State;
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::get("analyze_by_query", "/analyze/{company_handle}/assets/{asset_slug}")
    .about("Assets", "Run an asset by handle and slug, with parameters in the query")
    .notes("Parameters are written `params.<name>=value`, or `<name>=value`. Billed like `execute`; takes an `Idempotency-Key`.")
    .needs(Role::Analyst, Permission::Read)
    .any_company()
    .billed()
    .runs_connector()
    .refuses(&[ASSET_NOT_FOUND]);

/// Runs an asset with parameters from the query.
pub async fn analyze_by_query(
    State(api): State<ApiState>,
    caller: Caller,
    Path((handle, slug)): Path<(String, String)>,
    Query(query): Query<Open<()>>,
    raw: RawBody<Nothing>,
) -> Result<Ran<AssetAnswer>, Problem> {
    let params = Params::of_query(query.rest);
    let asset = asset(&api, &caller, &handle, &slug).await?;
    runs::asset(&api, &caller, &raw, asset, &slug, params).await
}
