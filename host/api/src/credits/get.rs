use crate::money::Usd;
use crate::money::usd;
use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;
use serde::Serialize;
use serde_json::Number;
use souk_domain::money::{CENTS_PER_CREDIT, UsdCents};
use souk_store::executions;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("get_credits", "/companies/{company_id}/credits")
    .about("Credits", "Show the balance and the use of the last 30 days")
    .notes(
        "The balance is net of what calls in flight hold. The last 30 days are UTC dates, today included. What was refunded on them is no longer \
         spent.",
    );

#[derive(Serialize, ToSchema)]
#[schema(as = Credits)]
pub struct CreditsOut {
    balance_credits: i64,
    #[schema(value_type = Usd)]
    balance_usd: Number,
    #[schema(minimum = 0)]
    held_credits: i64,
    #[schema(minimum = 0)]
    executions_30d: i64,
    #[schema(minimum = 0)]
    endpoint_requests_30d: i64,
    /// Charged less refunded: below zero where more was refunded than charged.
    total_spent_credits_30d: i64,
}

/// Shows what a company can spend.
pub async fn get_credits(
    State(api): State<ApiState>,
    caller: Caller,
) -> Result<Data<CreditsOut>, Problem> {
    let account = api.app().teller.balance(caller.company()).await?;
    let mut read = api.db().read().await?;
    let recent = executions::recent_use(&mut read, caller.company(), caller.now()).await?;
    let balance = account.available();
    Ok(Data(CreditsOut {
        balance_credits: balance,
        balance_usd: usd(UsdCents::new(balance * CENTS_PER_CREDIT)),
        held_credits: account.held,
        executions_30d: recent.executions,
        endpoint_requests_30d: recent.endpoint_requests,
        total_spent_credits_30d: recent.spent_credits,
    }))
}
