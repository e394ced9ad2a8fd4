use super::shape::PayoutOut;
use crate::idempotency::Once;
use crate::money::PayoutUsd;
use crate::money::{read_usd, usd};
use crate::refusals::{PAYABLE_TOO_LOW, PAYOUT_METHOD_MISSING};
use crate::{ApiState, Caller, Created, Operation, OptionalBody, Problem};
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Number, Value};
use souk_domain::payments::PAYOUT_MIN;
use souk_domain::roles::{Permission, Role};
use souk_store::payouts::{self, RequestError};
use utoipa::ToSchema;

pub const OPERATION: Operation =
    Operation::post("create_payout", "/companies/{company_id}/payouts")
        .about("Payouts", "Ask for earnings to be paid out")
        .notes(
            "All that is payable unless `amount_usd` says how much; at least 10.00. 409 `PAYABLE_TOO_LOW` when there is less, and \
             409 `PAYOUT_METHOD_MISSING` before a payout method is set.",
        )
        .needs(Role::Admin, Permission::Write)
        .key_required()
        .refuses(&[PAYOUT_METHOD_MISSING, PAYABLE_TOO_LOW]);

#[derive(Default, Deserialize, ToSchema)]
pub struct PayoutIn {
    #[schema(value_type = Option<PayoutUsd>)]
    amount_usd: Option<Number>,
}

/// Takes what is payable and puts it on its way.
pub async fn create_payout(
    State(api): State<ApiState>,
    caller: Caller,
    once: Once,
    OptionalBody(body): OptionalBody<PayoutIn>,
) -> Result<Created<PayoutOut>, Problem> {
    let amount = body
        .amount_usd
        .map(|amount| read_usd("amount_usd", &amount))
        .transpose()?;
    if amount.is_some_and(|amount| amount < PAYOUT_MIN) {
        let message = format!("must be at least {PAYOUT_MIN}");
        return Err(Problem::invalid("amount_usd", message));
    }
    api.db()
        .write(async |write| {
            // Not when its head came: the statement is in the order of its times, and its body may have been long on its way.
            let now = api.app().clock.now();
            let payout = payouts::request(
                write,
                caller.company(),
                amount,
                PAYOUT_MIN,
                caller.actor(),
                now,
            )
            .await
            .map_err(refuse)?;
            let created = Created {
                location: format!("/companies/{}/payouts/{}", caller.company(), payout.id),
                data: PayoutOut::from(payout),
            };
            once.keep(write, &created).await?;
            Ok(created)
        })
        .await
}

fn refuse(error: RequestError) -> Problem {
    match error {
        RequestError::NoMethod => Problem::of(
            PAYOUT_METHOD_MISSING,
            "set where the money goes first: PUT payout-method",
        ),
        RequestError::TooLittle { payable } => Problem::of(
            PAYABLE_TOO_LOW,
            "less is payable than that; earnings become payable some days after their charge",
        )
        .detail("payable_usd", Value::Number(usd(payable)))
        .detail("minimum_usd", Value::Number(usd(PAYOUT_MIN))),
        RequestError::Store(error) => error.into(),
    }
}
