use super::{check_may_manage, find};
use crate::words;
use crate::{ApiState, Caller, Data, Operation, OptionalBody, Path, Problem, Text};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use souk_domain::ids::{CompanyId, KeyId};
use souk_domain::roles::{Permission, Role};
use souk_domain::time::Timestamp;
use souk_store::companies;
use souk_store::keys::{self, Deactivation, ROTATED};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post(
    "revoke_key",
    "/companies/{company_id}/api-keys/{api_key_id}/revoke",
)
.alias(
    "/companies/{company_id}/api_keys/{api_key_id}/revoke",
    "revoke_api_key",
)
.about("API keys", "Deactivate a key and record why")
.notes("A key that is deactivated already keeps its first reason.")
.needs(Role::DataScientist, Permission::Write)
.hourly(10);

#[derive(Default, Deserialize, ToSchema)]
pub struct RevokeIn {
    #[schema(value_type = Option<String>, max_length = 500)]
    reason: Option<Text<0, 500>>,
    reason_code: Option<ReasonCode>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    Compromised,
    Rotated,
    Unused,
    EmployeeLeft,
    Other,
}

impl ReasonCode {
    const fn name(self) -> &'static str {
        match self {
            ReasonCode::Compromised => "compromised",
            ReasonCode::Rotated => ROTATED,
            ReasonCode::Unused => "unused",
            ReasonCode::EmployeeLeft => "employee_left",
            ReasonCode::Other => "other",
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct Revoked {
    #[schema(value_type = String)]
    id: KeyId,
    name: String,
    key: String,
    #[schema(value_type = words::KeyStatus)]
    status: &'static str,
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Timestamp>,
    /// The key or user that did it, or `staff`: of the platform.
    revoked_by: Option<String>,
    revocation_reason: Option<String>,
    #[schema(value_type = Option<ReasonCode>)]
    reason_code: Option<String>,
}

/// Deactivates a key at once, with a reason.
pub async fn revoke_key(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, KeyId)>,
    OptionalBody(body): OptionalBody<RevokeIn>,
) -> Result<Data<Revoked>, Problem> {
    api.db()
        .write(async |write| {
            // What makes a key asks behind this lock whether its caller's still works.
            companies::lock(write, caller.company()).await?;
            let key = find(write, &caller, &id).await?;
            check_may_manage(&caller, &key)?;
            let deactivation = Deactivation {
                at: caller.now(),
                by: Some(caller.named()),
                reason: body.reason.as_deref(),
                reason_code: body.reason_code.map(ReasonCode::name),
            };
            let key = keys::deactivate(write, caller.company(), &id, &deactivation, caller.now())
                .await?
                .unwrap_or(key);
            Ok(Data(Revoked {
                key: key.masked(),
                status: key.state(caller.now()).as_str(),
                id: key.id,
                name: key.name,
                revoked_at: key.deactivated_at,
                revoked_by: key.revoked_by,
                revocation_reason: key.revocation_reason,
                reason_code: key.reason_code,
            }))
        })
        .await
}
