use super::shape::PurchaseOut;
use super::suspend::{SuspendIn, change};
use crate::refusals::INVALID_STATE;
use crate::{ApiState, Caller, Data, Operation, OptionalBody, Path, Problem};
use axum::extract::State;
use souk_domain::ids::PurchaseId;
use souk_domain::roles::{Permission, Role};
use souk_store::purchases::PurchaseStatus;

pub const OPERATION: Operation =
    Operation::post("resume_purchase", "/admin/purchases/{purchase_id}/resume")
        .about("Purchases", "End a suspension")
        .notes("Platform staff only. The endpoint key works again.")
        .needs(Role::SuperAdmin, Permission::Write)
        .refuses(&[INVALID_STATE]);

/// Makes a suspended purchase active again.
pub async fn resume_purchase(
    State(api): State<ApiState>,
    _: Caller,
    Path(id): Path<PurchaseId>,
    OptionalBody(_): OptionalBody<SuspendIn>,
) -> Result<Data<PurchaseOut>, Problem> {
    change(&api, &id, PurchaseStatus::Suspended, PurchaseStatus::Active).await
}
