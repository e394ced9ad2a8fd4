use super::asset;
use crate::refusals::ASSET_NOT_FOUND;
use crate::runs::shape::AssetAnswer;
use crate::runs::{self, ExecuteIn, Params};
use crate::{ApiState, Caller, Operation, Path, Problem, Ran, RawBody};
use axum::extract::State;
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation =
    Operation::post("analyze", "/analyze/{company_handle}/assets/{asset_slug}")
        .about("Assets", "Run an asset by handle and slug")
        .notes("The same as `execute`; the key's company pays.")
        .needs(Role::Analyst, Permission::Read)
        .any_company()
        .billed()
        .runs_connector()
        .refuses(&[ASSET_NOT_FOUND]);

/// Runs an asset for its result.
pub async fn analyze(
    State(api): State<ApiState>,
    caller: Caller,
    Path((handle, slug)): Path<(String, String)>,
    raw: RawBody<ExecuteIn>,
) -> Result<Ran<AssetAnswer>, Problem> {
    let params = Params::of_body(&raw)?;
    let asset = asset(&api, &caller, &handle, &slug).await?;
    runs::asset(&api, &caller, &raw, asset, &slug, params).await
}
