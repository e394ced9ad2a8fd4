use super::shape::AssetOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{AssetId, CompanyId};
use souk_store::{assets, prices, purchases};

pub const OPERATION: Operation =
    Operation::get("get_asset", "/companies/{company_id}/assets/{asset_id}")
        .about("Assets", "Show an asset")
        .notes(
            "Published assets of other companies are shown without what only their owner may see.",
        );

/// Shows an own asset, or a foreign one that may be bought or was bought.
pub async fn get_asset(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
) -> Result<Data<AssetOut>, Problem> {
    let mut read = api.db().read().await?;
    let asset = assets::get_any(&mut read, &id)
        .await?
        .ok_or_else(|| super::not_found(&id))?;
    let is_owner = asset.company_id == *caller.company();
    let is_visible = match asset.status.as_str() {
        "archived" => false,
        "published" => true,
        _ if is_owner => true,
        "unpublished" => purchases::of_product(&mut read, caller.company(), id.as_str())
            .await?
            .is_some(),
        _ => false,
    };
    if !is_visible {
        return Err(super::not_found(&id));
    }
    let price = prices::active(&mut read, id.as_str(), caller.now()).await?;
    Ok(Data(AssetOut::new(asset, price.as_ref(), is_owner)))
}
