use crate::query::{Date, parameters};
use crate::words;
use crate::{ApiState, Caller, Data, Operation, Problem, Query};
use axum::extract::State;
use serde::Serialize;
use souk_domain::roles::{Permission, Role};
use souk_store::reconciliation::{day, reconcile};
use std::collections::BTreeMap;
use utoipa::ToSchema;

parameters! {
    pub struct Wanted {
        /// Also what was booked on this UTC date, and what accounts held at its end.
        date: Option<Date>,
    }
}

pub const OPERATION: Operation = Operation::get("reconcile_ledger", "/admin/ledger/reconciliation")
    .about("Credits", "Prove that the books balance")
    .notes("Platform staff only. Reads everything: run it daily, not by the minute.")
    .needs(Role::SuperAdmin, Permission::Read)
    .hourly(60);

#[derive(Serialize, ToSchema)]
#[schema(as = Reconciliation)]
pub struct ReconciliationOut {
    balanced: bool,
    /// Cents; zero.
    sum_all_accounts: i64,
    #[schema(minimum = 0)]
    transactions: i64,
    #[schema(minimum = 0)]
    entries: i64,
    #[schema(minimum = 0)]
    open_holds: i64,
    #[schema(minimum = 0)]
    orphan_holds: i64,
    mismatches: Vec<Mismatch>,
    /// When a date was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<DayOut>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ReconciliationDay)]
pub struct DayOut {
    #[schema(format = Date)]
    date: String,
    booked: Vec<BookedOut>,
    /// Cents at the end of the day (or now, of a day that has not ended) by kind of account: `cash`, `platform_promo`,
    /// `platform_revenue`, `buyer`, `seller_pending`, `seller_payable`. They add up to zero; cash is minus what the bank holds.
    closing_usd_cents: BTreeMap<String, i64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ReconciliationBooked)]
pub struct BookedOut {
    #[schema(value_type = words::BookedType)]
    r#type: String,
    #[schema(minimum = 0)]
    transactions: i64,
    /// Signed, as buyers saw it.
    amount_credits: i64,
    amount_usd_cents: i64,
}

#[derive(Serialize, ToSchema)]
pub struct Mismatch {
    #[schema(value_type = words::FindingKind)]
    kind: &'static str,
    /// The account, transaction, execution or hold.
    id: String,
    expected: i64,
    found: i64,
}

/// Checks every account against its entries and every charge against its run.
pub async fn reconcile_ledger(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
) -> Result<Data<ReconciliationOut>, Problem> {
    let day = match query.date.map(|time| time.0) {
        None => None,
        Some(midnight) => {
            let found = day(api.db(), midnight).await?;
            let booked = found.booked.into_iter().map(|booked| BookedOut {
                r#type: booked.kind,
                transactions: booked.transactions,
                amount_credits: booked.credits,
                amount_usd_cents: booked.cents,
            });
            Some(DayOut {
                date: midnight.date(),
                booked: booked.collect(),
                closing_usd_cents: found.closing.into_iter().collect(),
            })
        }
    };
    let found = reconcile(api.db(), caller.now()).await?;
    Ok(Data(ReconciliationOut {
        balanced: found.is_balanced(),
        sum_all_accounts: found.sum_all_accounts,
        transactions: found.transactions,
        entries: found.entries,
        open_holds: found.open_holds,
        orphan_holds: found.orphan_holds,
        mismatches: found
            .findings
            .into_iter()
            .map(|finding| Mismatch {
                kind: finding.kind.as_str(),
                id: finding.id,
                expected: finding.expected,
                found: finding.found,
            })
            .collect(),
        day,
    }))
}
