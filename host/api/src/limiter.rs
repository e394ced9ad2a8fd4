//! Rate limits of this process: fixed windows of one hour, each anchored at the first request of its bucket.
//!
//! A caller's buckets hang on its cached record, so that a call costs a few atomic operations and no map. Knows no HTTP. Windows begin
//! empty with the host; hosts that share a store count each for itself.

use crate::unread::Tally;
use parking_lot::Mutex;
use souk_domain::actors::Actor;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

const WINDOW_SECONDS: u32 = 3600;
/// Keys that an address whose hour is used up may still have looked up in the store, a second: a valid key that is not in the cache
/// gets through, and a flood of made-up ones costs the store next to nothing.
const LOOKUPS_A_SECOND: u32 = 10;
const SHARDS: usize = 32;
/// Actors with live windows kept per shard before those that are over are swept: about 1 KB each.
const ACTORS_PER_SHARD: usize = 2_000;
/// Addresses kept per shard; when all windows are live, the rest share one bucket rather than memory.
const ADDRESSES_PER_SHARD: usize = 4_000;
/// What a key is counted for one by one (the products that it previews) in an hour: about 100 bytes each. A catalogue is browsed with far
/// fewer; who asks for more in an hour waits.
const EACH_MAX: usize = 1_000;
/// Calls that run a connector, in flight at once, per key.
pub const IN_FLIGHT_MAX: u32 = 128;
/// Calls that run a connector, in flight in this process, beyond which the hourly limit of keys is halved, and then quartered.
const LOAD_HIGH: u32 = 1_024;
const LOAD_FULL: u32 = 4_096;

/// What a bucket has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub limit: u32,
    pub remaining: u32,
    /// Epoch seconds.
    pub reset: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Key,
    Operation,
    Ip,
    /// What its plan allows a company in a month.
    Company,
}

impl Scope {
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Key => "key",
            Scope::Operation => "operation",
            Scope::Ip => "ip",
            Scope::Company => "company",
        }
    }
}

/// One window: the second it began in the upper half, calls so far in the lower.
#[derive(Default)]
pub struct Window<const SECONDS: u32 = WINDOW_SECONDS>(AtomicU64);

impl<const SECONDS: u32> Window<SECONDS> {
    fn take(&self, limit: u32, now: u32) -> Result<Quota, Quota> {
        let mut current = self.0.load(Relaxed);
        loop {
            let (started, used) = live(current, now, SECONDS);
            if used >= limit {
                return Err(quota(limit, started + SECONDS, used));
            }
            match self
                .0
                .compare_exchange_weak(current, pack(started, used + 1), Relaxed, Relaxed)
            {
                Ok(_) => return Ok(quota(limit, started + SECONDS, used + 1)),
                Err(other) => current = other,
            }
        }
    }

    fn peek(&self, limit: u32, now: u32) -> Quota {
        let (started, used) = live(self.0.load(Relaxed), now, SECONDS);
        quota(limit, started + SECONDS, used)
    }

    /// Undoes a [`Window::take`], if its window still runs.
    fn give_back(&self, now: u32) {
        let _ = self.0.fetch_update(Relaxed, Relaxed, |current| {
            let (started, used) = live(current, now, SECONDS);
            (used > 0).then(|| pack(started, used - 1))
        });
    }

    fn is_over(&self, now: u32) -> bool {
        live(self.0.load(Relaxed), now, SECONDS).1 == 0
    }
}

/// Start and count at `now`: a window that is over is a new one.
fn live(packed: u64, now: u32, seconds: u32) -> (u32, u32) {
    let (started, used) = ((packed >> 32) as u32, packed as u32);
    if used == 0 || now.wrapping_sub(started) >= seconds {
        (now, 0)
    } else {
        (started, used)
    }
}

fn pack(started: u32, used: u32) -> u64 {
    u64::from(started) << 32 | u64::from(used)
}

fn quota(limit: u32, reset: u32, used: u32) -> Quota {
    Quota {
        limit,
        remaining: limit.saturating_sub(used),
        reset,
    }
}

/// The buckets of one actor.
pub struct Buckets {
    own: Window,
    operations: Box<[Window]>,
    /// Of operations that limit each thing for itself, by the thing.
    each: Mutex<HashMap<Box<str>, Window>>,
    in_flight: AtomicU32,
}

/// The limits that a call meets: the caller's own, and the operation's with the place of its bucket.
#[derive(Clone, Copy)]
pub struct Limits {
    pub own: u32,
    pub operation: Option<(usize, u32)>,
}

impl Buckets {
    fn new(operations: usize) -> Buckets {
        Buckets {
            own: Window::default(),
            operations: (0..operations).map(|_| Window::default()).collect(),
            each: Mutex::default(),
            in_flight: AtomicU32::new(0),
        }
    }

    /// Spends one call of both buckets, or of neither. Both answers show the bucket that binds.
    pub fn take(&self, limits: Limits, now: u32) -> Result<(Quota, Scope), (Quota, Scope)> {
        let key = self
            .own
            .take(limits.own, now)
            .map_err(|quota| (quota, Scope::Key))?;
        let Some((place, limit)) = limits.operation else {
            return Ok((key, Scope::Key));
        };
        match self.operations[place].take(limit, now) {
            Ok(operation) => Ok(binding(key, operation)),
            Err(operation) => {
                self.own.give_back(now);
                Err((operation, Scope::Operation))
            }
        }
    }

    /// Spends one call for one of the things that are limited each for itself. The caller has spent one of the key, which a refusal gives
    /// back.
    pub fn take_each(&self, thing: &str, limit: u32, now: u32) -> Result<Quota, Quota> {
        let mut each = self.each.lock();
        if each.len() >= EACH_MAX && !each.contains_key(thing) {
            each.retain(|_, window| !window.is_over(now));
            if each.len() >= EACH_MAX {
                self.own.give_back(now);
                return Err(quota(limit, now, limit));
            }
        }
        let taken = each.entry(thing.into()).or_default().take(limit, now);
        if taken.is_err() {
            self.own.give_back(now);
        }
        taken
    }

    pub fn peek(&self, limits: Limits, now: u32) -> (Quota, Scope) {
        let key = self.own.peek(limits.own, now);
        match limits.operation {
            Some((place, limit)) => binding(key, self.operations[place].peek(limit, now)),
            None => (key, Scope::Key),
        }
    }

    /// What is left of each operation's own limit, by its place.
    pub fn peek_operation(&self, place: usize, limit: u32, now: u32) -> Quota {
        self.operations[place].peek(limit, now)
    }

    pub fn give_back(&self, limits: Limits, now: u32) {
        self.own.give_back(now);
        if let Some((place, _)) = limits.operation {
            self.operations[place].give_back(now);
        }
    }

    fn is_over(&self, now: u32) -> bool {
        self.own.is_over(now)
            && self.operations.iter().all(|window| window.is_over(now))
            && self.each.lock().values().all(|window| window.is_over(now))
    }
}

fn binding(key: Quota, operation: Quota) -> (Quota, Scope) {
    if key.remaining < operation.remaining {
        (key, Scope::Key)
    } else {
        (operation, Scope::Operation)
    }
}

/// A place among the calls in flight; dropping it frees it.
pub struct InFlight {
    buckets: Arc<Buckets>,
    company: Arc<Tally>,
    limiter: Arc<Limiter>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.buckets.in_flight.fetch_sub(1, Relaxed);
        self.company.end_call();
        self.limiter.load.fetch_sub(1, Relaxed);
    }
}

/// What is counted of an address.
#[derive(Default)]
struct Address {
    requests: Window,
    /// Attempts to sign in.
    sign_ins: Window,
    /// Beyond what its hour allows.
    lookups: Window<1>,
}

/// Parts with a lock each, so that threads seldom meet.
type Shards<K, V> = Box<[Mutex<HashMap<K, V>>]>;

pub struct Limiter {
    actors: Shards<Actor, Arc<Buckets>>,
    addresses: Shards<IpAddr, Address>,
    overflow: Address,
    hasher: RandomState,
    operations: usize,
    address_limit: u32,
    load: AtomicU32,
}

impl Limiter {
    /// `operations`: how many operations have a limit of their own.
    pub fn new(operations: usize, address_limit: u32) -> Limiter {
        Limiter {
            actors: (0..SHARDS).map(|_| Mutex::default()).collect(),
            addresses: (0..SHARDS).map(|_| Mutex::default()).collect(),
            overflow: Address::default(),
            hasher: RandomState::new(),
            operations,
            address_limit,
            load: AtomicU32::new(0),
        }
    }

    /// The buckets of whoever calls, for their cached record.
    pub fn buckets(&self, actor: &Actor, now: u32) -> Arc<Buckets> {
        let mut shard = self.actors[self.shard(actor)].lock();
        if shard.len() >= ACTORS_PER_SHARD {
            shard.retain(|_, buckets| Arc::strong_count(buckets) > 1 || !buckets.is_over(now));
        }
        shard
            .entry(actor.clone())
            .or_insert_with(|| Arc::new(Buckets::new(self.operations)))
            .clone()
    }

    /// Spends one call of an address.
    pub fn take_address(&self, address: IpAddr, now: u32) -> Result<Quota, Quota> {
        self.address(address, now, |counted| {
            counted.requests.take(self.address_limit, now)
        })
    }

    /// Spends one attempt to sign in of an address.
    pub fn take_sign_in(&self, address: IpAddr, limit: u32, now: u32) -> Result<Quota, Quota> {
        self.address(address, now, |counted| counted.sign_ins.take(limit, now))
    }

    /// Undoes a [`Limiter::take_address`].
    pub fn give_back_address(&self, address: IpAddr, now: u32) {
        self.address(address, now, |counted| counted.requests.give_back(now));
    }

    /// Whether an address whose hour is used up may have one more key looked up.
    pub fn may_look_up(&self, address: IpAddr, now: u32) -> bool {
        self.address(address, now, |counted| {
            counted.lookups.take(LOOKUPS_A_SECOND, now).is_ok()
        })
    }

    pub fn peek_address(&self, address: IpAddr, now: u32) -> Quota {
        let address = network(address);
        let shard = self.addresses[self.shard(&address)].lock();
        shard
            .get(&address)
            .unwrap_or(&Address::default())
            .requests
            .peek(self.address_limit, now)
    }

    fn address<T>(&self, address: IpAddr, now: u32, act: impl FnOnce(&Address) -> T) -> T {
        let address = network(address);
        let mut shard = self.addresses[self.shard(&address)].lock();
        if shard.len() >= ADDRESSES_PER_SHARD && !shard.contains_key(&address) {
            shard.retain(|_, counted| {
                !counted.requests.is_over(now) || !counted.sign_ins.is_over(now)
            });
            if shard.len() >= ADDRESSES_PER_SHARD {
                return act(&self.overflow);
            }
        }
        act(shard.entry(address).or_default())
    }

    /// A place among the calls in flight of a key, and of its company whatever its number of keys.
    pub fn enter(
        self: &Arc<Self>,
        buckets: &Arc<Buckets>,
        (company, calls_max): (&Arc<Tally>, u32),
    ) -> Option<InFlight> {
        if buckets.in_flight.fetch_add(1, Relaxed) >= IN_FLIGHT_MAX {
            buckets.in_flight.fetch_sub(1, Relaxed);
            return None;
        }
        if !company.begin_call(calls_max) {
            buckets.in_flight.fetch_sub(1, Relaxed);
            return None;
        }
        self.load.fetch_add(1, Relaxed);
        Some(InFlight {
            buckets: buckets.clone(),
            company: company.clone(),
            limiter: self.clone(),
        })
    }

    /// A key's hourly limit on calls that run a connector, lowered while this process has very many of them in flight.
    pub fn under_load(&self, limit: u32) -> u32 {
        match self.load.load(Relaxed) {
            load if load < LOAD_HIGH => limit,
            load if load < LOAD_FULL => (limit / 2).max(1),
            _ => (limit / 4).max(1),
        }
    }

    fn shard(&self, value: &impl Hash) -> usize {
        self.hasher.hash_one(value) as usize % SHARDS
    }
}

/// IPv6 callers own whole /64 networks: one bucket each.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let mut octets = address.octets();
            octets[8..].fill(0);
            IpAddr::V6(octets.into())
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unread::Unread;
    use souk_domain::ids::{CompanyId, KeyId};

    const NOW: u32 = 1_700_000_000;

    fn actor() -> Actor {
        KeyId::generate().into()
    }

    fn buckets() -> Buckets {
        Buckets::new(2)
    }

    /// The window opens with the first request, counts down and opens anew an hour later.
    #[test]
    fn a_window_is_anchored_at_its_first_request() {
        let window = Window::<WINDOW_SECONDS>::default();
        assert_eq!(
            window.take(2, NOW),
            Ok(Quota {
                limit: 2,
                remaining: 1,
                reset: NOW + 3600
            })
        );
        assert_eq!(
            window.take(2, NOW + 10),
            Ok(Quota {
                limit: 2,
                remaining: 0,
                reset: NOW + 3600
            })
        );
        assert_eq!(
            window.take(2, NOW + 3599),
            Err(Quota {
                limit: 2,
                remaining: 0,
                reset: NOW + 3600
            })
        );
        assert_eq!(
            window.take(2, NOW + 3600),
            Ok(Quota {
                limit: 2,
                remaining: 1,
                reset: NOW + 7200
            })
        );
    }

    /// A refusal by one bucket does not spend the other.
    #[test]
    fn a_refused_call_spends_nothing() {
        let buckets = buckets();
        let limits = Limits {
            own: 5,
            operation: Some((1, 1)),
        };
        assert_eq!(
            buckets.take(limits, NOW).map(|(_, scope)| scope),
            Ok(Scope::Operation)
        );
        for _ in 0..3 {
            assert_eq!(
                buckets.take(limits, NOW).map_err(|(_, scope)| scope),
                Err(Scope::Operation)
            );
        }
        assert_eq!(
            buckets
                .peek(
                    Limits {
                        own: 5,
                        operation: None
                    },
                    NOW
                )
                .0
                .remaining,
            4
        );
    }

    /// The headers show the bucket with the fewest left; the operation's on a tie.
    #[test]
    fn the_binding_bucket_is_shown() {
        let buckets = buckets();
        assert_eq!(
            buckets
                .peek(
                    Limits {
                        own: 5,
                        operation: Some((0, 5))
                    },
                    NOW
                )
                .1,
            Scope::Operation
        );
        assert_eq!(
            buckets
                .peek(
                    Limits {
                        own: 4,
                        operation: Some((0, 5))
                    },
                    NOW
                )
                .1,
            Scope::Key
        );
    }

    /// Each thing has its own window, and there are not more of them than a key may be counted for; a refusal does not spend the key.
    #[test]
    fn things_are_limited_each_for_itself() {
        let buckets = buckets();
        let limits = Limits {
            own: 10,
            operation: None,
        };
        let each = |thing: &str, now| {
            buckets.take(limits, now).unwrap();
            buckets.take_each(thing, 1, now)
        };
        assert!(each("a", NOW).is_ok());
        for _ in 0..20 {
            assert_eq!(each("a", NOW).unwrap_err().remaining, 0);
        }
        assert!(each("b", NOW).is_ok());
        assert_eq!(buckets.peek(limits, NOW).0.remaining, 8);
        for number in 0..2 * EACH_MAX {
            let _ = buckets.take_each(&number.to_string(), 1, NOW);
        }
        assert_eq!(buckets.each.lock().len(), EACH_MAX);
        assert!(each("late", NOW).is_err());
        assert!(each("late", NOW + WINDOW_SECONDS).is_ok());
    }

    /// Concurrent callers never get more than the limit.
    #[test]
    fn a_limit_holds_under_contention() {
        let buckets = buckets();
        let granted = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        if buckets
                            .take(
                                Limits {
                                    own: 700,
                                    operation: None,
                                },
                                NOW,
                            )
                            .is_ok()
                        {
                            granted.fetch_add(1, Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(granted.load(Relaxed), 700);
    }

    /// All addresses of an IPv6 network share a bucket, and a mapped IPv4 address is itself.
    #[test]
    fn addresses_are_grouped_as_they_are_assigned() {
        let limiter = Limiter::new(0, 2);
        let of = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(limiter.take_address(of("2001:db8::1"), NOW).is_ok());
        assert!(limiter.take_address(of("2001:db8::2"), NOW).is_ok());
        assert!(limiter.take_address(of("2001:db8::3"), NOW).is_err());
        assert!(limiter.take_address(of("192.0.2.1"), NOW).is_ok());
        assert_eq!(
            limiter.peek_address(of("::ffff:192.0.2.1"), NOW).remaining,
            1
        );
    }

    /// An address whose hour is used up still has a few keys a second looked up, and gets back what a known key cost it.
    #[test]
    fn lookups_beyond_the_hour_are_few() {
        let limiter = Limiter::new(0, 1);
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        assert!(limiter.take_address(address, NOW).is_ok());
        assert!(limiter.take_address(address, NOW).is_err());
        for second in [NOW, NOW + 1] {
            for _ in 0..LOOKUPS_A_SECOND {
                assert!(limiter.may_look_up(address, second));
            }
            assert!(!limiter.may_look_up(address, second));
        }
        limiter.give_back_address(address, NOW + 1);
        assert!(limiter.take_address(address, NOW + 1).is_ok());
    }

    /// The 129th call in flight is refused until one ends.
    #[test]
    fn calls_in_flight_are_bounded_per_key() {
        let limiter = Arc::new(Limiter::new(0, 1));
        let buckets = limiter.buckets(&actor(), NOW);
        let company = Unread::default().company(&CompanyId::generate());
        let mut held: Vec<_> = (0..IN_FLIGHT_MAX)
            .map(|_| limiter.enter(&buckets, (&company, 1_000)).unwrap())
            .collect();
        assert!(limiter.enter(&buckets, (&company, 1_000)).is_none());
        held.pop();
        assert!(limiter.enter(&buckets, (&company, 1_000)).is_some());
    }

    /// Another key of the same company does not find room that there is not, and leaves none taken when it is refused.
    #[test]
    fn calls_in_flight_are_bounded_per_company() {
        let limiter = Arc::new(Limiter::new(0, 1));
        let companies = Unread::default();
        let [one, other] = [(); 2].map(|()| companies.company(&CompanyId::generate()));
        let [first, second] = [(); 2].map(|()| limiter.buckets(&actor(), NOW));
        let mut held: Vec<_> = (0..3)
            .map(|_| limiter.enter(&first, (&one, 3)).unwrap())
            .collect();
        for _ in 0..2 * IN_FLIGHT_MAX {
            assert!(limiter.enter(&second, (&one, 3)).is_none());
        }
        assert!(limiter.enter(&second, (&other, 3)).is_some());
        held.pop();
        assert!(limiter.enter(&second, (&one, 3)).is_some());
    }
}
