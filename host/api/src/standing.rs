//! Whether whoever was let in still may, once their request has waited: for its body, or for its turn to write. A key that is revoked because it
//! was stolen, or a user who goes, must not act by what was begun before.
//!
//! Knows nothing of what is done. Nearly all requests come whole and are not asked for again; what hands out a key asks in its transaction all the same.

use crate::caller::Caller;
use crate::gate::{self, still_passes};
use crate::principal::unusable;
use crate::problem::Problem;
use crate::refusals::INSUFFICIENT_ROLE;
use crate::state::ApiState;
use http::HeaderMap;
use souk_domain::roles::{Grant, Permissions};
use souk_domain::time::Timestamp;
use souk_store::companies::CompanyStatus;
use souk_store::users::UserStatus;
use souk_store::{Write, keys, sessions};
use std::time::SystemTime;

/// Whether a caller whose body was waited for would still be let in, with all that it was let in with: its handler knows it as it came.
pub(crate) async fn after_body(
    state: &ApiState,
    headers: &HeaderMap,
    caller: &Caller,
) -> Result<(), Problem> {
    let now = Timestamp::from(SystemTime::now());
    let principal = still_passes(state, headers, now).await?;
    check_not_lowered(caller, principal.grant)
}

/// The same in a transaction that makes what outlives the caller. The caller's company is locked: whoever revokes, disables or removes does that, too.
pub(crate) async fn in_write(write: &mut Write, caller: &Caller) -> Result<(), Problem> {
    let (grant, company_status) = match (caller.key(), caller.session()) {
        (Some(key), _) => {
            let known = keys::known(write, caller.payer(), &key.id).await?;
            let known = known.ok_or_else(gate::gone)?;
            let now = Timestamp::from(SystemTime::now());
            if let Some(problem) = unusable(&known.key, known.user_is_active, now) {
                return Err(problem);
            }
            (known.key.grant, known.company_status)
        }
        (None, Some(session)) => {
            let known = sessions::known(write, caller.payer(), &session.id).await?;
            let known = known.filter(|known| known.user_status == UserStatus::Active);
            let known = known.ok_or_else(Problem::session_expired)?;
            let grant = Grant {
                role: known.role,
                permissions: Permissions::READ_WRITE,
            };
            (grant, known.company_status)
        }
        (None, None) => return Err(gate::gone()),
    };
    match company_status {
        CompanyStatus::Suspended => Err(gate::suspended()),
        CompanyStatus::Active => check_not_lowered(caller, grant),
    }
}

fn check_not_lowered(caller: &Caller, grant: Grant) -> Result<(), Problem> {
    let covered = grant.check_covers(caller.grant());
    covered.map_err(|_| {
        Problem::of(
            INSUFFICIENT_ROLE,
            "an administrator has lowered what you may do while this request was on its way; send it again, as far as you still may",
        )
        .detail("required_role", caller.role().level())
        .detail("role", grant.role.level())
    })
}
