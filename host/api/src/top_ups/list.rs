use super::shape::TopUpOut;
use crate::{ApiState, Caller, List, Operation, PAGING, Page, Problem, Query, Shape, schema};
use axum::extract::State;
use souk_store::top_ups;

pub const OPERATION: Operation =
    Operation::get("list_top_ups", "/companies/{company_id}/credits/top-ups")
        .about("Credits", "List a company's top-ups, newest first")
        .query(PAGING)
        .returns(200, Shape::List(schema::<TopUpOut>));

/// Lists a company's top-ups.
pub async fn list_top_ups(
    State(api): State<ApiState>,
    caller: Caller,
    query: Query,
) -> Result<List<TopUpOut>, Problem> {
    let page = Page::of(&query);
    let mut read = api.db().read().await?;
    let (found, total) =
        top_ups::list(&mut read, caller.company(), page.offset(), page.limit()).await?;
    Ok(List {
        data: found.into_iter().map(TopUpOut::from).collect(),
        total,
        page,
    })
}
