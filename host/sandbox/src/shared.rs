//! What every part of a sandbox may need, and that needs none of them: no pool, no session.

use std::{
    sync::{Arc, OnceLock, atomic::AtomicBool},
    time::Instant,
};

use wasmtime::Engine;

use crate::{
    cache::Cache,
    connector::Scope,
    errands::Errands,
    journal::Journals,
    lanes::Lanes,
    memory::MemoryAccount,
    options::Options,
    registry::Registry,
    tenants::{Tenant, Tenants},
    ticker::Ticker,
};

/// Is told whose engines another version serves now.
type Switched = Box<dyn Fn(&Scope) + Send + Sync>;

/// What every part may need.
pub(crate) struct Shared {
    pub engine: Engine,
    /// The pace of its clock.
    pub ticker: Arc<Ticker>,
    pub options: Options,
    pub cache: Cache,
    pub registry: Registry,
    pub tenants: Tenants,
    /// What guests have said.
    pub journals: Arc<Journals>,
    /// What the guests of all companies use together.
    pub host: Arc<Tenant>,
    /// Where guests compute that take long, and what else does.
    pub lanes: Lanes,
    /// The same for guests that are not trusted to end.
    pub outer_lanes: Lanes,
    /// Where the host itself computes for a company what would hold a worker: in pieces that cannot be suspended.
    pub computers: Lanes,
    /// Where connectors are compiled and linked.
    pub loaders: Lanes,
    /// Sessions that may be open for an errand.
    pub errands: Errands,
    /// Where sessions are opened when nobody's runtime is at hand.
    pub runtime: Option<tokio::runtime::Handle>,
    /// Told whenever another version serves a scope's engines.
    pub switched: OnceLock<Switched>,
    pub born: Instant,
    /// The host stops: nothing new is begun.
    pub closed: AtomicBool,
}

impl Shared {
    /// On whose account a connector is loaded.
    pub fn tenant_of(&self, scope: &Scope) -> Arc<Tenant> {
        match scope {
            Scope::Platform => self.host.clone(),
            Scope::Company(company) => self.tenants.of(company),
        }
    }

    /// What memory is taken from for a company.
    pub fn memory_account(&self, tenant: &Arc<Tenant>) -> MemoryAccount {
        let limits = &self.options.limits;
        MemoryAccount {
            company: tenant.clone(),
            company_max: limits.quota.memory_bytes,
            host: self.host.clone(),
            host_max: limits.guest_memory_bytes,
        }
    }

    /// Removes the compiled code of a component that was refused, unless a version here has the same bytes.
    pub fn forget_code(&self, digest: &str) {
        self.cache
            .forget(digest, |digest| self.registry.has_digest(digest));
    }

    /// Microseconds since the sandbox was made: fits an atomic.
    #[inline]
    pub fn micros(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.born).as_micros() as u64
    }
}
