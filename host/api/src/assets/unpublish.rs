use super::shape::AssetOut;
use crate::products::change as products;
use crate::refusals::INVALID_STATE;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::post(
    "unpublish_asset",
    "/companies/{company_id}/assets/{asset_id}/unpublish",
)
.about("Assets", "Take an asset off the market")
.notes("Companies that have bought it keep it until it is archived.")
.needs(Role::DataEngineer, Permission::Write)
.refuses(&[INVALID_STATE]);

/// Hides an asset from new buyers.
pub async fn unpublish_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
) -> Result<Data<AssetOut>, Problem> {
    products::unpublish(&api, &caller, &id).await
}
