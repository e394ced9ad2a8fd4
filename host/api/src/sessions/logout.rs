use super::shape::Left;
use crate::{ApiState, Caller, Operation, OptionalBody, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::roles::{Permission, Role};
use souk_store::{companies, sessions};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("logout", "/users/logout")
    .about("Users", "Sign out")
    .notes(
        "Ends all sessions of the user whose session or key this is, from the next request on; with `\"all_sessions\": false` only the session that \
         asks. Keys stay.",
    )
    .needs(Role::Analyst, Permission::Read)
    .changes();

#[derive(Default, Deserialize, ToSchema)]
pub struct LogoutIn {
    /// Default true.
    all_sessions: Option<bool>,
}

/// Signs out.
pub async fn logout(
    State(api): State<ApiState>,
    caller: Caller,
    OptionalBody(body): OptionalBody<LogoutIn>,
) -> Result<Left, Problem> {
    let all = body.all_sessions.unwrap_or(true);
    api.db()
        .write(async |write| {
            companies::lock(write, caller.payer()).await?;
            match (all, caller.session(), caller.user()) {
                (true, _, Some(user)) => sessions::end_all(write, user).await?,
                (false, Some(session), _) => {
                    let (company, user) = (&session.company_id, &session.user_id);
                    sessions::end(write, company, user, &session.id).await?;
                }
                (false, None, _) => {
                    let message = "a key is in no session: leave it out to end all of its user's";
                    return Err(Problem::invalid("all_sessions", message));
                }
                (true, _, None) => {}
            }
            Ok(Left)
        })
        .await
}
