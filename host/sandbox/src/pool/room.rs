//! Room for one more session: who lacks what, which idle session gives its place up, who is told when there is room again.
//! Start reading at [`Pool::permit`].

use std::sync::Arc;

use super::{Permit, Pool};
use crate::{
    connector::Need,
    fault::{Fault, MEMORY_EXHAUSTED},
};

/// What a company has none of left.
#[derive(Clone, Copy)]
pub(super) enum Short {
    Sessions,
    Memory,
}

/// What there is none left of for one more session.
pub(super) enum Lacks {
    /// As many sessions as this data connection may have.
    Own,
    Shared(Share),
}

/// What data connections share: an idle session of another one may give it back.
pub(super) enum Share {
    Memory,
    Company,
    Host,
}

/// Why no session can be opened now.
pub(super) enum Refused {
    /// Nothing can be closed for it.
    Full,
    /// An idle session is being closed for it.
    MakingRoom,
}

impl Pool {
    /// The right to open one more session. Where there is none left, an idle session of the same company makes
    /// room, or else somebody's.
    pub(super) fn permit(self: &Arc<Pool>) -> Result<Permit, Refused> {
        let lacks = match self.spare_permit() {
            Ok(permit) => return Ok(permit),
            // Its own gauge wakes those who wait for that.
            Err(Lacks::Own) => return Err(Refused::Full),
            Err(Lacks::Shared(lacks)) => lacks,
        };
        let pools = &self.pools;
        let others = |pool: &Pool| !std::ptr::eq(pool, Arc::as_ptr(self));
        let own = |pool: &Pool| others(pool) && self.is_sibling(pool);
        // Before anything is closed: its place must not be given back unnoticed.
        pools.await_room(self);
        let makes_room = match lacks {
            Share::Memory => pools.evict_one(|pool| own(pool) && pool.is_on_files()),
            Share::Company => pools.evict_one(own),
            Share::Host => pools.evict_one(own) || pools.evict_one(others),
        };
        Err(match makes_room {
            true => Refused::MakingRoom,
            false => Refused::Full,
        })
    }

    /// The same if nobody has to make room for it.
    pub(super) fn spare_permit(self: &Arc<Pool>) -> Result<Permit, Lacks> {
        let limits = &self.shared.options.limits;
        let Some(permit) = self.gauge.acquire(self.source.limits.sessions_max) else {
            return Err(Lacks::Own);
        };
        if self.is_short_of_memory() {
            permit.forget();
            return Err(Lacks::Shared(Share::Memory));
        }
        let Some(held) = self.tenant.take_session(limits.quota.sessions) else {
            permit.forget();
            return Err(Lacks::Shared(Share::Company));
        };
        match self.pools.acquire_total(&self.connector) {
            Some(total) => Ok(permit.with(total, held)),
            None => {
                permit.forget();
                Err(Lacks::Shared(Share::Host))
            }
        }
    }

    /// A session is over and has given back what it held: who waits for that has another try.
    pub fn made_room(&self) {
        for pool in self.pools.awaiting(self.tenant.id) {
            pool.give_out();
        }
    }

    pub(super) fn is_sibling(&self, pool: &Pool) -> bool {
        Arc::ptr_eq(&pool.tenant, &self.tenant)
    }

    /// File engines keep their page cache in their memory: they are what to close when memory is short.
    pub fn is_on_files(&self) -> bool {
        self.connector.need == Need::Directory
    }

    /// Whether one more session would likely find no memory: a running query should not be the one to notice.
    fn is_short_of_memory(&self) -> bool {
        let limits = &self.shared.options.limits;
        let (own, all) = (self.tenant.memory(), self.shared.host.memory());
        own >= limits.quota.memory_bytes / 4 * 3
            || (all >= limits.guest_memory_bytes / 4 * 3 && self.tenant.sessions() > 0)
    }

    /// What this company has none of left, if a session cannot be opened for want of it.
    pub(super) fn is_short(&self) -> Option<Short> {
        let limits = &self.shared.options.limits;
        if self.tenant.sessions() >= limits.quota.sessions {
            Some(Short::Sessions)
        } else if self.is_short_of_memory() {
            Some(Short::Memory)
        } else {
            None
        }
    }

    pub(super) fn shortage(&self, short: Short) -> Fault {
        let quota = &self.shared.options.limits.quota;
        match short {
            Short::Sessions => {
                let what = format!(
                    "{} sessions to this company's sources are open",
                    quota.sessions
                );
                self.tenant.exhausted("sessions_exhausted", what)
            }
            Short::Memory => {
                let what = "this company's connectors use their memory";
                self.tenant.exhausted(MEMORY_EXHAUSTED, what)
            }
        }
    }
}
