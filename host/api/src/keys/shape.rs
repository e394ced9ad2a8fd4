//! A key as clients see it: masked, except in the one answer that creates it.

use super::revoke::ReasonCode;
use crate::words;
use serde::Serialize;
use souk_domain::ids::{CompanyId, EndpointId, KeyId};
use souk_domain::keys::KeySecret;
use souk_domain::time::Timestamp;
use souk_store::keys::Key;
use utoipa::ToSchema;

#[derive(Clone, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub struct KeyOut {
    #[schema(value_type = String)]
    pub id: KeyId,
    /// The same as `id`.
    #[schema(value_type = String)]
    pub api_key_id: KeyId,
    #[schema(value_type = String)]
    pub company_id: CompanyId,
    pub name: String,
    /// Masked: `sk_****` or `ep_****` and the last four characters; in full in the answer that creates the key, and never again.
    pub key: String,
    #[schema(value_type = words::KeyType)]
    pub key_type: &'static str,
    /// The one endpoint of an endpoint key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub endpoint_id: Option<EndpointId>,
    /// Of an endpoint key: who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<words::KeySource>)]
    pub source: Option<&'static str>,
    #[schema(maximum = 5, minimum = 1)]
    pub role_id: u8,
    #[schema(value_type = words::KeyStatus)]
    pub status: &'static str,
    /// Requests an hour over all routes.
    #[schema(minimum = 0)]
    pub rate_limit: i64,
    #[schema(value_type = Vec<words::Permission>)]
    pub permissions: Vec<&'static str>,
    pub description: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used: Option<Timestamp>,
    #[schema(minimum = 0)]
    pub usage_count: i64,
    /// The key or user that created it, or `staff`: of the platform.
    pub created_by: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Timestamp>,
    /// The key or user that did it, or `staff`: of the platform. `null` where another company did.
    pub revoked_by: Option<String>,
    pub revocation_reason: Option<String>,
    #[schema(value_type = Option<ReasonCode>)]
    pub reason_code: Option<String>,
}

impl KeyOut {
    pub fn masked(key: &Key, now: Timestamp) -> KeyOut {
        let source = key.endpoint_id.as_ref().map(|_| {
            if key.purchase_id.is_some() {
                "marketplace"
            } else {
                "seller"
            }
        });
        KeyOut {
            id: key.id.clone(),
            api_key_id: key.id.clone(),
            company_id: key.company_id.clone(),
            name: key.name.clone(),
            key: key.masked(),
            key_type: key.key_type.as_str(),
            endpoint_id: key.endpoint_id.clone(),
            source,
            role_id: key.grant.role.level(),
            status: key.state(now).as_str(),
            rate_limit: key.rate_limit,
            permissions: key.grant.permissions.names(),
            description: key.description.clone(),
            expires_at: key.expires_at,
            created_at: key.created_at,
            updated_at: key.updated_at,
            last_used: key.last_used_at,
            usage_count: key.usage_count,
            created_by: key.created_by.clone(),
            revoked_at: key.deactivated_at,
            revoked_by: key.revoked_by.clone(),
            revocation_reason: key.revocation_reason.clone(),
            reason_code: key.reason_code.clone(),
        }
    }

    /// With the full key: for the answer that creates it.
    pub fn once(key: &Key, secret: &KeySecret, now: Timestamp) -> KeyOut {
        KeyOut {
            key: secret.expose().to_owned(),
            ..KeyOut::masked(key, now)
        }
    }
}
