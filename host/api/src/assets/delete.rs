use crate::products::{find, not_found};
use crate::query::parameters;
use crate::refusals::RESOURCE_IN_USE;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem, Query};
use axum::extract::State;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::products::ProductStatus;
use souk_domain::roles::{Permission, Role};
use souk_store::{products, purchases};

parameters! {
    pub struct Wanted {
        /// Archive although companies have bought it.
        force: Option<bool>,
    }
}

pub const OPERATION: Operation = Operation::delete(
    "delete_asset",
    "/companies/{company_id}/assets/{asset_id}",
)
.about("Assets", "Archive an asset")
.notes("409 `RESOURCE_IN_USE` when companies have active purchases of it, unless `force=true`.")
.needs(Role::DataScientist, Permission::Write)
.refuses(&[RESOURCE_IN_USE]);

/// Archives an asset: nobody can run it any more.
pub async fn delete_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    Query(query): Query<Wanted>,
) -> Result<Deleted, Problem> {
    api.db()
        .write(async |write| {
            find(write, caller.company(), &id).await?;
            let buyers = purchases::active_of_product(write, id.as_str()).await?;
            if buyers > 0 && query.force != Some(true) {
                let message = format!(
                    "{buyers} companies have bought this asset; archive it with force=true"
                );
                return Err(
                    Problem::of(RESOURCE_IN_USE, message).detail("active_purchases", buyers)
                );
            }
            let (company, to) = (caller.company(), ProductStatus::Archived);
            if !products::set_status(write, company, &id, to, caller.now()).await? {
                return Err(not_found(&id));
            }
            Ok(Deleted)
        })
        .await
}
