use super::check_may_see;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, SessionId, UserId};
use souk_store::{companies, sessions};

pub const OPERATION: Operation = Operation::delete(
    "end_session",
    "/companies/{company_id}/users/{user_id}/sessions/{session_id}",
)
.about("Users", "Sign a user out in one place")
.notes("One's own, or with role 4 anybody's. From the next request on.");

/// Ends a session.
pub async fn end_session(
    State(api): State<ApiState>,
    caller: Caller,
    Path((company, user, id)): Path<(CompanyId, UserId, SessionId)>,
) -> Result<Deleted, Problem> {
    check_may_see(&caller, &user)?;
    let ended = api
        .db()
        .write(async |write| {
            companies::lock(write, &company).await?;
            sessions::end(write, &company, &user, &id).await
        })
        .await?;
    match ended {
        true => Ok(Deleted),
        false => Err(Problem::not_found("session", id.as_str())),
    }
}
