use crate::{ApiState, Caller, Data, Operation, Problem, Shape, schema};
use axum::extract::State;
use serde::Serialize;
use souk_domain::roles::{Permission, Role};
use souk_store::reconciliation::reconcile;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("reconcile_ledger", "/admin/ledger/reconciliation")
    .about("Credits", "Prove that the books balance")
    .notes("Platform staff only. Reads everything: run it daily, not by the minute.")
    .needs(Role::SuperAdmin, Permission::Read)
    .hourly(60)
    .returns(200, Shape::One(schema::<ReconciliationOut>));

#[derive(Serialize, ToSchema)]
#[schema(as = Reconciliation)]
pub struct ReconciliationOut {
    balanced: bool,
    /// Cents; zero.
    sum_all_accounts: i64,
    transactions: i64,
    entries: i64,
    open_holds: i64,
    orphan_holds: i64,
    mismatches: Vec<Mismatch>,
}

#[derive(Serialize, ToSchema)]
pub struct Mismatch {
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
) -> Result<Data<ReconciliationOut>, Problem> {
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
    }))
}
