use super::shape::PayoutOut;
use crate::refusals::{INVALID_STATE, VALIDATION_ERROR};
use crate::words;
use crate::{ApiState, Body, Caller, Data, FieldError, Operation, Path, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::fields::FieldErrors;
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
    #[schema(min_length = 1, max_length = 200)]
    reference: Option<String>,
    /// Shown to the seller.
    #[schema(min_length = 1, max_length = 500)]
    failure_reason: Option<String>,
}

/// Moves a payout on, and its money with it.
pub async fn advance_payout(
    State(api): State<ApiState>,
    caller: Caller,
    Path(id): Path<PayoutId>,
    Body(body): Body<AdvanceIn>,
) -> Result<Data<PayoutOut>, Problem> {
    let Step {
        next,
        reference,
        failure_reason,
    } = read(body).map_err(|errors| Problem::fields(VALIDATION_ERROR, errors))?;
    api.db()
        .write(async |write| {
            // Not when its head came: the statement is in the order of its times, and its body may have been long on its way.
            let now = api.app().clock.now();
            let payout = payouts::advance(
                write,
                &id,
                next,
                reference.as_deref(),
                failure_reason.as_deref(),
                caller.actor(),
                now,
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

/// What a payout becomes.
struct Step {
    next: PayoutStatus,
    reference: Option<Text<1, 200>>,
    failure_reason: Option<Text<1, 500>>,
}

fn read(body: AdvanceIn) -> Result<Step, Vec<FieldError>> {
    let mut errors = FieldErrors::default();
    let next = PayoutStatus::parse(&body.status).filter(|next| *next != PayoutStatus::Requested);
    if next.is_none() {
        let message = "must be processing, paid, failed or cancelled";
        errors.add("status", "invalid", message);
    }
    if next == Some(PayoutStatus::Paid) && body.reference.is_none() {
        let message = "is required: by what is the transfer found again?";
        errors.add("reference", "required", message);
    }
    if next == Some(PayoutStatus::Failed) && body.failure_reason.is_none() {
        let message = "is required: the seller wants to know what to mend";
        errors.add("failure_reason", "required", message);
    }
    let reference = text("reference", body.reference, &mut errors);
    let failure_reason = text("failure_reason", body.failure_reason, &mut errors);
    let has_failed = matches!(next, Some(PayoutStatus::Failed | PayoutStatus::Cancelled));
    match next {
        Some(next) if errors.is_empty() => Ok(Step {
            next,
            reference,
            failure_reason: failure_reason.filter(|_| has_failed),
        }),
        _ => Err(errors.into_vec()),
    }
}

fn text<const MAX: usize>(
    field: &str,
    given: Option<String>,
    errors: &mut FieldErrors,
) -> Option<Text<1, MAX>> {
    let read = Text::new(given?);
    if read.is_none() {
        let message = format!("must be a text of 1 to {MAX} characters");
        errors.add(field, "invalid", message);
    }
    read
}
