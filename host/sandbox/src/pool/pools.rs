//! All pools of this host, by data connection, and room for one more session among them: who lacks what, which idle session gives its place
//! up, who is told when there is room again ([`Pool::permit`]).

use std::{
    cell::RefCell,
    ops::Deref,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};
use souk_outbound::Trust;

use super::{Gauge, Part, Permit, Pool, Target, gauge::Total};
use crate::{
    connector::Need,
    fault::{Blame, Fault, FaultKind, MEMORY_EXHAUSTED},
    loaded::Connector,
    memory::MemoryRefused,
    shared::Shared,
    source::{Grant, Source},
    wire::{Account, Dialer, Origin},
};

/// Opens a session on this runtime and serves it to its end: the pools' way to the sessions, of which they know nothing else.
pub(crate) type Open = fn(&tokio::runtime::Handle, Arc<Pool>, Permit, u64);

/// Pools that a thread keeps at hand, before it lets go of all of them.
const FRONT_MAX: usize = 256;

/// Whoever was asked within this time is likely to be asked again soon.
const ASKED_OF_LATE_US: u64 = 2_000_000;

thread_local! {
    static FRONT: RefCell<Front> = RefCell::default();
}

/// A pool as one thread holds it, so that its holders there are counted on that thread's core.
pub(crate) struct AtHand(Arc<Pool>);

impl Deref for AtHand {
    type Target = Arc<Pool>;

    fn deref(&self) -> &Arc<Pool> {
        &self.0
    }
}

/// The pools that this thread has used lately. Looking for one among all, and counting who holds it, would write what other cores read for each
/// of their requests.
#[derive(Default)]
struct Front {
    /// Of whom they are, and since when.
    of: (u64, u64),
    by_connection: HashMap<String, Arc<AtHand>>,
}

pub(crate) struct Pools {
    pub shared: Arc<Shared>,
    /// Of this process.
    number: u64,
    /// Advances when pools are to be let go of.
    generation: AtomicU64,
    pub open: Open,
    /// By connection id; the pools of one id differ in company, revision, connector or what it is told.
    by_connection: RwLock<HashMap<String, Vec<Arc<Pool>>>>,
    sessions: Arc<AtomicUsize>,
    sessions_total: usize,
    /// Pools that found no place for a session, by company: woken when a session of the company ends.
    awaiting: Mutex<HashMap<u64, Vec<Weak<Pool>>>>,
    /// Companies in `awaiting`, readable without its lock.
    companies_awaiting: AtomicUsize,
}

impl Pools {
    pub fn new(shared: Arc<Shared>, sessions_total: usize, open: Open) -> Pools {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Pools {
            shared,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            generation: AtomicU64::new(0),
            open,
            by_connection: RwLock::default(),
            sessions: Arc::default(),
            sessions_total,
            awaiting: Mutex::default(),
            companies_awaiting: AtomicUsize::new(0),
        }
    }

    /// The pool that serves `source` now; made when there is none. While a canary takes a share of the calls, its pool for those.
    #[inline]
    pub fn get(self: &Arc<Pools>, source: &Arc<Source>) -> Result<Arc<AtHand>, Fault> {
        let pool = match self.at_hand(source) {
            Some(pool) => pool,
            None => self.keep_at_hand(match self.find(source, Part::AtWork) {
                Some(pool) => pool,
                None => self.make(source)?,
            }),
        };
        match pool.connector.beside.takes_next() {
            false => Ok(pool),
            true => Ok(self
                .canary(source)
                .map_or(pool, |pool| Arc::new(AtHand(pool)))),
        }
    }

    #[inline]
    fn at_hand(&self, source: &Source) -> Option<Arc<AtHand>> {
        FRONT.with_borrow(|front| {
            let is_of_now = front.of == (self.number, self.generation.load(Ordering::Acquire));
            let pool = is_of_now.then(|| front.by_connection.get(&source.connection));
            pool?
                .filter(|pool| serves(pool, source, Part::AtWork))
                .cloned()
        })
    }

    fn keep_at_hand(&self, pool: Arc<Pool>) -> Arc<AtHand> {
        let of = (self.number, self.generation.load(Ordering::Acquire));
        let (connection, pool) = (pool.source.connection.clone(), Arc::new(AtHand(pool)));
        let before = FRONT.with_borrow_mut(|front| {
            let mut before = HashMap::new();
            if front.of != of || front.by_connection.len() >= FRONT_MAX {
                front.of = of;
                before = std::mem::take(&mut front.by_connection);
            }
            (before, front.by_connection.insert(connection, pool.clone()))
        });
        // What is dropped with the last holder of a pool may look for one itself.
        drop(before);
        pool
    }

    #[inline]
    fn find(&self, source: &Source, part: Part) -> Option<Arc<Pool>> {
        let by_connection = self.by_connection.read();
        let mut pools = by_connection.get(&source.connection)?.iter();
        pools.find(|pool| serves(pool, source, part)).cloned()
    }

    fn make(self: &Arc<Pools>, source: &Arc<Source>) -> Result<Arc<Pool>, Fault> {
        let registry = &self.shared.registry;
        loop {
            let connector = registry
                .resolve(&source.company, &source.engine)
                .ok_or_else(|| {
                    Fault::new(
                        Blame::Host,
                        FaultKind::Unsupported,
                        format!("no connector serves the engine \"{}\" here", source.engine),
                    )
                    .code("engine_unknown")
                })?;
            let pool = self.put(source, connector, Part::AtWork)?;
            if self.is_of_now(&pool) {
                return Ok(pool);
            }
            // Another version was published meanwhile, and whoever followed found no pool of this one to retire.
            pool.retire();
        }
    }

    /// Whether its connector is the one that serves its engine now, or the canary beside it.
    fn is_of_now(&self, pool: &Pool) -> bool {
        let registry = &self.shared.registry;
        let (company, engine) = (&pool.source.company, &pool.source.engine);
        let now = match pool.part {
            Part::AtWork => registry.resolve(company, engine),
            Part::Canary => registry.canary(company, engine),
        };
        now.is_some_and(|connector| Arc::ptr_eq(&connector, &pool.connector))
    }

    /// The canary's pool, unless it is left alone there for now: whoever can be answered is. What it has met is counted all the same.
    #[cold]
    fn canary(self: &Arc<Pools>, source: &Arc<Source>) -> Option<Arc<Pool>> {
        let pool = self.find(source, Part::Canary).or_else(|| {
            let registry = &self.shared.registry;
            let connector = registry.canary(&source.company, &source.engine)?;
            let pool = self.put(source, connector, Part::Canary).ok()?;
            let is_of_now = self.is_of_now(&pool);
            if !is_of_now {
                pool.retire();
            }
            is_of_now.then_some(pool)
        });
        let now_us = self.shared.micros(Instant::now());
        pool.filter(|pool| !pool.breaker.is_closed(now_us))
    }

    /// Makes a pool in the place of those of the same part, unless somebody else just has.
    fn put(
        self: &Arc<Pools>,
        source: &Arc<Source>,
        connector: Arc<Connector>,
        part: Part,
    ) -> Result<Arc<Pool>, Fault> {
        let target = target(&self.shared, source, &connector)?;
        let mut by_connection = self.by_connection.write();
        let pools = by_connection.entry(source.connection.clone()).or_default();
        if let Some(pool) = pools.iter().find(|pool| serves(pool, source, part)) {
            return Ok(pool.clone());
        }
        let siblings = || {
            pools
                .iter()
                .filter(|pool| pool.source.company == source.company && pool.part == part)
        };
        let gauge = siblings()
            .next()
            .map_or_else(|| Arc::new(Gauge::default()), |pool| pool.gauge().clone());
        for pool in siblings() {
            pool.retire();
        }
        let pool = Pool::new(self, connector, source.clone(), (target, gauge), part);
        pools.push(pool.clone());
        Ok(pool)
    }

    /// A pool that nobody else uses, of a version that may not be active.
    pub fn alone(
        self: &Arc<Pools>,
        connector: Arc<Connector>,
        source: &Arc<Source>,
    ) -> Result<Arc<Pool>, Fault> {
        let target = target(&self.shared, source, &connector)?;
        let gauge = Arc::new(Gauge::default());
        Ok(Pool::new(
            self,
            connector,
            source.clone(),
            (target, gauge),
            Part::AtWork,
        ))
    }

    /// Retires the pools of one data connection.
    pub fn forget(&self, company: &str, connection: &str) {
        if let Some(pools) = self.by_connection.read().get(connection) {
            for pool in pools.iter().filter(|pool| pool.source.company == company) {
                pool.retire();
            }
        }
    }

    /// Retires every pool whose connector is not the one that serves its engine now, nor the canary beside it.
    pub fn follow(&self) {
        for pool in self.all() {
            if !self.is_of_now(&pool) {
                pool.retire();
            }
        }
    }

    pub fn all(&self) -> Vec<Arc<Pool>> {
        self.by_connection
            .read()
            .values()
            .flatten()
            .cloned()
            .collect()
    }

    pub fn any(&self, is: impl Fn(&Pool) -> bool) -> bool {
        let by_connection = self.by_connection.read();
        by_connection.values().flatten().any(|pool| is(pool))
    }

    /// The keeper's round.
    pub fn sweep(&self, now: Instant) {
        let mut forgettable = false;
        for pool in self.all() {
            forgettable |= pool.sweep(now);
            pool.kick();
        }
        if forgettable {
            // Threads let go of theirs when they look for one the next time; the next round finds those.
            self.generation.fetch_add(1, Ordering::Release);
            let mut by_connection = self.by_connection.write();
            by_connection.retain(|_, pools| {
                // Nobody else holds it: not a request on its way in, not a session.
                pools.retain(|pool| !(Arc::strong_count(pool) == 1 && pool.sweep(now)));
                !pools.is_empty()
            });
        }
    }

    pub fn acquire_total(&self, connector: &Arc<Connector>) -> Option<Total> {
        Total::acquire(&self.sessions, self.sessions_total, connector)
    }

    /// Closes one idle session of such a pool. Of one that nobody has asked of late if there is any, because another one would want its session back
    /// at once; of these on files first, because those hold most memory. Returns whether there was one, or may have been: it waits for no lock, since
    /// the caller holds that of a pool.
    pub fn evict_one(&self, of: impl Fn(&Pool) -> bool) -> bool {
        let Some(by_connection) = self.by_connection.try_read() else {
            return true;
        };
        let now_us = self.shared.micros(Instant::now());
        let pools = by_connection.values().flatten().filter(|pool| of(pool));
        let mut pools: Vec<_> = pools.map(|pool| (pool.missed(now_us), pool)).collect();
        pools.sort_unstable_by_key(|(missed, _)| *missed);
        pools.iter().any(|(_, pool)| pool.try_evict())
    }

    /// Wakes `pool` when a session of its company has ended. Sessions of others are for the keeper to notice.
    pub fn await_room(&self, pool: &Arc<Pool>) {
        let mut awaiting = self.awaiting.lock();
        let pools = awaiting.entry(pool.tenant.id).or_default();
        pools.retain(|pool| pool.strong_count() > 0);
        let this = Arc::downgrade(pool);
        if !pools.iter().any(|other| other.ptr_eq(&this)) {
            pools.push(this);
        }
        self.companies_awaiting
            .store(awaiting.len(), Ordering::Release);
    }

    /// Those of the company that await room, and do not any longer.
    pub fn awaiting(&self, company: u64) -> Vec<Arc<Pool>> {
        if self.companies_awaiting.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut awaiting = self.awaiting.lock();
        let pools = awaiting.remove(&company).unwrap_or_default();
        self.companies_awaiting
            .store(awaiting.len(), Ordering::Release);
        drop(awaiting);
        pools.iter().filter_map(Weak::upgrade).collect()
    }
}

/// A pool also serves those who hold an older revision of its source, and of the same revision those whose connector is told the same: what that is was
/// put together after the schema of the version at work, and who has it from the version before may come when the next one has taken over. A pool that is
/// made for him is not for those who come later.
#[inline]
fn serves(pool: &Pool, source: &Source, part: Part) -> bool {
    let own = &pool.source;
    pool.part == part
        && !pool.is_retired()
        && (own.revision > source.revision
            || (own.revision == source.revision && own.tells_the_same(source)))
        && own.company == source.company
        && own.engine == source.engine
}

/// Makes the target ready, or says why the grant or the settings cannot work.
fn target(shared: &Shared, source: &Source, connector: &Connector) -> Result<Target, Fault> {
    let configuration = |reason: String| {
        Fault::new(
            Blame::Source,
            FaultKind::Configuration,
            "the data connection's settings cannot work",
        )
        .detail(reason)
    };
    let (limits, egress) = (&shared.options.limits, &shared.options.egress);
    let tenant = shared.tenants.of(&source.company);
    let account = Account {
        memory: shared.memory_account(&tenant),
        tenant,
        sockets_max: limits.quota.sockets,
    };
    match (&source.grant, connector.need) {
        (
            Grant::Tcp {
                host,
                port,
                tls,
                ca_pem,
            },
            Need::Tcp,
        ) => Ok(Target::Tcp {
            dialer: Dialer {
                host: host.clone(),
                port: *port,
                egress: egress.clone(),
                connect_timeout: limits.connect_timeout,
                account,
            },
            trust: Trust::new(*tls, ca_pem.as_deref()).map_err(configuration)?,
        }),
        (
            Grant::Http {
                base_url,
                attach,
                ca_pem,
            },
            Need::Http,
        ) => {
            let (ca_pem, within) = (ca_pem.as_deref(), limits.connect_timeout);
            let origin = Origin::new(base_url, attach, ca_pem, egress, within, account);
            Ok(Target::Http(Arc::new(origin.map_err(configuration)?)))
        }
        (Grant::Directory(path), Need::Directory) => Ok(Target::Directory(path.clone())),
        (Grant::Lent(lender), Need::Directory) => Ok(Target::Lent(lender.clone())),
        (_, need) => Err(configuration(format!(
            "connector \"{}\" needs {need:?}, the connection grants something else",
            connector.name
        ))),
    }
}

/// What a company has none of left.
#[derive(Clone, Copy)]
pub(super) enum Short {
    Sessions,
    Memory,
    HostMemory,
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
    HostMemory,
    Company,
    Host,
}

/// Why no session can be opened now.
pub(super) enum Refused {
    /// Nothing can be closed for it.
    Full,
    /// An idle session is being closed for it, or one of its own connection will end.
    MakingRoom,
}

impl Pool {
    /// The right to open one more session. Where there is none left, an idle session of the same company makes
    /// room, or else somebody's.
    pub(super) fn permit(self: &Arc<Pool>) -> Result<Permit, Refused> {
        let pools = &self.pools;
        let others = |pool: &Pool| !std::ptr::eq(pool, Arc::as_ptr(self));
        let own = |pool: &Pool| others(pool) && self.is_sibling(pool);
        let on_files = |pool: &Pool| others(pool) && pool.is_on_files();
        let lacks = match self.spare_permit() {
            Ok(permit) => {
                // It is a company's first, which has what is left; the next company's will want some, too.
                if self.is_host_short_of_memory() {
                    pools.evict_one(on_files);
                }
                return Ok(permit);
            }
            // Others of the connection have them, or had a moment ago: who waits is woken by its gauge, or where they were not used, by the keeper.
            Err(Lacks::Own) => return Err(Refused::MakingRoom),
            Err(Lacks::Shared(lacks)) => lacks,
        };
        // Before anything is closed: its place must not be given back unnoticed.
        pools.await_room(self);
        let makes_room = match lacks {
            Share::Memory => pools.evict_one(|pool| own(pool) && pool.is_on_files()),
            Share::HostMemory => {
                pools.evict_one(|pool| own(pool) && pool.is_on_files()) || pools.evict_one(on_files)
            }
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
        let Some(permit) = self.gauge.acquire(self.sessions_max()) else {
            return Err(Lacks::Own);
        };
        if let Some(short) = self.lacks_memory() {
            permit.forget();
            return Err(Lacks::Shared(short));
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

    /// A canary's sessions come on top of the others, as many as its share: were they counted together, those of the version at work would
    /// leave it none.
    fn sessions_max(&self) -> usize {
        let max = self.source.limits.sessions_max;
        match self.part {
            Part::AtWork => max,
            Part::Canary => (max * usize::from(self.connector.share_percent())).div_ceil(100),
        }
    }

    pub(super) fn is_sibling(&self, pool: &Pool) -> bool {
        Arc::ptr_eq(&pool.tenant, &self.tenant)
    }

    /// How much an idle session of it would be missed, to compare it with others: whether it was asked of late, whether it is other than on files, and
    /// when it was asked last.
    fn missed(&self, now_us: u64) -> (bool, bool, u64) {
        let used_us = self.used_us.load(Ordering::Relaxed);
        let is_of_late = now_us.saturating_sub(used_us) < ASKED_OF_LATE_US;
        (is_of_late, !self.is_on_files(), used_us)
    }

    /// File engines keep their page cache in their memory: they are what to close when memory is short.
    pub fn is_on_files(&self) -> bool {
        self.connector.need == Need::Directory
    }

    /// Whether one more session would likely find no memory: a running query should not be the one to notice.
    fn lacks_memory(&self) -> Option<Share> {
        let quota = &self.shared.options.limits.quota;
        if self.tenant.memory() >= quota.memory_bytes / 4 * 3 {
            Some(Share::Memory)
        } else if self.is_host_short_of_memory() && self.tenant.sessions() > 0 {
            Some(Share::HostMemory)
        } else {
            None
        }
    }

    fn is_host_short_of_memory(&self) -> bool {
        let all = self.shared.host.memory();
        all >= self.shared.options.limits.guest_memory_bytes / 4 * 3
    }

    /// What this company has none of left, if a session cannot be opened for want of it.
    pub(super) fn is_short(&self) -> Option<Short> {
        let limits = &self.shared.options.limits;
        if self.tenant.sessions() >= limits.quota.sessions {
            Some(Short::Sessions)
        } else {
            self.lacks_memory().map(|share| match share {
                Share::HostMemory => Short::HostMemory,
                _ => Short::Memory,
            })
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
            Short::HostMemory => MemoryRefused::Host.fault(),
        }
    }
}
