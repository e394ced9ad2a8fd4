//! Users: the people of a company, what they may do there, and what they tell of themselves.

pub mod create;
pub mod delete;
pub mod get;
pub mod invite;
pub mod list;
pub mod me;
pub mod update;

use crate::refusals::{INSUFFICIENT_ROLE, LAST_ADMINISTRATOR, ROLE_ESCALATION};
use crate::{Caller, FieldError, Problem, Routes};
use souk_domain::ids::UserId;
use souk_domain::reference::JOB_FUNCTIONS;
use souk_domain::roles::Role;
use souk_store::AnyConnection;
use souk_store::users::{self, User};

pub fn routes() -> Routes {
    Routes::new()
        .add(me::OPERATION, me::current_user)
        .add(list::OPERATION, list::list_users)
        .add(create::OPERATION, create::create_user)
        .add(get::OPERATION, get::get_user)
        .add(update::OPERATION, update::update_user)
        .add(invite::OPERATION, invite::invite_user)
        .add(delete::OPERATION, delete::delete_user)
}

/// One of the company's users, or 404.
async fn find(db: &mut AnyConnection, caller: &Caller, id: &UserId) -> Result<User, Problem> {
    users::get(db, caller.company(), id)
        .await?
        .ok_or_else(|| Problem::not_found("user", id.as_str()))
}

/// Whether the caller is this user, or its key.
fn is_self(caller: &Caller, id: &UserId) -> bool {
    caller.company() == caller.payer() && caller.user() == Some(id)
}

/// Administrators manage users, but none whose role is above their own.
fn check_may_manage(caller: &Caller, user: &User) -> Result<(), Problem> {
    let (required, message) = match caller.grant().may_manage(user.role) {
        _ if caller.role() < Role::Admin => (
            Role::Admin,
            "others are managed with role 4; role and status of a user, too",
        ),
        true => return Ok(()),
        false => (user.role, "this user has a higher role than yours"),
    };
    Err(Problem::of(INSUFFICIENT_ROLE, message)
        .detail("required_role", required.level())
        .detail("role", caller.role().level()))
}

/// The role that a user is to have: at most the caller's, and platform staff only in the platform's own company.
fn check_role(caller: &Caller, role: Role) -> Result<(), Problem> {
    let refused = |message: String| Err(Problem::of(ROLE_ESCALATION, message));
    if role > caller.role() {
        return refused(format!(
            "with role {} you cannot give role {}",
            caller.role().level(),
            role.level()
        ));
    }
    if role == Role::SuperAdmin && caller.company() != caller.payer() {
        return refused("users with role 5 are the platform's own".to_owned());
    }
    Ok(())
}

/// 409 if nobody would be left with the role of an administrator who goes or is lowered. The company is locked, so that two do not go at once.
async fn check_not_last(db: &mut AnyConnection, user: &User) -> Result<(), Problem> {
    let others = users::others_with(db, &user.company_id, &user.id, user.role).await?;
    match others {
        0 => Err(Problem::of(
            LAST_ADMINISTRATOR,
            format!(
                "nobody else has role {}: give it to somebody else first",
                user.role.level()
            ),
        )
        .detail("role", user.role.level())),
        _ => Ok(()),
    }
}

fn role(level: i64, errors: &mut Vec<FieldError>) -> Option<Role> {
    let role = Role::from_level(level);
    if role.is_none() {
        errors.push(FieldError::new("role_id", "invalid", "must be 1 to 5"));
    }
    role
}

fn job_function(id: i64, errors: &mut Vec<FieldError>) -> Option<i64> {
    let known = JOB_FUNCTIONS.iter().any(|function| function.id == id);
    if !known {
        let message = "must be the id of a job function: GET /job-functions";
        errors.push(FieldError::new("job_function_id", "unknown", message));
    }
    known.then_some(id)
}
