//! Credits (specification 4.6): what a company has and used, its statement, what the platform gives, and the proof of the books.

pub mod csv;
pub mod get;
pub mod grant;
pub mod reconciliation;
pub mod refund;
pub mod shape;
pub mod transaction;
pub mod transactions;

use crate::Routes;

pub fn routes() -> Routes {
    Routes::new()
        .add(get::OPERATION, get::get_credits)
        .add(transactions::OPERATION, transactions::list_transactions)
        .add(transaction::OPERATION, transaction::get_transaction)
        .add(refund::OPERATION, refund::refund_transaction)
        .add(grant::OPERATION, grant::grant_credits)
        .add(reconciliation::OPERATION, reconciliation::reconcile_ledger)
}
