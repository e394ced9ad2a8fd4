use super::shape::KeyOut;
use super::{check_may_manage, find};
use crate::{ApiState, Caller, CreatedOnce, Operation, OptionalBody, Path, Problem, Shape, schema};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::{CompanyId, KeyId};
use souk_domain::keys::{KeySecret, KeyState};
use souk_domain::roles::{Permission, Role};
use souk_store::keys::{self, Deactivation, NewKey};
use std::time::Duration;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("rotate_key", "/companies/{company_id}/api-keys/{api_key_id}/rotate")
    .about("API keys", "Replace a key by a new one")
    .notes("The new key has the name, role, permissions, limit and expiry of the old one, which is deactivated after the grace period.")
    .needs(Role::DataScientist, Permission::Write)
    .optional_body(schema::<RotateIn>)
    .returns(201, Shape::One(schema::<KeyOut>));

/// A day is enough to roll a new key out everywhere.
const GRACE_SECONDS_MAX: u64 = 86_400;

#[derive(Default, Deserialize, ToSchema)]
pub struct RotateIn {
    /// How long the old key goes on working, 0 to 86400. Default 0.
    #[serde(default)]
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
    let mut write = api.db().write().await?;
    let old = find(&mut write, &caller, &id).await?;
    check_may_manage(&caller, &old)?;
    if old.state(now) != KeyState::Active {
        return Err(Problem::state(
            old.state(now).as_str(),
            "only an active key can be rotated; create a new one",
        ));
    }
    let secret = KeySecret::generate(old.key_type);
    let new = NewKey {
        company_id: &old.company_id,
        user_id: old.user_id.as_ref(),
        endpoint_id: old.endpoint_id.as_ref(),
        purchase_id: old.purchase_id.as_ref(),
        name: &old.name,
        description: old.description.as_deref(),
        grant: old.grant,
        rate_limit: old.rate_limit,
        created_by: Some(caller.key_id().as_str()),
        expires_at: old.expires_at,
    };
    let key = keys::insert(&mut write, &new, &secret, now).await?;
    let deactivation = Deactivation {
        at: now.after(Duration::from_secs(body.grace_seconds)),
        by: Some(caller.key_id().as_str()),
        reason: None,
        reason_code: Some("rotated"),
    };
    keys::deactivate(&mut write, caller.company(), &id, &deactivation, now).await?;
    write.commit().await?;
    Ok(CreatedOnce {
        location: format!("/companies/{}/api-keys/{}", caller.company(), key.id),
        data: KeyOut::once(&key, &secret, now),
        kept: KeyOut::masked(&key, now),
    })
}
