//! Who calls, as the gate knows them: what they may do, and what they are counted against.

use crate::limiter::KeyBuckets;
use crate::problem::Problem;
use crate::unread::Tally;
use souk_domain::ids::CompanyId;
use souk_domain::keys::{KeyState, KeyType};
use souk_domain::roles::{Permissions, Role};
use souk_domain::time::Timestamp;
use souk_store::companies::CompanyStatus;
use souk_store::keys::{Key, KnownKey};
use std::sync::Arc;

/// A key as the cache keeps it: what the store knows of it, its buckets, and its company's unread answers.
pub struct Principal {
    known: KnownKey,
    buckets: Arc<KeyBuckets>,
    unread: Arc<Tally>,
}

impl Principal {
    pub(crate) fn new(known: KnownKey, buckets: Arc<KeyBuckets>, unread: Arc<Tally>) -> Principal {
        Principal {
            known,
            buckets,
            unread,
        }
    }

    pub fn key(&self) -> &Key {
        &self.known.key
    }

    pub fn is_suspended(&self) -> bool {
        self.known.company_status == CompanyStatus::Suspended
    }

    pub fn buckets(&self) -> &Arc<KeyBuckets> {
        &self.buckets
    }

    /// What its company's clients have not read yet.
    pub(crate) fn unread(&self) -> &Arc<Tally> {
        &self.unread
    }

    pub fn company(&self) -> &CompanyId {
        &self.key().company_id
    }

    /// The handle of its company.
    pub fn handle(&self) -> &str {
        &self.known.company_handle
    }

    pub fn key_type(&self) -> KeyType {
        self.key().key_type
    }

    pub fn role(&self) -> Role {
        self.key().grant.role
    }

    pub fn permissions(&self) -> Permissions {
        self.key().grant.permissions
    }

    pub fn rate_limit(&self) -> u32 {
        u32::try_from(self.key().rate_limit).unwrap_or(u32::MAX)
    }

    /// (c): why the key cannot be used now, if so.
    pub fn refusal(&self, now: Timestamp) -> Option<Problem> {
        let key = self.key();
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
            KeyState::Active if !self.known.user_is_active => {
                Some(Problem::deactivated_key(key.id.as_str(), None))
            }
            KeyState::Active => None,
        }
    }
}
