use super::shape::AssetOut;
use crate::refusals::INVALID_STATE;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_app::publish::later;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::roles::{Permission, Role};
use souk_store::{assets, prices};

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
    api.db()
        .write(async |write| {
            let before = super::find(write, caller.company(), &id).await?;
            match before.status.as_str() {
                "published" => {
                    let now = later(before.updated_at, caller.now());
                    assets::set_status(write, caller.company(), &id, "unpublished", now).await?;
                }
                "unpublished" => {}
                status => {
                    return Err(Problem::state(
                        status,
                        "only a published asset can be unpublished",
                    ));
                }
            }
            let after = super::find(write, caller.company(), &id).await?;
            let price = prices::active(write, id.as_str(), caller.now()).await?;
            Ok(Data(AssetOut::new(after, price.as_ref(), true)))
        })
        .await
}
