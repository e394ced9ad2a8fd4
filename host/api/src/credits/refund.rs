use super::shape::TransactionOut;
use crate::idempotency::Once;
use crate::money::usd;
use crate::refusals::{INVALID_STATE, REFUND_NOT_COVERED, TRANSACTION_NOT_FOUND};
use crate::{ApiState, Body, Caller, Created, Operation, Path, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;
use souk_domain::ids::CompanyId;
use souk_domain::roles::{Permission, Role};
use souk_store::refunds::{self, RefundError};
use souk_store::statements;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post(
    "refund_transaction",
    "/companies/{company_id}/credits/transactions/{transaction_id}/refund",
)
.about("Credits", "Give back what a buyer paid")
.notes(
    "By the company that earned it, or by platform staff. `transaction_id` is the earning on the seller's statement or the charge on the \
     buyer's. The buyer receives all of it, the seller and the platform give back exactly their shares. Once: 409 after that. \
     409 `REFUND_NOT_COVERED` when the seller has less pending and payable than its share; staff can do it all the same.",
)
.needs(Role::Admin, Permission::Write)
.refuses(&[TRANSACTION_NOT_FOUND, INVALID_STATE, REFUND_NOT_COVERED]);

#[derive(Deserialize, ToSchema)]
pub struct RefundIn {
    /// Shown on both statements.
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Text<1, 500>,
}

/// Takes a charge back as new entries.
pub async fn refund_transaction(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, String)>,
    once: Once,
    Body(body): Body<RefundIn>,
) -> Result<Created<TransactionOut>, Problem> {
    let unknown = || Problem::not_found("transaction", &id);
    let company = caller.company();
    api.db().write(async |write| {
        let line = statements::get(write, company, &id)
            .await?
            .ok_or_else(unknown)?;
        // Staff act for either side; a buyer cannot take back what it paid.
        let earner = (!caller.is_staff()).then_some(company);
        // Not when its head came: both statements are in the order of their times, and its body may have been long on its way.
        let now = api.app().clock.now();
        let refunded = refunds::refund(
            write,
            &line.transaction.id,
            earner,
            &body.reason,
            Some(caller.actor()),
            now,
        )
        .await;
        let refunded = refunded.map_err(|error| match error {
            RefundError::NotFound => unknown(),
            RefundError::NotACharge(kind) => Problem::state(kind.as_str(), error.to_string()),
            RefundError::NotCovered { share, cover } => Problem::of(
                REFUND_NOT_COVERED,
                "your company's share of this charge was paid out already: a refund needs earnings that are pending or payable; ask the \
                 platform's staff",
            )
            .detail("required_usd", Value::Number(usd(share)))
            .detail("available_usd", Value::Number(usd(cover))),
            RefundError::Refunded => Problem::state("refunded", error.to_string()),
            RefundError::Store(error) => error.into(),
        })?;
        let line = statements::get(write, company, refunded.id.as_str())
            .await?
            .ok_or_else(|| Problem::internal("a refund is not on the statement"))?;
        let refunded = Created {
            location: format!("/companies/{company}/credits/transactions/{}", line.id),
            data: TransactionOut::from(line),
        };
        once.keep(write, &refunded).await?;
        Ok(refunded)
    }).await
}
