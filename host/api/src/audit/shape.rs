//! Lines of the audit log as their readers see them: a company's own values, and of others only that they did something.

use crate::AnyObject;
use crate::words;
use serde::Serialize;
use serde_json::{Map, Value};
use souk_domain::actors::{Actor, STAFF};
use souk_domain::ids::{CompanyId, KeyId, UserId};
use souk_domain::roles::Role;
use souk_domain::time::Timestamp;
use souk_store::StoreError;
use souk_store::audit::{ActedBy, Entry};
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct EntryOut {
    #[schema(value_type = String)]
    id: String,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Whose it is. Another company's when one of your keys changed something there (a refund to a buyer).
    #[schema(value_type = Option<String>)]
    company_id: Option<CompanyId>,
    actor: ActorOut,
    /// The operation's id in this document.
    operation: String,
    #[schema(value_type = words::AuditMethod)]
    method: String,
    path: String,
    #[schema(value_type = String)]
    request_id: String,
    /// `company`, `account`, `user`, `session`, `invitation`, `api_key`, `connection`, `file`, `connector`, `connector_choice`, `connector_canary`, `product`, `asset_details`, `endpoint_details`, `price`, `purchase`,
    /// `webhook`, `webhook_delivery`, `transaction`, `top_up`, `payout_method`, `payout` and others as they come.
    subject_type: String,
    subject_id: String,
    #[schema(value_type = words::AuditChange)]
    change: &'static str,
    /// The values before, of a change those that differ; secrets only as that they were there, and of the platform's staff that it was
    /// `staff`. `null` of what was created, and of what is another company's.
    #[schema(value_type = Option<AnyObject>)]
    before: Option<Map<String, Value>>,
    /// The values after, likewise.
    #[schema(value_type = Option<AnyObject>)]
    after: Option<Map<String, Value>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AuditActor)]
pub struct ActorOut {
    #[serde(rename = "type")]
    #[schema(value_type = words::ActorType)]
    kind: &'static str,
    /// The key's company; the platform's own when its staff acted.
    #[schema(value_type = Option<String>)]
    company_id: Option<CompanyId>,
    /// This and what follows: `null` of another company's keys.
    #[schema(value_type = Option<String>)]
    api_key_id: Option<KeyId>,
    #[schema(value_type = Option<String>)]
    user_id: Option<UserId>,
    role_id: Option<u8>,
    /// The client's IP address.
    address: Option<String>,
}

impl EntryOut {
    /// `reader`: the company that reads; `None` sees all.
    pub fn of(entry: Entry, reader: Option<&CompanyId>) -> Result<EntryOut, StoreError> {
        let is_own = reader.is_none_or(|reader| entry.company_id.as_ref() == Some(reader));
        let (mut before, mut after) = match is_own {
            true => (entry.before()?, entry.after()?),
            false => (None, None),
        };
        let is_actor = |by: &ActedBy| reader.is_none_or(|reader| *reader == by.company);
        if let Some(by) = entry.by.as_ref().filter(|by| !is_actor(by)) {
            for values in [&mut before, &mut after].into_iter().flatten() {
                hide(values, by);
            }
        }
        let company_id = entry.by.as_ref().map(|by| by.company.clone());
        let kind = match entry.by.as_ref().map(|by| &by.actor) {
            Some(Actor::Key(_)) => "key",
            Some(Actor::User(_)) => "user",
            // It changes nothing: only its runs are recorded under its name.
            Some(Actor::Alert(_)) => "alert",
            None => "none",
        };
        let actor = match entry.by.filter(is_actor) {
            Some(by) => ActorOut {
                kind,
                company_id,
                api_key_id: match by.actor {
                    Actor::Key(key) => Some(key),
                    Actor::User(_) => None,
                    Actor::Alert(_) => None,
                },
                user_id: by.user,
                role_id: Some(by.role),
                address: Some(entry.address),
            },
            None => ActorOut {
                kind,
                address: company_id.is_none().then_some(entry.address),
                company_id,
                api_key_id: None,
                user_id: None,
                role_id: None,
            },
        };
        Ok(EntryOut {
            id: entry.id,
            at: entry.at,
            company_id: entry.company_id,
            actor,
            operation: entry.operation,
            method: entry.method,
            path: entry.path,
            request_id: entry.request_id,
            subject_type: entry.subject_type,
            subject_id: entry.subject_id,
            change: entry.change.as_str(),
            before,
            after,
        })
    }
}

/// Values that name who acted, to a reader who does not see that.
fn hide(values: &mut Map<String, Value>, by: &ActedBy) {
    let ids = [
        Some(by.actor.as_str()),
        by.user.as_ref().map(UserId::as_str),
    ];
    for value in values.values_mut() {
        let names = value.as_str().is_some_and(|text| ids.contains(&Some(text)));
        if names {
            *value = match by.role == Role::SuperAdmin.level() {
                true => STAFF.into(),
                false => Value::Null,
            };
        }
    }
}
