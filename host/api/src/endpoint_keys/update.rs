use super::find_key;
use crate::keys::shape::KeyOut;
use crate::keys::{check_future, check_rate_limit, check_revival, invalid};
use crate::products::find;
use crate::{ApiState, Body, Caller, Data, Operation, Patch, Path, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::fields::FieldErrors;
use souk_domain::ids::{CompanyId, EndpointId, KeyId};
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::{companies, keys};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::patch(
    "update_endpoint_key",
    "/companies/{company_id}/endpoints/{endpoint_id}/keys/{api_key_id}",
)
.about("Endpoint keys", "Change a key's metadata")
.needs(Role::DataEngineer, Permission::Write);

#[derive(Deserialize, ToSchema)]
pub struct EndpointKeyPatch {
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255)]
    name: Option<Text<1, 255>>,
    /// `null` clears it.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Patch<Timestamp>,
    #[schema(minimum = 1, maximum = 1000000000)]
    rate_limit: Option<i64>,
    /// `null` clears it.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 1000)]
    description: Patch<Text<0, 1000>>,
}

/// Changes an endpoint key's metadata.
pub async fn update_endpoint_key(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, endpoint, id)): Path<(CompanyId, EndpointId, KeyId)>,
    Body(body): Body<EndpointKeyPatch>,
) -> Result<Data<KeyOut>, Problem> {
    let now = caller.now();
    let mut errors = FieldErrors::default();
    let rate_limit = body
        .rate_limit
        .map(|limit| check_rate_limit(limit, &mut errors));
    if let Patch::Value(at) = body.expires_at {
        check_future("expires_at", at, now, &mut errors);
    }
    errors.or(()).map_err(invalid)?;
    api.db()
        .write(async |write| {
            companies::lock(write, caller.company()).await?;
            find(write, caller.company(), &endpoint).await?;
            let mut key = find_key(write, &caller, &endpoint, &id).await?;
            let expires_at = match body.expires_at {
                Patch::Absent => key.expires_at,
                Patch::Null => None,
                Patch::Value(at) => Some(at),
            };
            check_revival(write, &caller, &key, expires_at).await?;
            key.expires_at = expires_at;
            match body.description {
                Patch::Absent => {}
                Patch::Null => key.description = None,
                Patch::Value(text) => key.description = Some(text.into_string()),
            }
            key.name = body.name.map_or(key.name, Text::into_string);
            key.rate_limit = rate_limit.unwrap_or(key.rate_limit);
            let key = keys::update(write, &key, now).await?;
            Ok(Data(KeyOut::masked(&key, now)))
        })
        .await
}
