//! API keys (specification 4.1). `api-keys` and `api_keys` are the same collection.

pub mod create;
pub mod current;
pub mod delete;
pub mod get;
pub mod list;
pub mod revoke;
pub mod rotate;
pub mod shape;
pub mod stats;
pub mod update;

use crate::refusals::{CONFLICT, INSUFFICIENT_ROLE, ROLE_ESCALATION, VALIDATION_ERROR};
use crate::{Caller, FieldError, Problem, Routes, standing};
use souk_domain::fields::FieldErrors;
use souk_domain::ids::KeyId;
use souk_domain::keys::{KeyType, LIVE_KEYS_MAX, NEW_KEYS_A_DAY_MAX};
use souk_domain::limits::KEY_LIMIT_MAX;
use souk_domain::roles::{GrantError, Role};
use souk_domain::time::Timestamp;
use souk_store::keys::{self, Key, KeyCounts};
use souk_store::{AnyConnection, Write};
use std::borrow::Cow;

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_keys)
        .add(create::OPERATION, create::create_key)
        .add(current::OPERATION, current::current_key)
        .add(get::OPERATION, get::get_key)
        .add(update::OPERATION, update::update_key)
        .add(delete::OPERATION, delete::delete_key)
        .add(revoke::OPERATION, revoke::revoke_key)
        .add(rotate::OPERATION, rotate::rotate_key)
        .add(stats::OPERATION, stats::key_stats)
}

/// One of the company's keys, or 404.
async fn find(db: &mut AnyConnection, caller: &Caller, id: &KeyId) -> Result<Key, Problem> {
    souk_store::keys::get(db, caller.company(), id)
        .await?
        .ok_or_else(|| Problem::not_found("API key", id.as_str()))
}

/// Refuses a key more to whoever may make none any more, and for a company that has as many as it may have.
pub(crate) async fn check_room(write: &mut Write, caller: &Caller) -> Result<(), Problem> {
    let counts = keys::counts(write, caller.company(), caller.now()).await?;
    standing::in_write(write, caller).await?;
    if counts.live >= LIVE_KEYS_MAX {
        return Err(Problem::of(CONFLICT, full()));
    }
    check_day(&counts)
}

/// A key that has expired works again only where there would be room for another one.
pub(crate) async fn check_revival(
    write: &mut Write,
    caller: &Caller,
    key: &Key,
    expires_at: Option<Timestamp>,
) -> Result<(), Problem> {
    let now = caller.now();
    let works = |expires_at: Option<Timestamp>| expires_at.is_none_or(|at| at > now);
    if works(key.expires_at) || !works(expires_at) {
        return Ok(());
    }
    let counts = keys::counts(write, caller.company(), now).await?;
    match counts.live >= LIVE_KEYS_MAX {
        true => Err(invalid(vec![FieldError::new(
            "expires_at",
            "too_many",
            full(),
        )])),
        false => Ok(()),
    }
}

fn full() -> String {
    format!("a company has at most {LIVE_KEYS_MAX} keys that work: revoke some first")
}

/// One that takes another one's place needs no room of its own.
async fn check_room_to_rotate(write: &mut Write, caller: &Caller) -> Result<(), Problem> {
    let counts = keys::counts(write, caller.company(), caller.now()).await?;
    standing::in_write(write, caller).await?;
    check_day(&counts)
}

fn check_day(counts: &KeyCounts) -> Result<(), Problem> {
    match counts.of_day >= NEW_KEYS_A_DAY_MAX {
        true => Err(Problem::of(
            CONFLICT,
            format!(
                "a company gets at most {NEW_KEYS_A_DAY_MAX} keys within a day: try again tomorrow"
            ),
        )),
        false => Ok(()),
    }
}

/// Nobody changes or revokes a key above their own role, and a seller's endpoint keys need the role that they need under their endpoint.
fn check_may_manage(caller: &Caller, key: &Key) -> Result<(), Problem> {
    check_endpoint_key(caller, key)?;
    if caller.grant().may_manage(key.grant.role) {
        return Ok(());
    }
    Err(insufficient_role(
        caller,
        key.grant.role,
        "this key has a higher role than yours",
    ))
}

/// An endpoint key's own role is 1, whatever it opens: who may manage it follows from where it came from. The keys of a company's purchases
/// are managed by whoever may purchase.
fn check_endpoint_key(caller: &Caller, key: &Key) -> Result<(), Problem> {
    let is_sellers = key.key_type == KeyType::Endpoint && key.purchase_id.is_none();
    if is_sellers && caller.role() < Role::DataEngineer {
        return Err(insufficient_role(
            caller,
            Role::DataEngineer,
            "endpoint keys are managed with role 3 or higher",
        ));
    }
    Ok(())
}

/// A key acts in its user's name: below role 4 nobody gets another one's, or makes more of it. An endpoint's keys act for nobody.
fn check_whose(caller: &Caller, key: &Key) -> Result<(), Problem> {
    let is_own = key.user_id.as_ref() == caller.user();
    if is_own || key.key_type == KeyType::Endpoint || caller.role() >= Role::Admin {
        return Ok(());
    }
    let message = match &key.user_id {
        Some(user) => format!(
            "this key acts for the user {user}: only that user changes or rotates it, or somebody with role 4; revoke it and create one of your own"
        ),
        None => "this key acts for no user: somebody with role 4 changes or rotates it; revoke it and create one of your own".to_owned(),
    };
    Err(insufficient_role(caller, Role::Admin, message))
}

fn insufficient_role(
    caller: &Caller,
    required: Role,
    message: impl Into<Cow<'static, str>>,
) -> Problem {
    Problem::of(INSUFFICIENT_ROLE, message)
        .detail("required_role", required.level())
        .detail("role", caller.role().level())
}

/// What a request for a grant is refused with.
fn refuse(error: GrantError) -> Problem {
    if error.is_escalation() {
        return Problem::of(ROLE_ESCALATION, error.to_string());
    }
    invalid(vec![wrong_grant(error)])
}

fn wrong_grant(error: GrantError) -> FieldError {
    let field = match error {
        GrantError::UnknownRole => "role_id",
        _ => "permissions",
    };
    FieldError::new(field, "invalid", error.to_string())
}

/// All that is wrong with the fields of a body.
pub(crate) fn invalid(errors: Vec<FieldError>) -> Problem {
    Problem::fields(VALIDATION_ERROR, errors)
}

pub(crate) fn check_rate_limit(rate_limit: i64, errors: &mut FieldErrors) -> i64 {
    if !(1..=KEY_LIMIT_MAX).contains(&rate_limit) {
        let message = format!("must be 1 to {KEY_LIMIT_MAX} requests an hour");
        errors.add("rate_limit", "invalid", message);
    }
    rate_limit
}

pub(crate) fn check_future(
    field: &str,
    at: Timestamp,
    now: Timestamp,
    errors: &mut FieldErrors,
) -> Timestamp {
    if at <= now {
        errors.add(field, "invalid", "must lie in the future");
    }
    at
}
