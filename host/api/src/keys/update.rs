use super::shape::KeyOut;
use super::{
    check_future, check_may_manage, check_rate_limit, check_revival, check_whose, find, invalid,
    refuse,
};
use crate::refusals::{KEY_VALUE_IMMUTABLE, ROLE_ESCALATION};
use crate::standing;
use crate::words;
use crate::{ApiState, Body, Caller, Data, Operation, Patch, Path, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;
use souk_domain::fields::FieldErrors;
use souk_domain::ids::{CompanyId, KeyId};
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::{companies, keys};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::patch("update_key", "/companies/{company_id}/api-keys/{api_key_id}")
    .alias("/companies/{company_id}/api_keys/{api_key_id}", "update_api_key")
    .about("API keys", "Change a key's metadata")
    .notes("The value, role and type of a key cannot be changed (400 `KEY_VALUE_IMMUTABLE`): create another key instead. A key of another user needs role 4.")
    .needs(Role::DataScientist, Permission::Write)
    .hourly(50)
    .refuses(&[KEY_VALUE_IMMUTABLE, ROLE_ESCALATION]);

#[derive(Deserialize, ToSchema)]
#[schema(as = ApiKeyPatch)]
pub struct KeyPatch {
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255)]
    name: Option<Text<1, 255>>,
    /// `null` clears it.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Patch<Timestamp>,
    #[schema(minimum = 1, maximum = 1000000000)]
    rate_limit: Option<i64>,
    #[schema(value_type = Option<Vec<words::Permission>>)]
    permissions: Option<Vec<Permission>>,
    /// `null` clears it.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 1000)]
    description: Patch<Text<0, 1000>>,
    #[schema(ignore)]
    key: Option<Value>,
    #[schema(ignore)]
    role_id: Option<Value>,
    #[schema(ignore)]
    key_type: Option<Value>,
}

/// Changes a key's metadata.
pub async fn update_key(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, KeyId)>,
    Body(body): Body<KeyPatch>,
) -> Result<Data<KeyOut>, Problem> {
    let immutable = [
        ("key", &body.key),
        ("role_id", &body.role_id),
        ("key_type", &body.key_type),
    ];
    let mut errors = FieldErrors::default();
    for (field, _) in immutable.iter().filter(|(_, value)| value.is_some()) {
        errors.add(*field, "immutable", "cannot be changed; create another key");
    }
    errors
        .or(())
        .map_err(|errors| Problem::fields(KEY_VALUE_IMMUTABLE, errors))?;
    let mut errors = FieldErrors::default();
    let rate_limit = body
        .rate_limit
        .map(|limit| check_rate_limit(limit, &mut errors));
    let expires_at = match body.expires_at {
        Patch::Absent => None,
        Patch::Null => Some(None),
        Patch::Value(at) => {
            let now = caller.now();
            Some(Some(check_future("expires_at", at, now, &mut errors)))
        }
    };
    errors.or(()).map_err(invalid)?;

    api.db()
        .write(async |write| {
            companies::lock(write, caller.company()).await?;
            standing::in_write(write, &caller).await?;
            let mut key = find(write, &caller, &id).await?;
            check_may_manage(&caller, &key)?;
            check_whose(&caller, &key)?;
            if let Some(permissions) = body.permissions {
                key.grant = key
                    .grant
                    .with_permissions(caller.grant(), permissions.into_iter().collect())
                    .map_err(refuse)?;
            }
            if let Some(name) = body.name {
                key.name = name.into_string();
            }
            match body.description {
                Patch::Absent => {}
                Patch::Null => key.description = None,
                Patch::Value(text) => key.description = Some(text.into_string()),
            }
            key.rate_limit = rate_limit.unwrap_or(key.rate_limit);
            let expires_at = expires_at.unwrap_or(key.expires_at);
            check_revival(write, &caller, &key, expires_at).await?;
            key.expires_at = expires_at;
            let key = keys::update(write, &key, caller.now()).await?;
            Ok(Data(KeyOut::masked(&key, caller.now())))
        })
        .await
}
