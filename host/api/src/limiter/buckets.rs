//! What is counted of one caller.

use super::bucket::Bucket;
use super::shared::Shared;
use super::window::{Quota, WINDOW_SECONDS};
use crate::unread::Tally;
use parking_lot::Mutex;
use souk_domain::actors::Actor;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Calls that run a connector, in flight at once, per key.
pub const IN_FLIGHT_MAX: u32 = 128;
/// What a key is counted for one by one (the products that it previews) in an hour: about 100 bytes each. A catalogue is browsed with far
/// fewer; who asks for more in an hour waits.
const EACH_MAX: usize = 1_000;
/// As long as an id. What is longer is none, however many of those somebody makes up: they are counted as one thing.
const THING_BYTES_MAX: usize = 255;

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

/// The buckets of one actor. What each call writes, on whatever core, stands together, and apart from what is only read.
#[repr(C, align(64))]
pub struct Buckets {
    own: Bucket,
    in_flight: AtomicU32,
    actor: Actor,
    /// The operations that have a limit of their own.
    names: Arc<[&'static str]>,
    shared: Option<Arc<Shared>>,
    operations: Box<[Bucket]>,
    /// Of operations that limit each thing for itself.
    each: Mutex<Each>,
}

/// What is counted of one caller thing by thing. Things are what clients write: not they are kept but their hashes, and two with one hash, which
/// nobody can look for, are counted together.
#[derive(Default)]
struct Each {
    hasher: RandomState,
    buckets: HashMap<u64, Arc<Bucket>>,
    /// When a call of any of them was spent last: an hour later all are over.
    taken_at: u32,
}

impl Each {
    fn is_over(&self, now: u32) -> bool {
        self.buckets.is_empty() || now.saturating_sub(self.taken_at) >= WINDOW_SECONDS
    }
}

/// The limits that a call meets: the caller's own, and the operation's with the place of its bucket.
#[derive(Clone, Copy)]
pub struct Limits {
    pub own: u32,
    pub operation: Option<(usize, u32)>,
}

impl Buckets {
    pub(super) fn new(
        actor: Actor,
        names: &Arc<[&'static str]>,
        shared: Option<Arc<Shared>>,
    ) -> Buckets {
        Buckets {
            actor,
            names: names.clone(),
            shared,
            own: Bucket::default(),
            operations: names.iter().map(|_| Bucket::default()).collect(),
            each: Mutex::default(),
            in_flight: AtomicU32::new(0),
        }
    }

    /// Spends one call of both buckets, or of neither. Both answers show the bucket that binds.
    pub async fn take(&self, limits: Limits, now: u32) -> Result<(Quota, Scope), (Quota, Scope)> {
        let shared = self.shared.as_deref();
        let name = || self.actor.as_str().to_owned();
        let key = self.own.take(shared, name, limits.own, now).await;
        let key = key.map_err(|quota| (quota, Scope::Key))?;
        let Some((place, limit)) = limits.operation else {
            return Ok((key, Scope::Key));
        };
        let name = || format!("{}:{}", self.actor.as_str(), self.names[place]);
        match self.operations[place].take(shared, name, limit, now).await {
            Ok(operation) => Ok(binding(key, operation)),
            Err(operation) => {
                self.own.give_back(now);
                Err((operation, Scope::Operation))
            }
        }
    }

    /// Spends one call for one of the things that are limited each for itself. The caller has spent one of the key, which a refusal gives
    /// back.
    pub async fn take_each(&self, thing: &str, limit: u32, now: u32) -> Result<Quota, Quota> {
        let thing = match thing.len() <= THING_BYTES_MAX {
            true => thing,
            false => "",
        };
        let taken = match self.each(thing, now) {
            Ok(bucket) => {
                let name = || format!("{}:each:{thing}", self.actor.as_str());
                bucket.take(self.shared.as_deref(), name, limit, now).await
            }
            Err(reset) => Err(Quota {
                limit,
                remaining: 0,
                reset,
            }),
        };
        if taken.is_err() {
            self.own.give_back(now);
        }
        taken
    }

    /// The bucket of a thing, unless there are too many: then when the first of them is over.
    fn each(&self, thing: &str, now: u32) -> Result<Arc<Bucket>, u32> {
        let mut each = self.each.lock();
        let thing = each.hasher.hash_one(thing);
        let buckets = &mut each.buckets;
        if buckets.len() >= EACH_MAX && !buckets.contains_key(&thing) {
            buckets.retain(|_, bucket| !bucket.is_over(now));
            if buckets.len() >= EACH_MAX {
                let ends = buckets.values().map(|bucket| bucket.peek(1, now).reset);
                return Err(ends.min().unwrap_or(now));
            }
        }
        let bucket = buckets.entry(thing).or_default().clone();
        each.taken_at = now;
        Ok(bucket)
    }

    /// Lets go of what was counted thing by thing, if all of it is over.
    pub(super) fn forget_each(&self, now: u32) {
        let mut each = self.each.lock();
        if each.is_over(now) {
            each.buckets = HashMap::new();
        }
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

    /// Takes a place among the calls in flight of a key, and of its company whatever its number of keys, unless they have none left. Whoever has
    /// taken one leaves it ([`Buckets::leave`]).
    pub fn enter(&self, (company, calls_max): (&Tally, u32)) -> bool {
        let entered =
            self.in_flight.fetch_add(1, Relaxed) < IN_FLIGHT_MAX && company.begin_call(calls_max);
        if !entered {
            self.in_flight.fetch_sub(1, Relaxed);
        }
        entered
    }

    /// Frees a place.
    pub fn leave(&self, company: &Tally) {
        self.in_flight.fetch_sub(1, Relaxed);
        company.end_call();
    }

    pub(super) fn is_over(&self, now: u32) -> bool {
        self.own.is_over(now)
            && self.operations.iter().all(|bucket| bucket.is_over(now))
            && self.each.lock().is_over(now)
    }
}

fn binding(key: Quota, operation: Quota) -> (Quota, Scope) {
    if key.remaining < operation.remaining {
        (key, Scope::Key)
    } else {
        (operation, Scope::Operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use souk_domain::ids::KeyId;

    const NOW: u32 = 1_700_000_000;

    /// A host that counts for itself waits for nobody.
    fn now<T>(taken: impl Future<Output = T>) -> T {
        taken.now_or_never().expect("nobody is asked")
    }

    fn buckets() -> Buckets {
        Buckets::new(KeyId::generate().into(), &Arc::from(["one", "other"]), None)
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
            now(buckets.take(limits, NOW)).map(|(_, scope)| scope),
            Ok(Scope::Operation)
        );
        for _ in 0..3 {
            assert_eq!(
                now(buckets.take(limits, NOW)).map_err(|(_, scope)| scope),
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
        let each = |thing: &str, second| {
            now(buckets.take(limits, second)).unwrap();
            now(buckets.take_each(thing, 1, second))
        };
        assert!(each("a", NOW).is_ok());
        for _ in 0..20 {
            assert_eq!(each("a", NOW).unwrap_err().remaining, 0);
        }
        assert!(each("b", NOW).is_ok());
        assert_eq!(buckets.peek(limits, NOW).0.remaining, 8);
        for number in 0..2 * EACH_MAX {
            let _ = now(buckets.take_each(&number.to_string(), 1, NOW));
        }
        assert_eq!(buckets.each.lock().buckets.len(), EACH_MAX);
        assert_eq!(each("late", NOW).unwrap_err().reset, NOW + WINDOW_SECONDS);
        assert!(each("late", NOW + WINDOW_SECONDS).is_ok());
    }

    /// However long the things are that somebody makes up, and however many, they take no more room than ids do.
    #[test]
    fn things_that_are_no_ids_are_counted_as_one() {
        let buckets = buckets();
        let long = |number: usize| "x".repeat(THING_BYTES_MAX + 1 + number);
        assert!(now(buckets.take_each(&long(0), 2, NOW)).is_ok());
        assert!(now(buckets.take_each(&long(1), 2, NOW)).is_ok());
        assert!(now(buckets.take_each(&long(2), 2, NOW)).is_err());
        assert_eq!(buckets.each.lock().buckets.len(), 1);
        let id = "x".repeat(THING_BYTES_MAX);
        assert!(now(buckets.take_each(&id, 2, NOW)).is_ok());
    }

    /// An hour after the last of them nothing of them is left.
    #[test]
    fn things_are_let_go_of() {
        let buckets = buckets();
        assert!(now(buckets.take_each("a", 1, NOW)).is_ok());
        assert!(now(buckets.take_each("b", 1, NOW + 10)).is_ok());
        buckets.forget_each(NOW + WINDOW_SECONDS);
        assert_eq!(buckets.each.lock().buckets.len(), 2);
        buckets.forget_each(NOW + 10 + WINDOW_SECONDS);
        assert_eq!(buckets.each.lock().buckets.len(), 0);
        assert!(now(buckets.take_each("a", 1, NOW + 10 + WINDOW_SECONDS)).is_ok());
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
                        let limits = Limits {
                            own: 700,
                            operation: None,
                        };
                        if now(buckets.take(limits, NOW)).is_ok() {
                            granted.fetch_add(1, Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(granted.load(Relaxed), 700);
    }
}
