use super::shape::TopUpOut;
use crate::idempotency::{self, Once};
use crate::refusals::INVALID_STATE;
use crate::{ApiState, Body, Caller, Data, Operation, Path, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_app::payments::{self, Retry, SettleError};
use souk_domain::ids::TopUpId;
use souk_domain::roles::{Permission, Role};
use souk_store::top_ups::TopUp;
use utoipa::ToSchema;

pub const OPERATION: Operation =
    Operation::post("settle_top_up", "/admin/top-ups/{top_up_id}/settle")
        .about("Credits", "Say that the money of a top-up has arrived")
        .notes(
            "Platform staff only. For bank transfers, and for payments that a provider took but did not report. A top-up is credited once: \
             409 when it was settled before, by whomever. Where the payer also pays at the provider, that is not credited, and stands as an \
             error in the host's log.",
        )
        .needs(Role::SuperAdmin, Permission::Write)
        .refuses(&[INVALID_STATE]);

#[derive(Deserialize, ToSchema)]
pub struct SettleIn {
    /// By what to find the payment again: the line of a bank statement, say.
    #[schema(value_type = String, min_length = 1, max_length = 200)]
    reference: Text<1, 200>,
}

/// Credits a top-up.
pub async fn settle_top_up(
    State(api): State<ApiState>,
    caller: Caller,
    Path(id): Path<TopUpId>,
    once: Once,
    Body(body): Body<SettleIn>,
) -> Result<Data<TopUpOut>, Problem> {
    let answer = |top_up: &TopUp| super::answer(&Data(TopUpOut::from(top_up.clone())));
    let retry = once.ticket().map(|ticket| Retry {
        ticket,
        answer: &answer,
        kept_until: idempotency::kept_until(),
    });
    match payments::settle(api.app(), &id, &body.reference, caller.actor(), retry).await {
        Ok(top_up) => {
            once.note_kept();
            Ok(Data(top_up.into()))
        }
        Err(SettleError::NotFound) => Err(Problem::not_found("top-up", id.as_str())),
        Err(SettleError::Settled) => Err(Problem::state(
            "settled",
            "this top-up was settled before; nothing was credited",
        )),
        Err(SettleError::Store(error)) => Err(error.into()),
    }
}
