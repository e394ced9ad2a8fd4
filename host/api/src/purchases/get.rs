use super::beside::beside;
use super::shape::PurchaseOut;
use super::{find, key_of};
use crate::keys::shape::KeyOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, PurchaseId};

pub const OPERATION: Operation = Operation::get(
    "get_purchase",
    "/companies/{company_id}/purchases/{purchase_id}",
)
.about("Purchases", "Show a purchase");

/// Shows a purchase, with its endpoint key masked.
pub async fn get_purchase(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, PurchaseId)>,
) -> Result<Data<PurchaseOut>, Problem> {
    let mut read = api.db().read().await?;
    let purchase = find(&mut read, &caller, &id).await?;
    let key = key_of(&mut read, &caller, &purchase).await?;
    let beside = beside(&mut read, &purchase, caller.now()).await?;
    Ok(Data(PurchaseOut::of(
        &purchase,
        &beside,
        key.map(|key| KeyOut::masked(&key, caller.now())),
    )))
}
