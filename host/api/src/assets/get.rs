use super::shape::AssetOut;
use crate::products::{Offered, not_found};
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::products::ProductStatus;
use souk_store::{prices, products, purchases, saved_schemas};

pub const OPERATION: Operation =
    Operation::get("get_asset", "/companies/{company_id}/assets/{asset_id}")
        .about("Assets", "Show an asset")
        .notes(
            "Published assets of other companies are shown without what only their owner may see; those of a suspended company, and unpublished \
             ones, to companies that have purchased them.",
        );

/// Shows an own asset, or a foreign one that may be bought or was bought.
pub async fn get_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
) -> Result<Data<AssetOut>, Problem> {
    let mut read = api.db().read().await?;
    let asset = products::get_any(&mut read, &id)
        .await?
        .ok_or_else(|| not_found(&id))?;
    let is_owner = asset.company_id == *caller.company();
    let is_visible = match asset.status {
        ProductStatus::Archived => false,
        _ if is_owner => true,
        ProductStatus::Published if !asset.is_suspended => true,
        // What is not on sale any more stays with those who bought it.
        ProductStatus::Published | ProductStatus::Unpublished => {
            purchases::of_product(&mut read, caller.company(), id.as_str())
                .await?
                .is_some()
        }
        ProductStatus::Draft => false,
    };
    if !is_visible {
        return Err(not_found(&id));
    }
    let price = prices::active(&mut read, id.as_str(), caller.now()).await?;
    let mut out = AssetId::out(asset, price.as_ref(), is_owner);
    if is_owner && let Some(saved) = saved_schemas::get(&mut read, caller.company(), &id).await? {
        out.saved_schema = serde_json::from_str(&saved).map_err(Problem::internal)?;
    }
    Ok(Data(out))
}
