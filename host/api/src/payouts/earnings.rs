use crate::money::Usd;
use crate::money::usd;
use crate::{ApiState, Caller, Data, Operation, Problem};
use axum::extract::State;
use serde::Serialize;
use serde_json::Number;
use souk_domain::money::{CENTS_PER_CREDIT, SELLER_CENTS_PER_CREDIT};
use souk_store::statements;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("get_earnings", "/companies/{company_id}/earnings")
    .about("Payouts", "Show what a company has earned")
    .notes(
        "`earned_usd` is the sum of `pending_usd` (charged less than 7 days ago, unless the operator chose another time), `payable_usd`, \
         `in_payout_usd` and `paid_usd`. Refunds are deducted.",
    );

#[derive(Serialize, ToSchema)]
#[schema(as = Earnings)]
pub struct EarningsOut {
    /// What buyers paid.
    gross_credits: i64,
    #[schema(minimum = 0, maximum = 100)]
    seller_share_percent: i64,
    #[schema(value_type = Usd)]
    earned_usd: Number,
    #[schema(value_type = Usd)]
    pending_usd: Number,
    #[schema(value_type = Usd)]
    payable_usd: Number,
    /// Asked for, but not paid yet.
    #[schema(value_type = Usd)]
    in_payout_usd: Number,
    #[schema(value_type = Usd)]
    paid_usd: Number,
}

/// Shows what a company has earned as a seller.
pub async fn get_earnings(
    State(api): State<ApiState>,
    caller: Caller,
) -> Result<Data<EarningsOut>, Problem> {
    // One instant: money that moves between two reads must not be seen twice.
    let mut snapshot = api.db().snapshot().await?;
    let earnings = statements::earnings(&mut snapshot, caller.company()).await?;
    Ok(Data(EarningsOut {
        gross_credits: earnings.gross_credits,
        seller_share_percent: SELLER_CENTS_PER_CREDIT * 100 / CENTS_PER_CREDIT,
        earned_usd: usd(earnings.earned),
        pending_usd: usd(earnings.pending),
        payable_usd: usd(earnings.payable),
        in_payout_usd: usd(earnings.in_payout),
        paid_usd: usd(earnings.paid),
    }))
}
