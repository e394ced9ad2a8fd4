use super::shape::TopUpOut;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query};
use axum::extract::State;
use souk_domain::roles::{Permission, Role};
use souk_store::top_ups::{self, TopUpStatus};

choices! {
    impl TopUpStatus {
        Pending = "pending",
        Settled = "settled",
        Failed = "failed",
    }
}

parameters! {
    pub struct Wanted {
        ..paging: Paging,
        /// Only top-ups in this state.
        status: Option<TopUpStatus>,
    }
}

pub const OPERATION: Operation = Operation::get("list_all_top_ups", "/admin/top-ups")
    .about("Credits", "List the top-ups of all companies, newest first")
    .notes(
        "Platform staff only: `status=pending` is what waits for its money. Of the `provider` `manual` that is a bank transfer, which staff \
         settles; other providers report theirs themselves.",
    )
    .needs(Role::SuperAdmin, Permission::Read);

/// Lists everybody's top-ups.
pub async fn list_all_top_ups(
    State(api): State<ApiState>,
    _: Caller,
    Query(query): Query<Wanted>,
) -> Result<List<TopUpOut>, Problem> {
    let page = query.paging.page();
    let mut read = api.db().read().await?;
    let listed = top_ups::list_all(&mut read, query.status, page.part()).await?;
    Ok(List::of(page, listed, TopUpOut::from))
}
