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

use crate::{Caller, Problem, Routes};
use souk_domain::ids::KeyId;
use souk_domain::limits::KEY_LIMIT_MAX;
use souk_domain::roles::GrantError;
use souk_domain::time::Timestamp;
use souk_store::AnyConnection;
use souk_store::keys::Key;

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

/// Nobody changes or revokes a key above their own role.
fn check_may_manage(caller: &Caller, key: &Key) -> Result<(), Problem> {
    if caller.grant().may_manage(key.grant.role) {
        return Ok(());
    }
    Err(
        Problem::forbidden("INSUFFICIENT_ROLE", "this key has a higher role than yours")
            .detail("required_role", key.grant.role.level())
            .detail("role", caller.role().level()),
    )
}

/// What a request for a grant is refused with.
fn refuse(error: GrantError) -> Problem {
    if error.is_escalation() {
        return Problem::forbidden("ROLE_ESCALATION", error.to_string());
    }
    let field = match error {
        GrantError::UnknownRole => "role_id",
        _ => "permissions",
    };
    Problem::invalid(field, error.to_string())
}

pub(crate) fn check_rate_limit(rate_limit: i64) -> Result<i64, Problem> {
    match rate_limit {
        1..=KEY_LIMIT_MAX => Ok(rate_limit),
        _ => Err(Problem::invalid(
            "rate_limit",
            format!("must be 1 to {KEY_LIMIT_MAX} requests an hour"),
        )),
    }
}

pub(crate) fn check_future(
    field: &str,
    at: Timestamp,
    now: Timestamp,
) -> Result<Timestamp, Problem> {
    if at > now {
        Ok(at)
    } else {
        Err(Problem::invalid(field, "must lie in the future"))
    }
}
