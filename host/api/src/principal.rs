//! Who calls, as the gate knows them: what they may do, in which company, and what they are counted against.
//!
//! A principal is what is known of a credential, once it is resolved. Nothing beyond [`Credential`] asks which kind of credential that was:
//! another kind is another arm of it, another arm of [`Actor`], and a function that makes a principal of it, as [`Principal::of_key`] does.

use crate::allotments::Allotment;
use crate::limiter::Buckets;
use crate::problem::{NextKey, Problem};
use crate::unread::Tally;
use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, EndpointId, SessionId, UserId};
use souk_domain::keys::{KeyState, KeyType};
use souk_domain::limits::USER_LIMIT;
use souk_domain::plans::Plan;
use souk_domain::roles::{Grant, Permissions};
use souk_domain::sessions::ends_at;
use souk_domain::time::Timestamp;
use souk_store::StoreError;
use souk_store::companies::CompanyStatus;
use souk_store::keys::{Key, KnownKey, ROTATED};
use souk_store::sessions::{KnownSession, Session};
use souk_store::users::UserStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

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
    /// What its company's plan allows, and what the company's requests of the month are counted in.
    pub(crate) allotted: (Plan, Arc<Allotment>),
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
    Key {
        key: Box<Key>,
        user_is_active: bool,
    },
    Session {
        session: Box<Session>,
        user_is_active: bool,
        /// When its use was noted last, in microseconds.
        noted: AtomicI64,
    },
}

/// How exactly it is known when a session was used: seldom enough that its requests cost the store nothing.
const NOTED_EVERY: Duration = Duration::from_secs(300);

impl Principal {
    pub(crate) fn of_key(
        known: KnownKey,
        allotment: Arc<Allotment>,
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
            allotted: (known.company_plan, allotment),
            buckets,
            unread,
            credential: Credential::Key {
                key: Box::new(key),
                user_is_active: known.user_is_active,
            },
        })
    }

    pub(crate) fn of_session(
        known: KnownSession,
        allotment: Arc<Allotment>,
        buckets: Arc<Buckets>,
        unread: Arc<Tally>,
    ) -> Principal {
        let session = known.session;
        Principal {
            actor: Actor::User(session.user_id.clone()),
            company: session.company_id.clone(),
            handle: known.company_handle,
            is_suspended: known.company_status == CompanyStatus::Suspended,
            user: Some(session.user_id.clone()),
            // An analyst writes what is his own, which the operations that take that see to.
            grant: Grant {
                role: known.role,
                permissions: Permissions::READ_WRITE,
            },
            scope: Scope::Everything,
            rate_limit: USER_LIMIT,
            allotted: (known.company_plan, allotment),
            buckets,
            unread,
            credential: Credential::Session {
                noted: AtomicI64::new(session.last_seen_at.micros()),
                user_is_active: known.user_status == UserStatus::Active,
                session: Box::new(session),
            },
        }
    }

    /// The credential's id, by which the store tells of changes of it.
    pub(crate) fn credential(&self) -> &str {
        match &self.credential {
            Credential::Key { key, .. } => key.id.as_str(),
            Credential::Session { session, .. } => session.id.as_str(),
        }
    }

    /// The session that it calls in, as it was when it was read.
    pub fn session(&self) -> Option<&Session> {
        match &self.credential {
            Credential::Session { session, .. } => Some(session),
            Credential::Key { .. } => None,
        }
    }

    /// The session whose use is to be noted now, since that was not done for a while. Whoever is told does it.
    pub(crate) fn unnoted(&self, now: Timestamp) -> Option<&SessionId> {
        let Credential::Session { session, noted, .. } = &self.credential else {
            return None;
        };
        let before = noted.load(Relaxed);
        let is_due = Timestamp::from_micros(before).after(NOTED_EVERY) <= now;
        let takes = || noted.compare_exchange(before, now.micros(), Relaxed, Relaxed);
        (is_due && takes().is_ok()).then_some(&session.id)
    }

    /// The key that it calls with, for whoever manages keys.
    pub fn key(&self) -> Option<&Key> {
        match &self.credential {
            Credential::Key { key, .. } => Some(key),
            Credential::Session { .. } => None,
        }
    }

    /// (c): why its credential cannot be used now, if so.
    pub fn refusal(&self, now: Timestamp) -> Option<Problem> {
        match &self.credential {
            Credential::Key {
                key,
                user_is_active,
            } => unusable(key, *user_is_active, now),
            Credential::Session {
                session,
                user_is_active,
                noted,
            } => {
                let seen = Timestamp::from_micros(noted.load(Relaxed));
                let is_over = ends_at(seen, session.expires_at) <= now;
                (is_over || !user_is_active).then(Problem::session_expired)
            }
        }
    }
}

pub(crate) fn unusable(key: &Key, user_is_active: bool, now: Timestamp) -> Option<Problem> {
    let expires_at = key.expires_at.map(|at| at.to_string());
    match key.state(now) {
        KeyState::Deactivated => Some(Problem::deactivated_key(
            key.id.as_str(),
            key.deactivated_at,
            next_key(key),
        )),
        KeyState::Expired => Some(Problem::invalid_key(
            "this API key has expired; create a new one",
            Some(key.id.as_str()),
            expires_at,
        )),
        KeyState::Active if !user_is_active => Some(Problem::deactivated_key(
            key.id.as_str(),
            None,
            NextKey::Created,
        )),
        KeyState::Active => None,
    }
}

/// Other reasons were written for the key's company, and are not told to whoever found the key.
fn next_key(key: &Key) -> NextKey {
    match &key.purchase_id {
        _ if key.is_of_archived_endpoint() => NextKey::Nowhere,
        Some(_) if key.reason_code.as_deref() == Some(ROTATED) => NextKey::Replaced,
        Some(_) => NextKey::Bought,
        None => NextKey::Created,
    }
}
