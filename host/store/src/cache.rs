//! A cache that never serves what a committed transaction has replaced.
//!
//! Every value says what it was made from, by topic and id. An index from there to the keys finds what a change concerns, so that a
//! change costs what it concerns, however much is cached. A change of a topic that the cache knows also advances an epoch: a value that was
//! loaded across it is handed to its caller, whose request was concurrent with the change, but not kept. Loads are not shared between
//! callers: a request that begins after a change must not receive a load that began before it. While the store cannot vouch for other
//! hosts' changes, the cache is bypassed.
//!
//! In front of what all threads share, each has what it read lately, until that leaves the cache (`departures`): a lock that is taken and holders
//! that are counted for every request would be fetched from another core each time (decision 60).

mod departures;
mod index;

use crate::changes::{Change, Topic};
use crate::db::{self, Db, READ_WITHIN};
use crate::error::StoreError;
use crossbeam_utils::CachePadded;
use departures::Departures;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use index::Index;
use parking_lot::{Mutex, RwLock};
use std::borrow::Borrow;
use std::cell::RefCell;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use thread_local::ThreadLocal;

/// Threads that read different keys rarely meet on one lock.
const SHARDS: usize = 16;
/// Values that a thread has in front of them.
const FRONT_MAX: usize = 1_024;
/// A value that takes more is a large one, if values of its cache are weighed.
const SMALL_BYTES_MAX: usize = 32 << 10;

/// A cached value. Cheap to clone: its holders are counted for the thread that read it.
#[derive(Debug, PartialEq, Eq)]
#[expect(
    clippy::redundant_allocation,
    reason = "the outer count is a thread's own"
)]
pub struct Cached<V>(Arc<Arc<V>>);

impl<V> Cached<V> {
    /// Of a value that is in no cache.
    pub fn of(value: V) -> Self {
        Self(Arc::new(Arc::new(value)))
    }

    /// For whoever wants to keep it beside the cache.
    pub fn shared(&self) -> &Arc<V> {
        &self.0
    }
}

impl<V> Clone for Cached<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V> Deref for Cached<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.0
    }
}

/// Values by key, shared by all threads. Cheap to clone.
pub struct Cache<K: Send, V: Send + Sync> {
    inner: Arc<Inner<K, V>>,
}

impl<K: Send, V: Send + Sync> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

struct Inner<K: Send, V: Send + Sync> {
    shards: [RwLock<HashMap<K, Arc<V>>>; SHARDS],
    hasher: DefaultHashBuilder,
    /// Locked before a shard, and not at all to read.
    index: Mutex<Index<K>>,
    origins: Box<Origins<K, V>>,
    weigh: Box<Weigh<V>>,
    topics: Vec<Topic>,
    epoch: AtomicU64,
    /// Told of each value that leaves the shards, while the index and its shard are locked: for all readers that is one moment.
    departures: Departures,
    fronts: ThreadLocal<CachePadded<RefCell<Front<K, V>>>>,
    coherent: Arc<AtomicBool>,
    /// A server answers what is loaded, or not.
    is_shared: bool,
    shard_max: usize,
    /// Of large values together.
    large_bytes_max: usize,
}

/// What one thread has read lately and has not left, as of so many departures.
struct Front<K, V> {
    departures: u64,
    values: HashTable<Fronted<K, V>>,
}

struct Fronted<K, V> {
    hash: u64,
    key: K,
    value: Cached<V>,
}

impl<K, V> Default for Front<K, V> {
    fn default() -> Self {
        Self {
            departures: 0,
            values: HashTable::new(),
        }
    }
}

impl<K, V> Front<K, V> {
    /// Drops what has left, and nothing else unless too much has left to know what.
    fn catch_up(&mut self, departures: &Departures) {
        // What has come by now; what leaves after it is told by the next number.
        let now = departures.count();
        if self.departures == now {
            return;
        }
        let values = &mut self.values;
        let is_all_known = departures.between(self.departures, now, |hash| {
            while let Ok(gone) = values.find_entry(hash, |one| one.hash == hash) {
                gone.remove();
            }
        });
        if !is_all_known {
            values.clear();
        }
        self.departures = now;
    }
}

/// What a value was made from.
type Origins<K, V> = dyn Fn(&K, &V) -> Vec<(Topic, Arc<str>)> + Send + Sync;
/// Whose a value is, and what it takes in memory, about.
type Weigh<V> = dyn Fn(&V) -> (&str, usize) + Send + Sync;

impl<K: Hash + Eq + Clone + Send + Sync + 'static, V: Send + Sync + 'static> Cache<K, V> {
    /// A cache of at most about `entries_max` values. A value is made from one thing of each of `topics`, whose ids `origins` tells, and is
    /// dropped whenever a change of one of them is committed, by this host or another one.
    pub fn new<const N: usize>(
        db: &Db,
        entries_max: usize,
        topics: [Topic; N],
        origins: impl Fn(&K, &V) -> [Arc<str>; N] + Send + Sync + 'static,
    ) -> Self {
        let bounds = (entries_max, usize::MAX);
        Self::weighed(db, bounds, topics, origins, |_| ("", 0))
    }

    /// The same of values of which some are large: beyond 32 KiB each, as `weigh` says. Those take at most `large_bytes_max` together, those of
    /// one owner an eighth of it, and only they make room for each other, an owner's own ones first: whoever has many keeps nobody's small ones out,
    /// and needs seven others to keep out anybody's large ones.
    pub fn weighed<const N: usize>(
        db: &Db,
        (entries_max, large_bytes_max): (usize, usize),
        topics: [Topic; N],
        origins: impl Fn(&K, &V) -> [Arc<str>; N] + Send + Sync + 'static,
        weigh: impl Fn(&V) -> (&str, usize) + Send + Sync + 'static,
    ) -> Self {
        let inner = Arc::new(Inner {
            shards: std::array::from_fn(|_| RwLock::default()),
            hasher: DefaultHashBuilder::default(),
            index: Mutex::default(),
            origins: Box::new(move |key, value| {
                topics.into_iter().zip(origins(key, value)).collect()
            }),
            weigh: Box::new(weigh),
            topics: topics.to_vec(),
            epoch: AtomicU64::new(0),
            departures: Departures::default(),
            fronts: ThreadLocal::new(),
            coherent: db.coherent(),
            is_shared: db.is_shared(),
            shard_max: entries_max.div_ceil(SHARDS).max(1),
            large_bytes_max,
        });
        let cache = Self { inner };
        let weak = Arc::downgrade(&cache.inner);
        db.on_change(Box::new(move |change| {
            let Some(inner) = weak.upgrade() else { return };
            let cache = Cache { inner };
            match change {
                Change::One { topic, id } => drop(cache.forget(*topic, id)),
                Change::Everything => cache.clear(),
            }
        }));
        cache
    }

    /// The cached value, if there is one and it is known to be current.
    pub fn get<Q>(&self, key: &Q) -> Option<Cached<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if !self.inner.coherent.load(Ordering::SeqCst) {
            return None;
        }
        let hash = self.hash(key);
        let mut front = self.inner.fronts.get_or_default().borrow_mut();
        // Before the shard is read.
        front.catch_up(&self.inner.departures);
        let is_it = |one: &Fronted<K, V>| one.hash == hash && Borrow::<Q>::borrow(&one.key) == key;
        if let Some(one) = front.values.find(hash, is_it) {
            return Some(one.value.clone());
        }
        let (key, value) = {
            let shard = self.shard(hash).read();
            let (key, value) = shard.get_key_value(key)?;
            (key.clone(), Cached(Arc::new(value.clone())))
        };
        if front.values.len() >= FRONT_MAX {
            front.values.clear();
        }
        let fronted = Fronted {
            hash,
            key,
            value: value.clone(),
        };
        front.values.insert_unique(hash, fronted, |one| one.hash);
        Some(value)
    }

    /// The cached value, or what `load` reads from the store, [in time](Db::answered). An absent value (an error) is not cached.
    pub async fn get_or_load<E, F>(&self, key: K, load: impl FnOnce() -> F) -> Result<Cached<V>, E>
    where
        E: From<StoreError>,
        F: Future<Output = Result<V, E>>,
    {
        if let Some(value) = self.get(&key) {
            return Ok(value);
        }
        let epoch = self.epoch();
        // Boxed: most calls find the value, and need not have room for this.
        let value = match self.inner.is_shared {
            true => Box::pin(db::answered(READ_WITHIN, load())).await?,
            false => Box::pin(load()).await?,
        };
        let value = Arc::new(value);
        self.keep(key, &value, epoch);
        Ok(Cached(Arc::new(value)))
    }

    /// The epoch to pass to [`Cache::keep`] later: take it before reading from the store.
    pub fn epoch(&self) -> u64 {
        self.inner.epoch.load(Ordering::SeqCst)
    }

    /// Keeps `value`, which was read after `epoch` was taken, unless a change may have concerned it since.
    pub fn keep(&self, key: K, value: &Arc<V>, epoch: u64) {
        if !self.inner.coherent.load(Ordering::SeqCst) {
            return;
        }
        let origins = (self.inner.origins)(&key, value);
        let (owner, bytes) = (self.inner.weigh)(value);
        let mut index = self.inner.index.lock();
        // Checked under the lock: a change advances the epoch first and then takes the lock.
        if self.epoch() != epoch {
            return;
        }
        if bytes > SMALL_BYTES_MAX {
            // What it replaces makes room for it first.
            index.remove(&key);
            self.make_room(&mut index, owner, bytes);
        }
        let hash = self.hash(&key);
        let mut shard = self.shard(hash).write();
        if shard.len() >= self.inner.shard_max
            && let Some(victim) = shard.keys().next().cloned()
        {
            shard.remove(&victim);
            index.remove(&victim);
            self.inner.departures.tell(self.hash(&victim));
        }
        index.insert(&key, origins);
        if bytes > SMALL_BYTES_MAX {
            index.weigh(&key, owner, bytes);
        }
        if shard.insert(key, value.clone()).is_some() {
            self.inner.departures.tell(hash);
        }
    }

    /// Drops large values until there is room for so many bytes more of this owner's.
    fn make_room(&self, index: &mut Index<K>, owner: &str, bytes: usize) {
        while let Some(victim) = index.in_the_way(owner, bytes, self.inner.large_bytes_max) {
            index.remove(&victim);
            self.leave(&victim);
        }
    }

    /// Drops one value that its holder knows to be out of date, by the clock say, which no transaction tells.
    pub fn remove<Q>(&self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut index = self.inner.index.lock();
        index.remove(key);
        self.leave(key);
    }

    /// Drops every value that was made from this, and returns how many entries it looked at for that.
    fn forget(&self, topic: Topic, id: &str) -> usize {
        if !self.inner.topics.contains(&topic) {
            return 0;
        }
        self.inner.epoch.fetch_add(1, Ordering::SeqCst);
        let mut index = self.inner.index.lock();
        let concerned = index.take(topic, id);
        for key in &concerned {
            index.remove(key);
            self.leave(key);
        }
        concerned.len()
    }

    fn clear(&self) {
        self.inner.epoch.fetch_add(1, Ordering::SeqCst);
        let mut index = self.inner.index.lock();
        *index = Index::default();
        for shard in &self.inner.shards {
            let mut shard = shard.write();
            shard.clear();
            self.inner.departures.tell_all();
        }
    }

    /// Takes a value out of its shard, if it is there. To be called while the index is locked.
    fn leave<Q>(&self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.hash(key);
        let mut shard = self.shard(hash).write();
        if shard.remove(key).is_some() {
            self.inner.departures.tell(hash);
        }
    }

    fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.inner.hasher.hash_one(key)
    }

    /// Where keys with this hash are.
    fn shard(&self, hash: u64) -> &RwLock<HashMap<K, Arc<V>>> {
        &self.inner.shards[hash as usize % SHARDS]
    }
}

#[cfg(test)]
mod tests;
