use super::find;
use crate::refusals::INVALID_STATE;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, PurchaseId};
use souk_domain::roles::{Permission, Role};
use souk_store::keys::{self, Deactivation};
use souk_store::purchases::{self, PurchaseStatus};

pub const OPERATION: Operation = Operation::delete(
    "cancel_purchase",
    "/companies/{company_id}/purchases/{purchase_id}",
)
.about("Purchases", "Give up what was bought")
.notes("Its endpoint keys are refused with 410 from the next request on. A suspended purchase cannot be cancelled: 409.")
.needs(Role::DataScientist, Permission::Write)
.refuses(&[INVALID_STATE]);

/// Cancels a purchase and deactivates its endpoint keys.
pub async fn cancel_purchase(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, PurchaseId)>,
) -> Result<Deleted, Problem> {
    api.db()
        .write(async |write| {
            purchases::lock(write, caller.company(), &id).await?;
            let purchase = find(write, &caller, &id).await?;
            // Cancelling and buying again must not be a way around a suspension.
            if !purchases::set_status(
                write,
                &id,
                PurchaseStatus::Active,
                PurchaseStatus::Cancelled,
            )
            .await?
            {
                return Err(Problem::state(
                    purchase.status.as_str(),
                    "a suspended purchase stays as it is until the platform resumes it",
                ));
            }
            // All of them: one that was rotated may still be in its grace period.
            let deactivation = Deactivation {
                at: caller.now(),
                by: Some(caller.named()),
                ..Deactivation::default()
            };
            keys::deactivate_of_purchase(write, caller.company(), &id, &deactivation).await?;
            Ok(Deleted)
        })
        .await
}
