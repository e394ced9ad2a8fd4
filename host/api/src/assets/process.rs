use super::execute::asset;
use crate::runs::shape::AssetAnswer;
use crate::runs::{self, Params};
use crate::{ApiState, Caller, Nothing, Open, Operation, Path, Problem, Query, Ran, RawBody};
use axum::extract::State;
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
.runs_connector();

pub const GET_OPERATION: Operation = Operation::get("process_asset_by_query", "/companies/{company_id}/assets/{asset_id}/process")
    .about("Assets", "Run an asset, with parameters in the query")
    .notes("Parameters are written `params.<name>=value`, or `<name>=value`. Billed like `execute`; takes an `Idempotency-Key`.")
    .needs(Role::Analyst, Permission::Read)
    .any_company()
    .billed()
    .runs_connector();

/// Runs an asset with parameters from the query.
pub async fn process_asset_by_query(
    State(api): State<ApiState>,
    caller: Caller,
    Path((company, id)): Path<(CompanyId, AssetId)>,
    Query(query): Query<Open<()>>,
    raw: RawBody<Nothing>,
) -> Result<Ran<AssetAnswer>, Problem> {
    let params = Params::of_query(query.rest);
    let asset = asset(&api, &caller, &company, &id).await?;
    runs::asset(&api, &caller, &raw, asset, id.as_str(), params).await
}
