use super::shape::PayoutOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, PayoutId};
use souk_store::payouts;

pub const OPERATION: Operation =
    Operation::get("get_payout", "/companies/{company_id}/payouts/{payout_id}")
        .about("Payouts", "Show a payout");

/// Shows a payout.
pub async fn get_payout(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, PayoutId)>,
) -> Result<Data<PayoutOut>, Problem> {
    let mut read = api.db().read().await?;
    let payout = payouts::get(&mut read, caller.company(), &id).await?;
    let payout = payout.ok_or_else(|| Problem::not_found("payout", id.as_str()))?;
    Ok(Data(payout.into()))
}
