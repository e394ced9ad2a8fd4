use super::{check_may_manage, check_not_last, find};
use crate::refusals::LAST_ADMINISTRATOR;
use crate::{ApiState, Caller, Deleted, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, UserId};
use souk_domain::roles::{Permission, Role};
use souk_store::keys::{self, Deactivation};
use souk_store::users::{self, UserStatus};
use souk_store::{companies, favorites, invitations, sessions};

pub const OPERATION: Operation =
    Operation::delete("delete_user", "/companies/{company_id}/users/{user_id}")
        .about("Users", "Remove a user")
        .notes(
            "All keys and sessions of the user end at once, keys for endpoints included, and its favorites are gone; what it made stays the company's. \
             Its address is free again. The last active user with role 4 cannot be removed (409 `LAST_ADMINISTRATOR`).",
        )
        .needs(Role::Admin, Permission::Write)
        .refuses(&[LAST_ADMINISTRATOR]);

/// Removes a user, with what lets it in.
pub async fn delete_user(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, UserId)>,
) -> Result<Deleted, Problem> {
    let gone = Deactivation {
        at: caller.now(),
        by: Some(caller.named()),
        reason: Some("its user was removed"),
        reason_code: Some("employee_left"),
    };
    api.db()
        .write(async |write| {
            companies::lock(write, caller.company()).await?;
            let user = find(write, &caller, &id).await?;
            check_may_manage(&caller, &user)?;
            if user.status == UserStatus::Active && user.role >= Role::Admin {
                check_not_last(write, &user).await?;
            }
            keys::deactivate_of_user(write, &id, None, &gone).await?;
            sessions::end_all(write, &id).await?;
            invitations::remove(write, &id).await?;
            favorites::delete_of_user(write, &id).await?;
            users::remove(write, &user, caller.now()).await?;
            Ok(Deleted)
        })
        .await
}
