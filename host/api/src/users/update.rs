use super::{check_may_manage, check_not_last, check_role, find, is_self, job_function, role};
use crate::companies::shape::UserOut;
use crate::fields::{WEB_ADDRESS_WANTED, is_web_address};
use crate::refusals::{INVALID_STATE, LAST_ADMINISTRATOR, ROLE_ESCALATION, VALIDATION_ERROR};
use crate::words;
use crate::{
    ApiState, Body, Caller, Data, FieldError, Line, Operation, Patch, Path, Problem, Text,
};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::{CompanyId, UserId};
use souk_domain::roles::Role;
use souk_store::keys::{self, Deactivation};
use souk_store::users::{self, User, UserStatus};
use souk_store::{Write, companies, sessions};
use utoipa::ToSchema;

pub const OPERATION: Operation =
    Operation::patch("update_user", "/companies/{company_id}/users/{user_id}")
        .about("Users", "Change a user")
        .notes(
            "Everybody changes their own `name`, `avatar_url` and `job_function_id`; whose key has role 4 changes all of it, of all users whose role \
             is not above its own. `role_id` is at most the caller's. A user who gets a lower role loses the keys that have a higher one. The \
             last active user with role 4 keeps it (409 `LAST_ADMINISTRATOR`). A `disabled` user is signed out, and its keys do not work until it is \
             `active` again; who is `invited` becomes active by coming in, and by nothing else (409 `INVALID_STATE`).",
        )
        .refuses(&[ROLE_ESCALATION, LAST_ADMINISTRATOR, INVALID_STATE]);

#[derive(Deserialize, ToSchema)]
pub struct UserPatch {
    /// One line, without control characters.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255)]
    name: Option<Line<1, 255>>,
    /// `null` clears it, here and below.
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2000, pattern = "^https?://[^ ]+$")]
    avatar_url: Patch<Text<1, 2000>>,
    /// One of `GET /job-functions`.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 1)]
    job_function_id: Patch<i64>,
    #[schema(minimum = 1, maximum = 5)]
    role_id: Option<i64>,
    #[schema(value_type = Option<words::UserSwitch>)]
    status: Option<String>,
}

/// What is wanted, checked. Absent: as it is.
struct Wanted {
    name: Option<String>,
    avatar_url: Option<Option<String>>,
    job_function_id: Option<Option<i64>>,
    role: Option<Role>,
    status: Option<UserStatus>,
}

/// Changes a user.
pub async fn update_user(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, UserId)>,
    Body(body): Body<UserPatch>,
) -> Result<Data<UserOut>, Problem> {
    let wanted = read(body)?;
    let now = caller.now();
    api.db()
        .write(async |write| {
            companies::lock(write, caller.company()).await?;
            let user = find(write, &caller, &id).await?;
            let manages = wanted.role.is_some() || wanted.status.is_some();
            if manages || !is_self(&caller, &id) {
                check_may_manage(&caller, &user)?;
            }
            let mut changed = apply(&wanted, &user);
            check(write, &caller, &user, &changed).await?;
            users::update(write, &changed, now).await?;
            if changed.status == UserStatus::Disabled {
                sessions::end_all(write, &id).await?;
            }
            if changed.role < user.role {
                let lowered = Deactivation {
                    at: now,
                    by: Some(caller.named()),
                    reason: Some("the user's role was lowered"),
                    reason_code: Some("other"),
                };
                keys::deactivate_of_user(write, &id, Some(changed.role), &lowered).await?;
            }
            changed.updated_at = now;
            Ok(Data((&changed).into()))
        })
        .await
}

fn read(body: UserPatch) -> Result<Wanted, Problem> {
    let mut errors = Vec::new();
    let avatar_url = match body.avatar_url {
        Patch::Absent => None,
        Patch::Null => Some(None),
        Patch::Value(url) if is_web_address(&url) => Some(Some(url.into_string())),
        Patch::Value(_) => {
            errors.push(FieldError::new("avatar_url", "invalid", WEB_ADDRESS_WANTED));
            None
        }
    };
    let job_function_id = match body.job_function_id {
        Patch::Absent => None,
        Patch::Null => Some(None),
        Patch::Value(id) => Some(job_function(id, &mut errors)),
    };
    let role = body.role_id.and_then(|level| role(level, &mut errors));
    let status = body.status.and_then(|text| status(&text, &mut errors));
    match errors.is_empty() {
        true => Ok(Wanted {
            name: body.name.map(Line::into_string),
            avatar_url,
            job_function_id,
            role,
            status,
        }),
        false => Err(Problem::fields(VALIDATION_ERROR, errors)),
    }
}

fn status(text: &str, errors: &mut Vec<FieldError>) -> Option<UserStatus> {
    match text {
        "active" => Some(UserStatus::Active),
        "disabled" => Some(UserStatus::Disabled),
        _ => {
            let message = "must be active or disabled";
            errors.push(FieldError::new("status", "invalid", message));
            None
        }
    }
}

fn apply(wanted: &Wanted, user: &User) -> User {
    let mut changed = user.clone();
    if let Some(name) = &wanted.name {
        changed.name = name.clone();
    }
    if let Some(url) = &wanted.avatar_url {
        changed.avatar_url = url.clone();
    }
    if let Some(id) = wanted.job_function_id {
        changed.job_function_id = id;
    }
    changed.role = wanted.role.unwrap_or(user.role);
    changed.status = wanted.status.unwrap_or(user.status);
    changed
}

/// Whether a user may become this.
async fn check(
    write: &mut Write,
    caller: &Caller,
    user: &User,
    changed: &User,
) -> Result<(), Problem> {
    if changed.role != user.role {
        check_role(caller, changed.role)?;
    }
    if user.status == UserStatus::Invited && changed.status != user.status {
        return Err(Problem::state(
            user.status.as_str(),
            "an invited user becomes active by coming in; who shall not is removed: DELETE",
        ));
    }
    let stays = changed.status == UserStatus::Active && changed.role >= user.role;
    let is_administrator = user.status == UserStatus::Active && user.role >= Role::Admin;
    match is_administrator && !stays {
        true => check_not_last(write, user).await,
        false => Ok(()),
    }
}
