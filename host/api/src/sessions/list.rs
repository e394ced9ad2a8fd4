use super::check_may_see;
use super::shape::SessionOut;
use crate::refusals::USER_NOT_FOUND;
use crate::{ApiState, Caller, List, Operation, Paging, Path, Problem, Query};
use axum::extract::State;
use souk_domain::ids::{CompanyId, UserId};
use souk_store::{sessions, users};

pub const OPERATION: Operation = Operation::get(
    "list_sessions",
    "/companies/{company_id}/users/{user_id}/sessions",
)
.about("Users", "List where a user is signed in, last used first")
.notes(
    "One's own, or with role 4 anybody's. A session ends after 12 hours without use and after 7 days in any case; a user has at most 20, of \
     which the one that was idle for longest ends when another begins.",
)
.refuses(&[USER_NOT_FOUND]);

/// Lists a user's sessions.
pub async fn list_sessions(
    State(api): State<ApiState>,
    caller: Caller,
    Path((company, user)): Path<(CompanyId, UserId)>,
    Query(paging): Query<Paging>,
) -> Result<List<SessionOut>, Problem> {
    check_may_see(&caller, &user)?;
    let page = paging.page();
    let mut read = api.db().read().await?;
    if users::get(&mut read, &company, &user).await?.is_none() {
        return Err(Problem::not_found("user", user.as_str()));
    }
    let listed = sessions::list(&mut read, &company, &user, caller.now(), page.part()).await?;
    Ok(List::of(page, listed, |session| {
        SessionOut::of(session, caller.session())
    }))
}
