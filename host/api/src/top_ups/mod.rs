//! Top-ups: a company buys credits; and for platform staff, the list of what waits for its money. A provider's events come in at [`payments`](crate::payments).

pub mod create;
pub mod get;
pub mod list;
pub mod list_all;
pub mod settle;
pub mod shape;

use crate::Routes;
use crate::answer::ToKeep;
use souk_store::StoreError;
use souk_store::idempotency::KeptAnswer;

pub fn routes() -> Routes {
    Routes::new()
        .add(create::OPERATION, create::create_top_up)
        .add(list::OPERATION, list::list_top_ups)
        .add(get::OPERATION, get::get_top_up)
        .add(list_all::OPERATION, list_all::list_all_top_ups)
        .add(settle::OPERATION, settle::settle_top_up)
}

/// What is kept of an answer, for flows that keep it in their own transaction.
fn answer(answer: &impl ToKeep) -> Result<KeptAnswer, StoreError> {
    answer
        .to_keep()
        .map_err(|problem| StoreError::Corrupt(problem.code().to_owned()))
}
