use crate::products::archive::{Wanted, archive};
use crate::refusals::RESOURCE_IN_USE;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem, Query};
use axum::extract::State;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::roles::{Permission, Role};

pub const OPERATION: Operation = Operation::delete(
    "delete_asset",
    "/companies/{company_id}/assets/{asset_id}",
)
.about("Assets", "Archive an asset")
.notes(
    "409 `RESOURCE_IN_USE` when companies have active purchases of it, unless `force=true`. Their calls are 404 from then on, and say why.",
)
.needs(Role::DataScientist, Permission::Write)
.refuses(&[RESOURCE_IN_USE]);

/// Archives an asset: nobody can run it any more.
pub async fn delete_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    Query(wanted): Query<Wanted>,
) -> Result<Deleted, Problem> {
    api.db()
        .write(async |write| {
            archive(write, &caller, &id, &wanted).await?;
            Ok(Deleted)
        })
        .await
}
