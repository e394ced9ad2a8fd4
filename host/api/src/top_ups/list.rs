use super::shape::TopUpOut;
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query};
use axum::extract::State;
use souk_store::top_ups;

pub const OPERATION: Operation =
    Operation::get("list_top_ups", "/companies/{company_id}/credits/top-ups")
        .about("Credits", "List a company's top-ups, newest first");

/// Lists a company's top-ups.
pub async fn list_top_ups(
    State(api): State<ApiState>,
    caller: Caller,
    Query(paging): Query<Paging>,
) -> Result<List<TopUpOut>, Problem> {
    let page = paging.page();
    let mut read = api.db().read().await?;
    let listed = top_ups::list(&mut read, caller.company(), page.part()).await?;
    Ok(List::of(page, listed, TopUpOut::from))
}
