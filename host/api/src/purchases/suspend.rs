use super::beside::beside;
use super::shape::PurchaseOut;
use crate::refusals::INVALID_STATE;
use crate::{ApiState, Caller, Data, Operation, OptionalBody, Path, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::PurchaseId;
use souk_domain::roles::{Permission, Role};
use souk_store::purchases::{self, PurchaseStatus};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("suspend_purchase", "/admin/purchases/{purchase_id}/suspend")
    .about("Purchases", "Stop a buyer's use of a product")
    .notes(
        "Platform staff only. Calls of the product are refused with 403 `NOT_ENTITLED` from the next request on, with an endpoint key as \
         well, until the purchase is resumed. Only an active purchase can be suspended.",
    )
    .needs(Role::SuperAdmin, Permission::Write)
    .refuses(&[INVALID_STATE]);

#[derive(Default, Deserialize, ToSchema)]
pub struct SuspendIn {}

/// Suspends an active purchase.
pub async fn suspend_purchase(
    State(api): State<ApiState>,
    _: Caller,
    Path(id): Path<PurchaseId>,
    OptionalBody(_): OptionalBody<SuspendIn>,
) -> Result<Data<PurchaseOut>, Problem> {
    change(&api, &id, PurchaseStatus::Active, PurchaseStatus::Suspended).await
}

/// Moves a purchase between active and suspended.
pub(super) async fn change(
    api: &ApiState,
    id: &PurchaseId,
    from: PurchaseStatus,
    to: PurchaseStatus,
) -> Result<Data<PurchaseOut>, Problem> {
    api.db()
        .write(async |write| {
            let changed = purchases::set_status(write, id, from, to).await?;
            let purchase = purchases::get_any(write, id)
                .await?
                .ok_or_else(|| Problem::not_found("purchase", id.as_str()))?;
            if !changed {
                return Err(Problem::state(
                    purchase.status.as_str(),
                    format!(
                        "only an {} purchase can become {}",
                        from.as_str(),
                        to.as_str()
                    ),
                ));
            }
            let beside = beside(write, &purchase, api.app().clock.now()).await?;
            Ok(Data(PurchaseOut::of(&purchase, &beside, None)))
        })
        .await
}
