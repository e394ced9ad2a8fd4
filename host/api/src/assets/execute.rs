use crate::products::not_found;
use crate::runs::shape::AssetAnswer;
use crate::runs::{self, ExecuteIn, Params, refusal};
use crate::{ApiState, Caller, Operation, Path, Problem, Ran, RawBody};
use axum::extract::State;
use souk_app::products::{self, AssetSnapshot};
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::roles::{Permission, Role};
use souk_store::Cached;

pub const OPERATION: Operation = Operation::post("execute_asset", "/companies/{company_id}/assets/{asset_id}/execute")
    .about("Assets", "Run an asset")
    .notes(
        "No body, an empty body, `{}` or `{params}`. Free for the owner; any other company pays the price of the asset, charged once its \
         result is there. `company_id` may be the caller's company or the asset owner's; the key's company pays.",
    )
    .needs(Role::Analyst, Permission::Read)
    .any_company()
    .billed()
    .runs_connector();

/// Runs an asset for its result.
pub async fn execute_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Path((company, id)): Path<(CompanyId, AssetId)>,
    raw: RawBody<ExecuteIn>,
) -> Result<Ran<AssetAnswer>, Problem> {
    let params = Params::of_body(&raw)?;
    let asset = asset(&api, &caller, &company, &id).await?;
    runs::asset(&api, &caller, &raw, asset, id.as_str(), params).await
}

/// The asset, when the path's company is its owner or the caller.
pub async fn asset(
    api: &ApiState,
    caller: &Caller,
    company: &CompanyId,
    id: &AssetId,
) -> Result<Cached<AssetSnapshot>, Problem> {
    let asset = products::get(api.app(), id, caller.now())
        .await
        .map_err(|error| refusal("asset", id.as_str())(error.into()))?;
    match company == caller.payer() || *company == asset.row.company_id {
        true => Ok(asset),
        false => Err(not_found(id)),
    }
}
