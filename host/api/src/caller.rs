//! Who calls. Holding a [`Caller`] is the proof that the gate let the request pass: credential, company, role, permission and limits are checked.

use crate::describe::{Argument, Describe, Description, Incoming};
use crate::finish::Call;
use crate::limiter::{Limits, Quota};
use crate::mounted::Mounted;
use crate::principal::{Principal, Scope};
use crate::problem::Problem;
use crate::router::Names;
use crate::unread::Tally;
use crate::uploads::Place;
use souk_app::run::{Readers, Unread};
use souk_domain::actors::{Actor, STAFF};
use souk_domain::ids::{CompanyId, RequestId, UserId};
use souk_domain::roles::{Grant, Role};
use souk_domain::time::Timestamp;
use souk_store::Cached;
use souk_store::keys::Key;
use souk_store::sessions::Session;
use std::net::IpAddr;
use std::sync::Arc;

/// The caller of an operation that needs a key. Cheap to clone.
#[derive(Clone)]
pub struct Caller(Arc<Inner>);

struct Inner {
    principal: Cached<Principal>,
    /// Set when platform staff act in another company.
    foreign: Option<CompanyId>,
    operation: Arc<Mounted>,
    names: Names,
    request_id: RequestId,
    now: Timestamp,
    peer: IpAddr,
    /// Of an upload: held until the handler, which holds the caller, has ended, whether or not its client waits for that.
    _place: Option<Place>,
}

/// The clients of the company that pays.
impl Readers for Caller {
    fn room(&self, bytes: u64) -> Result<Box<dyn Send>, Unread> {
        Ok(Box::new(self.unread().room(bytes)?))
    }

    fn hold(&self, bytes: u64) -> Box<dyn Send> {
        Box::new(self.unread().take(bytes))
    }

    fn hold_ahead(&self, bytes: u64) -> Box<dyn Send> {
        Box::new(self.unread().take_ahead(bytes))
    }

    fn may_read_ahead(&self, bytes: u64) -> bool {
        self.unread().has_room_ahead(bytes)
    }
}

impl Caller {
    pub(crate) fn new(
        principal: Cached<Principal>,
        foreign: Option<CompanyId>,
        operation: Arc<Mounted>,
        names: Names,
        call: &Call,
        place: Option<Place>,
    ) -> Caller {
        Caller(Arc::new(Inner {
            principal,
            foreign,
            operation,
            names,
            request_id: call.request_id.clone(),
            now: call.now,
            peer: call.peer,
            _place: place,
        }))
    }

    /// The company that is acted in: the path's where the operation has one, else the caller's. Every store read takes it.
    pub fn company(&self) -> &CompanyId {
        self.0.foreign.as_ref().unwrap_or(&self.0.principal.company)
    }

    /// The handle of the caller's company.
    pub fn handle(&self) -> &str {
        &self.0.principal.handle
    }

    /// The caller's own company, which is the one that pays.
    pub fn payer(&self) -> &CompanyId {
        &self.0.principal.company
    }

    /// What the clients of the caller's own company have not read yet, and what it has under way.
    pub(crate) fn unread(&self) -> &Arc<Tally> {
        &self.0.principal.unread
    }

    /// Who acts, for records.
    pub fn actor(&self) -> &Actor {
        &self.0.principal.actor
    }

    /// Who acts, as the company that is acted in is told: of platform staff there no more than that it was staff.
    pub fn named(&self) -> &str {
        match self.0.foreign {
            Some(_) => STAFF,
            None => self.actor().as_str(),
        }
    }

    /// The key that is called with, for the operations on keys.
    pub fn key(&self) -> Option<&Key> {
        self.0.principal.key()
    }

    /// The session that is called in.
    pub fn session(&self) -> Option<&Session> {
        self.0.principal.session()
    }

    /// The user that acts, or whose key does.
    pub fn user(&self) -> Option<&UserId> {
        self.0.principal.user.as_ref()
    }

    pub fn grant(&self) -> Grant {
        self.0.principal.grant
    }

    pub fn role(&self) -> Role {
        self.grant().role
    }

    pub fn is_staff(&self) -> bool {
        self.role() == Role::SuperAdmin
    }

    pub fn scope(&self) -> &Scope {
        &self.0.principal.scope
    }

    /// What is left this hour of the caller's own limit (`key`), and of the operations that have one.
    pub(crate) fn hourly_limits(
        &self,
        limited: &[(&'static str, u32)],
    ) -> impl Iterator<Item = (&'static str, Quota)> {
        let (principal, second) = (&self.0.principal, self.now().seconds());
        let second = u32::try_from(second).unwrap_or(u32::MAX);
        let own = Limits {
            own: principal.rate_limit,
            operation: None,
        };
        let (own, _) = principal.buckets.peek(own, second);
        let operations = limited.iter().enumerate();
        let operations = operations.map(move |(place, (id, limit))| {
            let left = principal.buckets.peek_operation(place, *limit, second);
            (*id, left)
        });
        std::iter::once(("key", own)).chain(operations)
    }

    pub fn request_id(&self) -> &RequestId {
        &self.0.request_id
    }

    /// When the request came in.
    pub fn now(&self) -> Timestamp {
        self.0.now
    }

    pub fn peer(&self) -> IpAddr {
        self.0.peer
    }

    pub fn operation(&self) -> &Mounted {
        &self.0.operation
    }

    /// The parameters of the path that was called. Here, and not beside the caller: what is kept for a request grows with its fourth thing.
    pub(crate) fn names(&self) -> &Names {
        &self.0.names
    }
}

impl Describe for Caller {
    fn describe(into: &mut Description) {
        into.takes_caller = true;
    }
}

impl Argument for Caller {
    async fn take(incoming: &mut Incoming) -> Result<Self, Problem> {
        let caller = incoming.parts.extensions.get::<Caller>().cloned();
        caller.ok_or_else(|| Problem::internal("an operation without a key has no caller"))
    }
}
