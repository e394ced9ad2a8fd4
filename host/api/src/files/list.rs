use super::FileOut;
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query};
use axum::extract::State;
use souk_store::files;

pub const OPERATION: Operation = Operation::get("list_files", "/companies/{company_id}/files")
    .about("Files", "List the company's files by name");

pub async fn list_files(
    State(api): State<ApiState>,
    caller: Caller,
    Query(paging): Query<Paging>,
) -> Result<List<FileOut>, Problem> {
    let page = paging.page();
    let mut read = api.db().read().await?;
    let listed = files::list(&mut read, caller.company(), page.part()).await?;
    Ok(List::of(page, listed, FileOut::from))
}
