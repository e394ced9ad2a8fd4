//! Who calls, as the gate knows them: what they may do, in which company, and what they are counted against.
//!
//! A principal is what is known of a credential, once it is resolved. Nothing beyond [`Credential`] asks which kind of credential that was:
//! another kind is another arm of it, another arm of [`Actor`], and a function that makes a principal of it, as [`Principal::of_key`] does.

use crate::limiter::Buckets;
use crate::problem::Problem;
use crate::unread::Tally;
use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, EndpointId, UserId};
use souk_domain::keys::{KeyState, KeyType};
use souk_domain::roles::Grant;
use souk_domain::time::Timestamp;
use souk_store::StoreError;
use souk_store::companies::CompanyStatus;
use souk_store::keys::{Key, KnownKey};
use std::sync::Arc;

/// As the cache keeps it.
pub struct Principal {
    /// Who acts, for records.
    pub actor: Actor,
    pub company: CompanyId,
    /// The handle of the company.
    pub handle: String,
    /// The company may do nothing at present.
    pub is_suspended: bool,
    /// The user that acts, or whose key does.
    pub user: Option<UserId>,
    pub grant: Grant,
    pub scope: Scope,
    /// Requests an hour.
    pub rate_limit: u32,
    /// What its requests are counted in.
    pub(crate) buckets: Arc<Buckets>,
    /// What its company's clients have not read yet.
    pub(crate) unread: Arc<Tally>,
    credential: Credential,
}

/// How much of its company's business a principal may see at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Whatever its grant allows.
    Everything,
    /// The rows of one endpoint, through the customer data route.
    Endpoint(EndpointId),
}

/// What a principal is known by. It may end before the cache forgets it.
enum Credential {
    Key { key: Box<Key>, user_is_active: bool },
}

impl Principal {
    pub(crate) fn of_key(
        known: KnownKey,
        buckets: Arc<Buckets>,
        unread: Arc<Tally>,
    ) -> Result<Principal, StoreError> {
        let key = known.key;
        let scope = match (key.key_type, &key.endpoint_id) {
            (KeyType::Analytics, _) => Scope::Everything,
            (KeyType::Endpoint, Some(endpoint)) => Scope::Endpoint(endpoint.clone()),
            (KeyType::Endpoint, None) => {
                let message = format!("the endpoint key {} reads no endpoint", key.id);
                return Err(StoreError::Corrupt(message));
            }
        };
        Ok(Principal {
            actor: Actor::Key(key.id.clone()),
            company: key.company_id.clone(),
            handle: known.company_handle,
            is_suspended: known.company_status == CompanyStatus::Suspended,
            user: key.user_id.clone(),
            grant: key.grant,
            scope,
            rate_limit: u32::try_from(key.rate_limit).unwrap_or(u32::MAX),
            buckets,
            unread,
            credential: Credential::Key {
                key: Box::new(key),
                user_is_active: known.user_is_active,
            },
        })
    }

    /// The key that it calls with, for whoever manages keys.
    pub fn key(&self) -> Option<&Key> {
        match &self.credential {
            Credential::Key { key, .. } => Some(key),
        }
    }

    /// (c): why its credential cannot be used now, if so.
    pub fn refusal(&self, now: Timestamp) -> Option<Problem> {
        match &self.credential {
            Credential::Key {
                key,
                user_is_active,
            } => unusable(key, *user_is_active, now),
        }
    }
}

fn unusable(key: &Key, user_is_active: bool, now: Timestamp) -> Option<Problem> {
    let expires_at = key.expires_at.map(|at| at.to_string());
    match key.state(now) {
        KeyState::Deactivated => Some(Problem::deactivated_key(
            key.id.as_str(),
            key.deactivated_at,
        )),
        KeyState::Expired => Some(Problem::invalid_key(
            "this API key has expired; create a new one",
            Some(key.id.as_str()),
            expires_at,
        )),
        KeyState::Active if !user_is_active => {
            Some(Problem::deactivated_key(key.id.as_str(), None))
        }
        KeyState::Active => None,
    }
}
