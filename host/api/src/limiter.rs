//! Rate limits: fixed windows of one hour, each anchored at the first request of its bucket.
//!
//! A caller's buckets hang on its cached record, so that a call costs a few atomic operations and no map. Knows no HTTP. Without
//! [`Shared`] windows begin empty with the host, and hosts that share a store count each for itself.

mod bucket;
mod buckets;
mod shared;
mod window;

use crate::unread::Tally;
use bucket::Bucket;
use parking_lot::Mutex;
use souk_domain::actors::Actor;
use souk_domain::ids::CompanyId;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use window::{WINDOW_SECONDS, Window};

pub use buckets::{Buckets, IN_FLIGHT_MAX, Limits, Scope};
pub use shared::Shared;
pub use window::Quota;

/// Keys that an address whose hour is used up may still have looked up in the store, a second: a valid key that is not in the cache
/// gets through, and a flood of made-up ones costs the store next to nothing.
const LOOKUPS_A_SECOND: u32 = 10;
const SHARDS: usize = 32;
/// Actors with live windows kept per shard before those that are over are swept, as they are every hour: about 1 KB each.
const ACTORS_PER_SHARD: usize = 2_000;
/// Addresses kept per shard: about 250 bytes each.
const ADDRESSES_PER_SHARD: usize = 4_000;
/// Those that leave at once when there is no room for one more: all are looked at for it, some 0.1 ms, and not again for as many new ones.
const ADDRESSES_LEAVING: usize = 1_000;
/// Windows of companies kept before those that are over are swept: about 150 bytes each.
const COMPANIES_MAX: usize = 10_000;
/// Eighths of a company's places for calls that run a connector, from which on the hourly limit of its keys is halved, and then quartered.
const LOAD_HIGH: u32 = 4;
const LOAD_FULL: u32 = 7;

/// What is counted of an address.
#[derive(Default)]
struct Address {
    requests: Bucket,
    /// Attempts to sign in.
    sign_ins: Bucket,
    /// Beyond what its hour allows.
    lookups: Window<1>,
}

impl Address {
    fn is_over(&self, now: u32) -> bool {
        self.requests.is_over(now) && self.sign_ins.is_over(now)
    }

    /// The more, the less it may be forgotten: whether somebody tried to sign in, and how much was asked.
    fn weight(&self, limit: u32, now: u32) -> (bool, u32) {
        let left = self.requests.peek(limit, now).remaining;
        (!self.sign_ins.is_over(now), limit.saturating_sub(left))
    }
}

/// Parts with a lock each, so that threads seldom meet.
type Shards<K, V> = Box<[Mutex<HashMap<K, V>>]>;

pub struct Limiter {
    actors: Shards<Actor, Arc<Buckets>>,
    /// When each shard of them was swept.
    swept: [AtomicU32; SHARDS],
    addresses: Shards<IpAddr, Arc<Address>>,
    /// By what is counted.
    companies: Mutex<HashMap<(CompanyId, &'static str), Arc<Bucket>>>,
    hasher: RandomState,
    operations: Arc<[&'static str]>,
    shared: Option<Arc<Shared>>,
    address_limit: u32,
}

impl Limiter {
    /// `operations`: those that have a limit of their own. `shared`: on what hosts count together.
    pub fn new(
        operations: &[&'static str],
        address_limit: u32,
        shared: Option<Arc<Shared>>,
    ) -> Limiter {
        Limiter {
            actors: (0..SHARDS).map(|_| Mutex::default()).collect(),
            swept: Default::default(),
            addresses: (0..SHARDS).map(|_| Mutex::default()).collect(),
            companies: Mutex::default(),
            hasher: RandomState::new(),
            operations: operations.into(),
            shared,
            address_limit,
        }
    }

    /// The buckets of whoever calls, for their cached record.
    pub fn buckets(&self, actor: &Actor, now: u32) -> Arc<Buckets> {
        let place = self.shard(actor);
        let mut shard = self.actors[place].lock();
        let swept = &self.swept[place];
        // Also where there are few: a key that was deleted has what was counted of it here.
        let is_due = now.saturating_sub(swept.load(Relaxed)) >= WINDOW_SECONDS;
        if is_due || shard.len() >= ACTORS_PER_SHARD {
            swept.store(now, Relaxed);
            shard.retain(|_, buckets| {
                buckets.forget_each(now);
                Arc::strong_count(buckets) > 1 || !buckets.is_over(now)
            });
        }
        shard
            .entry(actor.clone())
            .or_insert_with(|| {
                let shared = self.shared.clone();
                Arc::new(Buckets::new(actor.clone(), &self.operations, shared))
            })
            .clone()
    }

    /// Spends one call of an address.
    pub async fn take_address(&self, address: IpAddr, now: u32) -> Result<Quota, Quota> {
        let (shared, limit) = (self.shared.as_deref(), self.address_limit);
        let name = || format!("ip:{}", network(address));
        let counted = self.address(address, now);
        counted.requests.take(shared, name, limit, now).await
    }

    /// The same where nobody can be waited for.
    pub fn take_address_at_hand(&self, address: IpAddr, now: u32) -> Result<Quota, Quota> {
        let (is_shared, limit) = (self.shared.is_some(), self.address_limit);
        let counted = self.address(address, now);
        counted.requests.take_at_hand(is_shared, limit, now)
    }

    /// Spends one attempt to sign in of an address.
    pub async fn take_sign_in(
        &self,
        address: IpAddr,
        limit: u32,
        now: u32,
    ) -> Result<Quota, Quota> {
        let shared = self.shared.as_deref();
        let name = || format!("ip:{}:sign-in", network(address));
        let counted = self.address(address, now);
        counted.sign_ins.take(shared, name, limit, now).await
    }

    /// Spends one of what a company may do in an hour, whichever of its keys asks.
    pub async fn take_of_company(
        &self,
        company: &CompanyId,
        what: &'static str,
        limit: u32,
        now: u32,
    ) -> Result<Quota, Quota> {
        let name = || format!("{company}:{what}");
        let counted = self.company(company, what, now);
        counted.take(self.shared.as_deref(), name, limit, now).await
    }

    /// Undoes a [`Limiter::take_address`].
    pub fn give_back_address(&self, address: IpAddr, now: u32) {
        self.address(address, now).requests.give_back(now);
    }

    /// Whether an address whose hour is used up may have one more key looked up.
    pub fn may_look_up(&self, address: IpAddr, now: u32) -> bool {
        let counted = self.address(address, now);
        counted.lookups.take(LOOKUPS_A_SECOND, now).is_ok()
    }

    pub fn peek_address(&self, address: IpAddr, now: u32) -> Quota {
        let address = network(address);
        let shard = self.addresses[self.shard(&address)].lock();
        let unknown = Arc::default();
        let counted = shard.get(&address).unwrap_or(&unknown);
        counted.requests.peek(self.address_limit, now)
    }

    /// Whether hosts count together; `None` when this one was not told where.
    pub fn is_shared(&self) -> Option<bool> {
        self.shared.as_ref().map(|shared| shared.is_available())
    }

    fn company(&self, company: &CompanyId, what: &'static str, now: u32) -> Arc<Bucket> {
        let mut companies = self.companies.lock();
        if companies.len() >= COMPANIES_MAX {
            companies.retain(|_, bucket| Arc::strong_count(bucket) > 1 || !bucket.is_over(now));
        }
        companies
            .entry((company.clone(), what))
            .or_default()
            .clone()
    }

    fn address(&self, address: IpAddr, now: u32) -> Arc<Address> {
        let address = network(address);
        let mut shard = self.addresses[self.shard(&address)].lock();
        if shard.len() >= ADDRESSES_PER_SHARD && !shard.contains_key(&address) {
            self.make_room(&mut shard, now);
        }
        shard.entry(address).or_default().clone()
    }

    /// Forgets the addresses whose hour is over, and of the others those that have asked least. Who has many networks of IPv6 gets no more by that than
    /// these networks have anyway, and nobody else gets less.
    fn make_room(&self, shard: &mut HashMap<IpAddr, Arc<Address>>, now: u32) {
        shard.retain(|_, counted| !counted.is_over(now));
        let surplus = shard.len() + ADDRESSES_LEAVING;
        let surplus = surplus.saturating_sub(ADDRESSES_PER_SHARD);
        if surplus == 0 {
            return;
        }
        let weighed = shard.iter();
        let weighed = weighed.map(|(at, counted)| (counted.weight(self.address_limit, now), *at));
        let mut weighed: Vec<((bool, u32), IpAddr)> = weighed.collect();
        weighed.select_nth_unstable(surplus - 1);
        for (_, address) in &weighed[..surplus] {
            shard.remove(address);
        }
    }

    fn shard(&self, value: &impl Hash) -> usize {
        self.hasher.hash_one(value) as usize % SHARDS
    }
}

/// A key's hourly limit on calls that run a connector, lowered while its company has very many of them in flight: others' lower nobody's.
pub fn under_load(limit: u32, (company, calls_max): (&Tally, u32)) -> u32 {
    let load = company.calls().saturating_mul(8);
    if load < calls_max.saturating_mul(LOAD_HIGH) {
        limit
    } else if load < calls_max.saturating_mul(LOAD_FULL) {
        (limit / 2).max(1)
    } else {
        (limit / 4).max(1)
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
    use futures_util::FutureExt;
    use souk_domain::ids::KeyId;
    use std::net::Ipv6Addr;

    const NOW: u32 = 1_700_000_000;

    /// A host that counts for itself waits for nobody.
    fn now<T>(taken: impl Future<Output = T>) -> T {
        taken.now_or_never().expect("nobody is asked")
    }

    fn actor() -> Actor {
        KeyId::generate().into()
    }

    /// All addresses of an IPv6 network share a bucket, and a mapped IPv4 address is itself.
    #[test]
    fn addresses_are_grouped_as_they_are_assigned() {
        let limiter = Limiter::new(&[], 2, None);
        let of = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(now(limiter.take_address(of("2001:db8::1"), NOW)).is_ok());
        assert!(now(limiter.take_address(of("2001:db8::2"), NOW)).is_ok());
        assert!(now(limiter.take_address(of("2001:db8::3"), NOW)).is_err());
        assert!(now(limiter.take_address(of("192.0.2.1"), NOW)).is_ok());
        assert_eq!(
            limiter.peek_address(of("::ffff:192.0.2.1"), NOW).remaining,
            1
        );
    }

    /// However many networks ask, whoever comes has an hour of their own, and who has used theirs up is not forgotten. They take bounded room.
    #[test]
    fn many_networks_use_up_nobodys_hour() {
        const KEPT_MAX: usize = SHARDS * ADDRESSES_PER_SHARD;
        let limiter = Limiter::new(&[], 3, None);
        let of = |text: &str| text.parse::<IpAddr>().unwrap();
        let take = |address| now(limiter.take_address(address, NOW));
        let sign_in = |address| now(limiter.take_sign_in(address, 1, NOW));
        let (spent, tried) = (of("192.0.2.1"), of("192.0.2.2"));
        assert!((0..3).all(|_| take(spent).is_ok()) && take(spent).is_err());
        assert!(sign_in(tried).is_ok() && sign_in(tried).is_err());
        for number in 0..2 * KEPT_MAX as u128 {
            let network = Ipv6Addr::from((0x2001_0db8_u128 << 96) | (number << 64));
            assert!(take(network.into()).is_ok(), "{network}");
        }
        let kept = limiter.addresses.iter().map(|shard| shard.lock().len());
        assert!(kept.sum::<usize>() <= KEPT_MAX);
        for number in 0..100 {
            let fresh = of(&format!("198.51.100.{number}"));
            assert!((0..3).all(|_| take(fresh).is_ok()), "{fresh}");
        }
        assert!(take(spent).is_err() && sign_in(tried).is_err());
        let later = NOW + window::WINDOW_SECONDS;
        assert!(now(limiter.take_address(spent, later)).is_ok());
    }

    /// An address whose hour is used up still has a few keys a second looked up, and gets back what a known key cost it.
    #[test]
    fn lookups_beyond_the_hour_are_few() {
        let limiter = Limiter::new(&[], 1, None);
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        assert!(now(limiter.take_address(address, NOW)).is_ok());
        assert!(now(limiter.take_address(address, NOW)).is_err());
        for second in [NOW, NOW + 1] {
            for _ in 0..LOOKUPS_A_SECOND {
                assert!(limiter.may_look_up(address, second));
            }
            assert!(!limiter.may_look_up(address, second));
        }
        limiter.give_back_address(address, NOW + 1);
        assert!(now(limiter.take_address(address, NOW + 1)).is_ok());
    }

    /// What was counted of callers that are gone leaves, however few there are.
    #[test]
    fn callers_that_are_gone_are_forgotten() {
        const CALLERS: usize = SHARDS * 50;
        let limiter = Limiter::new(&[], 1, None);
        let limits = Limits {
            own: 5,
            operation: None,
        };
        for second in [NOW, NOW + 2 * WINDOW_SECONDS] {
            for _ in 0..CALLERS {
                let buckets = limiter.buckets(&actor(), second);
                assert!(now(buckets.take(limits, second)).is_ok());
            }
            let kept = limiter.actors.iter().map(|shard| shard.lock().len());
            assert_eq!(kept.sum::<usize>(), CALLERS);
        }
    }

    /// A company has an hour of its own for each thing, and windows that are over make room for others.
    #[test]
    fn companies_are_counted_each_for_itself() {
        let limiter = Limiter::new(&[], 1, None);
        let [one, other] = [(); 2].map(|()| CompanyId::generate());
        let take = |company: &CompanyId, what: &'static str, second: u32| {
            now(limiter.take_of_company(company, what, 1, second))
        };
        assert!(take(&one, "a", NOW).is_ok());
        assert_eq!(take(&one, "a", NOW).unwrap_err().reset, NOW + 3600);
        assert!(take(&one, "b", NOW).is_ok());
        assert!(take(&other, "a", NOW).is_ok());
        for _ in 0..COMPANIES_MAX {
            assert!(take(&CompanyId::generate(), "a", NOW).is_ok());
        }
        assert!(take(&one, "a", NOW + 3600).is_ok());
        assert_eq!(limiter.companies.lock().len(), 1);
    }

    /// The 129th call in flight is refused until one ends.
    #[test]
    fn calls_in_flight_are_bounded_per_key() {
        let limiter = Limiter::new(&[], 1, None);
        let buckets = limiter.buckets(&actor(), NOW);
        let company = Unread::new(u64::MAX, 2).company(&CompanyId::generate());
        let enter = || buckets.enter((&company, 1_000));
        assert!((0..IN_FLIGHT_MAX).all(|_| enter()));
        assert!(!enter());
        buckets.leave(&company);
        assert!(enter());
    }

    /// The more calls a company has in flight, the less an hour has for its keys, and all of it again when they have ended; for others' keys it
    /// always has the same.
    #[test]
    fn limits_are_lower_under_the_companys_own_load() {
        const CALLS_MAX: u32 = 512;
        let limiter = Limiter::new(&[], 1, None);
        let companies = Unread::new(u64::MAX, 2);
        let [busy, other] = [(); 2].map(|()| companies.company(&CompanyId::generate()));
        let limits =
            |company: &Tally| [1_000, 1].map(|limit| under_load(limit, (company, CALLS_MAX)));
        let mut held = Vec::new();
        for (calls, lowered) in [
            (0, [1_000, 1]),
            (255, [1_000, 1]),
            (256, [500, 1]),
            (447, [500, 1]),
            (448, [250, 1]),
            (512, [250, 1]),
            (447, [500, 1]),
            (255, [1_000, 1]),
        ] {
            while held.len() < calls {
                let buckets = limiter.buckets(&actor(), NOW);
                assert!(buckets.enter((&busy, CALLS_MAX)));
                held.push(buckets);
            }
            for buckets in held.drain(calls..) {
                buckets.leave(&busy);
            }
            assert_eq!(limits(&busy), lowered, "{calls}");
            assert_eq!(limits(&other), [1_000, 1], "{calls}");
        }
    }

    /// A company that may have a single call in flight has its whole hour.
    #[test]
    fn an_idle_company_is_not_under_load() {
        let company = Unread::new(u64::MAX, 2).company(&CompanyId::generate());
        for calls_max in [1, 2, u32::MAX] {
            assert_eq!(under_load(1_000, (&company, calls_max)), 1_000);
        }
    }

    /// Another key of the same company does not find room that there is not, and leaves none taken when it is refused.
    #[test]
    fn calls_in_flight_are_bounded_per_company() {
        let limiter = Limiter::new(&[], 1, None);
        let companies = Unread::new(u64::MAX, 2);
        let [one, other] = [(); 2].map(|()| companies.company(&CompanyId::generate()));
        let [first, second] = [(); 2].map(|()| limiter.buckets(&actor(), NOW));
        assert!((0..3).all(|_| first.enter((&one, 3))));
        for _ in 0..2 * IN_FLIGHT_MAX {
            assert!(!second.enter((&one, 3)));
        }
        assert!(second.enter((&other, 3)));
        first.leave(&one);
        assert!(second.enter((&one, 3)));
    }
}
