use super::shape::PayoutOut;
use crate::refusals::INVALID_STATE;
use crate::words;
use crate::{ApiState, Body, Caller, Data, Operation, Path, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::PayoutId;
use souk_domain::roles::{Permission, Role};
use souk_store::payouts::{self, AdvanceError, PayoutStatus};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::patch("advance_payout", "/admin/payouts/{payout_id}")
    .about("Payouts", "Say how far a payout is")
    .notes(
        "Platform staff only. From `requested` to `processing`, `paid`, `failed` or `cancelled`; from `processing` to `paid` or `failed`. A \
         payout that is paid needs a `reference`, one that failed a `failure_reason`. After `failed` and `cancelled` the money is payable \
         again.",
    )
    .needs(Role::SuperAdmin, Permission::Write)
    .refuses(&[INVALID_STATE]);

#[derive(Deserialize, ToSchema)]
pub struct AdvanceIn {
    #[schema(value_type = words::PayoutStep)]
    status: String,
    /// By what to find the transfer again.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 200)]
    reference: Option<Text<1, 200>>,
    /// Shown to the seller.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 500)]
    failure_reason: Option<Text<1, 500>>,
}

/// Moves a payout on, and its money with it.
pub async fn advance_payout(
    State(api): State<ApiState>,
    caller: Caller,
    Path(id): Path<PayoutId>,
    Body(body): Body<AdvanceIn>,
) -> Result<Data<PayoutOut>, Problem> {
    let next = PayoutStatus::parse(&body.status)
        .filter(|status| *status != PayoutStatus::Requested)
        .ok_or_else(|| {
            Problem::invalid("status", "must be processing, paid, failed or cancelled")
        })?;
    if next == PayoutStatus::Paid && body.reference.is_none() {
        let message = "is required: by what is the transfer found again?";
        return Err(Problem::invalid("reference", message));
    }
    let has_failed = matches!(next, PayoutStatus::Failed | PayoutStatus::Cancelled);
    if next == PayoutStatus::Failed && body.failure_reason.is_none() {
        let message = "is required: the seller wants to know what to mend";
        return Err(Problem::invalid("failure_reason", message));
    }
    api.db()
        .write(async |write| {
            let payout = payouts::advance(
                write,
                &id,
                next,
                body.reference.as_deref(),
                body.failure_reason.as_deref().filter(|_| has_failed),
                caller.actor(),
                caller.now(),
            )
            .await
            .map_err(|error| match error {
                AdvanceError::NotFound => Problem::not_found("payout", id.as_str()),
                AdvanceError::State(status) => Problem::state(
                    status.as_str(),
                    format!(
                        "a payout that is {} cannot become {}",
                        status.as_str(),
                        next.as_str()
                    ),
                ),
                AdvanceError::Store(error) => error.into(),
            })?;
            Ok(Data(payout.into()))
        })
        .await
}
