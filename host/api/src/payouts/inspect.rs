use super::shape::PayoutOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use serde::Serialize;
use souk_domain::ids::PayoutId;
use souk_domain::roles::{Permission, Role};
use souk_store::payouts;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("inspect_payout", "/admin/payouts/{payout_id}")
    .about("Payouts", "Show a payout with where it goes")
    .notes("Platform staff only, with `write`: the one place that shows a whole destination, to whoever makes the transfer.")
    .needs(Role::SuperAdmin, Permission::Write);

#[derive(Serialize, ToSchema)]
#[schema(as = InspectedPayout)]
pub struct InspectedOut {
    #[serde(flatten)]
    payout: PayoutOut,
    account_holder: String,
    destination: String,
}

/// Shows a payout with its destination, and says in the log that it did.
pub async fn inspect_payout(
    State(api): State<ApiState>,
    caller: Caller,
    Path(id): Path<PayoutId>,
) -> Result<Data<InspectedOut>, Problem> {
    let mut read = api.db().read().await?;
    let payout = payouts::find(&mut read, &id).await?;
    let payout = payout.ok_or_else(|| Problem::not_found("payout", id.as_str()))?;
    let destination = souk_app::payouts::destination(api.app(), &payout)?;
    tracing::info!(payout = %id, actor = %caller.actor(), "a payout's destination was shown");
    Ok(Data(InspectedOut {
        account_holder: payout.method.account_holder.clone(),
        destination,
        payout: payout.into(),
    }))
}
