use super::shape::MethodOut;
use crate::refusals::PAYOUT_METHOD_NOT_FOUND;
use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;
use souk_domain::roles::{Permission, Role};
use souk_store::payouts;

pub const OPERATION: Operation =
    Operation::get("get_payout_method", "/companies/{company_id}/payout-method")
        .about("Payouts", "Show where a company's earnings go")
        .needs(Role::Admin, Permission::Read)
        .refuses(&[PAYOUT_METHOD_NOT_FOUND]);

/// Shows a company's payout method, masked.
pub async fn get_payout_method(
    State(api): State<ApiState>,
    caller: Caller,
) -> Result<Data<MethodOut>, Problem> {
    let mut read = api.db().read().await?;
    let method = payouts::method(&mut read, caller.company()).await?;
    let method =
        method.ok_or_else(|| Problem::not_found("payout method", caller.company().as_str()))?;
    Ok(Data(method.into()))
}
