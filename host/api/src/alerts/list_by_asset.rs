use super::shape::AlertOut;
use crate::products::not_found;
use crate::{ApiState, Caller, List, Operation, Paging, Path, Problem, Query};
use axum::extract::State;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::products::ProductStatus;
use souk_store::alerts::{self, Wanted};
use souk_store::products;

pub const OPERATION: Operation = Operation::get(
    "list_asset_alerts",
    "/companies/{company_id}/assets/{asset_id}/alerts",
)
.about("Alerts", "List the company's alerts on an asset, newest first")
.notes("Of all its users. The asset may be another company's; whose alerts it has besides is nobody else's business.");

/// Lists the company's alerts on an asset.
pub async fn list_asset_alerts(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, asset)): Path<(CompanyId, AssetId)>,
    Query(paging): Query<Paging>,
) -> Result<List<AlertOut>, Problem> {
    let page = paging.page();
    let mut read = api.db().read().await?;
    let wanted = Wanted {
        asset: Some(asset.as_str()),
        ..Wanted::default()
    };
    let listed = alerts::list(&mut read, caller.company(), wanted, page.part()).await?;
    // Who watches it knows of it, whatever became of it.
    if listed.1 == 0 {
        let found = products::get_any(&mut read, &asset).await?;
        let is_visible = found.is_some_and(|found| match found.status {
            ProductStatus::Published if !found.is_suspended => true,
            ProductStatus::Archived => false,
            _ => found.company_id == *caller.company(),
        });
        if !is_visible {
            return Err(not_found(&asset));
        }
    }
    Ok(List::of(page, listed, |alert| {
        AlertOut::of(alert, caller.now())
    }))
}
