use super::shape::KeyOut;
use super::{check_endpoint_key, check_room, check_room_to_rotate, check_whose, find, refuse};
use crate::refusals::{CONFLICT, INVALID_STATE, PURCHASE_NOT_FOUND, ROLE_ESCALATION};
use crate::{ApiState, Caller, CreatedOnce, Operation, OptionalBody, Path, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::{CompanyId, KeyId, UserId};
use souk_domain::keys::{KeySecret, KeyState};
use souk_domain::roles::{Permission, Role};
use souk_store::keys::{self, Deactivation, Key, NewKey, ROTATED};
use souk_store::{Write, companies, purchases};
use std::time::Duration;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("rotate_key", "/companies/{company_id}/api-keys/{api_key_id}/rotate")
    .alias("/companies/{company_id}/api_keys/{api_key_id}/rotate", "rotate_api_key")
    .about("API keys", "Replace a key by a new one")
    .notes(
        "The new key has the name, role, permissions, limit and expiry of the old one, which is deactivated after the grace period. It acts for the \
         caller's user, whoever the old one acted for, and ends with that user. Nobody gets more than they have: the caller needs that role and those \
         permissions (403 `ROLE_ESCALATION`), and role 4 for a key of another user (403 `INSUFFICIENT_ROLE`). Endpoint keys need role 3, those \
         of purchases role 2; the new key of a purchase takes the old one's place there.",
    )
    .needs(Role::DataScientist, Permission::Write)
    .hourly(10)
    .refuses(&[ROLE_ESCALATION, INVALID_STATE, PURCHASE_NOT_FOUND, CONFLICT]);

/// A day is enough to roll a new key out everywhere.
const GRACE_SECONDS_MAX: u64 = 86_400;

#[derive(Default, Deserialize, ToSchema)]
pub struct RotateIn {
    /// How long the old key goes on working, 0 to 86400. Default 0.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 86400)]
    grace_seconds: u64,
}

/// Replaces a key. The new secret appears in this response only.
pub async fn rotate_key(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, KeyId)>,
    OptionalBody(body): OptionalBody<RotateIn>,
) -> Result<CreatedOnce<KeyOut>, Problem> {
    if body.grace_seconds > GRACE_SECONDS_MAX {
        return Err(Problem::invalid(
            "grace_seconds",
            format!("must be 0 to {GRACE_SECONDS_MAX}"),
        ));
    }
    let now = caller.now();
    api.db()
        .write(async |write| {
            let old = held(write, &caller, &id).await?;
            check_endpoint_key(&caller, &old)?;
            check_whose(&caller, &old)?;
            caller.grant().check_covers(old.grant).map_err(refuse)?;
            if old.state(now) != KeyState::Active {
                return Err(Problem::state(
                    old.state(now).as_str(),
                    "only an active key can be rotated; create a new one",
                ));
            }
            check_is_latest(write, &caller, &old).await?;
            // One that goes on for a while was replaced already, and its new key is one more.
            match old.deactivated_at {
                Some(_) => check_room(write, &caller).await?,
                None => check_room_to_rotate(write, &caller).await?,
            }
            let secret = KeySecret::generate(old.key_type);
            let new = NewKey {
                company_id: &old.company_id,
                user_id: whose(&caller, &old),
                endpoint_id: old.endpoint_id.as_ref(),
                purchase_id: old.purchase_id.as_ref(),
                name: &old.name,
                description: old.description.as_deref(),
                grant: old.grant,
                rate_limit: old.rate_limit,
                created_by: Some(caller.named()),
                expires_at: old.expires_at,
            };
            let key = keys::insert(write, &new, &secret, now).await?;
            if let Some(purchase) = &old.purchase_id {
                purchases::set_key(write, purchase, &key.id).await?;
            }
            let deactivation = Deactivation {
                at: now.after(Duration::from_secs(body.grace_seconds)),
                by: Some(caller.named()),
                reason: None,
                reason_code: Some(ROTATED),
            };
            keys::deactivate(write, caller.company(), &id, &deactivation, now).await?;
            Ok(CreatedOnce {
                location: format!("/companies/{}/api-keys/{}", caller.company(), key.id),
                data: KeyOut::once(&key, &secret, now),
                kept: KeyOut::masked(&key, now),
            })
        })
        .await
}

/// The key, which nobody else rotates or revokes until `write` ends, nor removes its user; another host may have while this one waited.
async fn held(write: &mut Write, caller: &Caller, id: &KeyId) -> Result<Key, Problem> {
    let key = find(write, caller, id).await?;
    // The purchase first, as whoever gives it a new key does.
    if let Some(purchase) = &key.purchase_id {
        purchases::lock(write, caller.company(), purchase).await?;
    }
    companies::lock(write, caller.company()).await?;
    find(write, caller, id).await
}

/// Who gets to see a key answers for it, and loses it with their user. A purchase's is its company's, and staff in another company leave a key to
/// whom it was.
fn whose<'a>(caller: &'a Caller, old: &'a Key) -> Option<&'a UserId> {
    match old.purchase_id.is_some() || caller.company() != caller.payer() {
        true => old.user_id.as_ref(),
        false => caller.user(),
    }
}

/// A purchase has one key: one that was rotated and lives on for its grace period is not rotated again.
async fn check_is_latest(write: &mut Write, caller: &Caller, old: &Key) -> Result<(), Problem> {
    let Some(purchase) = &old.purchase_id else {
        return Ok(());
    };
    let purchase = purchases::get(write, caller.company(), purchase)
        .await?
        .ok_or_else(|| Problem::not_found("purchase", purchase.as_str()))?;
    match purchase.endpoint_key_id {
        Some(key) if key != old.id => Err(Problem::state(
            "rotated",
            "this key was replaced already; rotate the key that its purchase shows",
        )),
        _ => Ok(()),
    }
}
