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

use crate::changes::{Change, Topic};
use crate::db::Db;
use crossbeam_utils::CachePadded;
use departures::Departures;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use parking_lot::{Mutex, RwLock};
use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashSet;
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
/// How many owners have room for as many large values as one may have: fewer never keep another one's out.
const OWNERS: usize = 8;

/// A cached value. Cheap to clone: its holders are counted for the thread that read it.
#[derive(Debug, PartialEq, Eq)]
#[expect(
    clippy::redundant_allocation,
    reason = "the outer count is a thread's own"
)]
pub struct Cached<V>(Arc<Arc<V>>);

impl<V> Cached<V> {
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

    /// The cached value, or what `load` reads from the store. An absent value (an error) is not cached.
    pub async fn get_or_load<E, F>(&self, key: K, load: impl FnOnce() -> F) -> Result<Cached<V>, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        if let Some(value) = self.get(&key) {
            return Ok(value);
        }
        let epoch = self.epoch();
        // Boxed: most calls find the value, and need not have room for this.
        let value = Arc::new(Box::pin(load()).await?);
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

/// From what values were made from to their keys, and back; and which of them are large.
struct Index<K> {
    keys: HashMap<Topic, HashMap<Arc<str>, HashSet<K>>>,
    origins: HashMap<K, Vec<(Topic, Arc<str>)>>,
    large: HashMap<K, Large>,
    /// Of all of these.
    large_bytes: usize,
    /// By owner: who has none is not there.
    owned: HashMap<Arc<str>, Owned<K>>,
}

/// What is known of a large value.
struct Large {
    owner: Arc<str>,
    bytes: usize,
}

/// The large values of one owner.
struct Owned<K> {
    bytes: usize,
    keys: HashSet<K>,
}

impl<K> Default for Index<K> {
    fn default() -> Self {
        Self {
            keys: HashMap::new(),
            origins: HashMap::new(),
            large: HashMap::new(),
            large_bytes: 0,
            owned: HashMap::new(),
        }
    }
}

impl<K: Hash + Eq + Clone> Index<K> {
    fn insert(&mut self, key: &K, origins: Vec<(Topic, Arc<str>)>) {
        self.remove(key);
        for (topic, id) in &origins {
            let keys = self.keys.entry(*topic).or_default();
            keys.entry(id.clone()).or_default().insert(key.clone());
        }
        self.origins.insert(key.clone(), origins);
    }

    /// Of a large value that has just been inserted.
    fn weigh(&mut self, key: &K, owner: &str, bytes: usize) {
        let owner: Arc<str> = owner.into();
        let owned = self.owned.entry(owner.clone());
        let owned = owned.or_insert_with(|| Owned {
            bytes: 0,
            keys: HashSet::new(),
        });
        owned.bytes += bytes;
        owned.keys.insert(key.clone());
        self.large_bytes += bytes;
        self.large.insert(key.clone(), Large { owner, bytes });
    }

    /// A large value that has to go before so many bytes of this owner's can come: one of its own where it has its share, else anybody's.
    fn in_the_way(&self, owner: &str, bytes: usize, bytes_max: usize) -> Option<K> {
        let owned = self.owned.get(owner);
        match owned.filter(|owned| owned.bytes + bytes > bytes_max / OWNERS) {
            Some(owned) => owned.keys.iter().next().cloned(),
            None if self.large_bytes + bytes > bytes_max => self.large.keys().next().cloned(),
            None => None,
        }
    }

    /// Of a large value that goes.
    fn lighten<Q>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let Some(Large { owner, bytes }) = self.large.remove(key) else {
            return;
        };
        self.large_bytes -= bytes;
        if let Some(owned) = self.owned.get_mut(&owner) {
            owned.bytes -= bytes;
            owned.keys.remove(key);
            if owned.keys.is_empty() {
                self.owned.remove(&owner);
            }
        }
    }

    fn remove<Q>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.lighten(key);
        for (topic, id) in self.origins.remove(key).unwrap_or_default() {
            let Some(by_id) = self.keys.get_mut(&topic) else {
                continue;
            };
            if let Some(keys) = by_id.get_mut(&id) {
                keys.remove(key);
                if keys.is_empty() {
                    by_id.remove(&id);
                }
            }
        }
    }

    /// The keys of the values that were made from this, which it forgets.
    fn take(&mut self, topic: Topic, id: &str) -> HashSet<K> {
        let by_id = self.keys.get_mut(&topic);
        by_id.and_then(|by_id| by_id.remove(id)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::OpenOptions;

    const PRODUCTS: usize = 2_000;
    const SELLERS: usize = 100;
    const LARGE: usize = SMALL_BYTES_MAX + 1;

    async fn store() -> (tempfile::TempDir, Db) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("souk.db");
        let url = format!("sqlite:{}", path.display());
        (directory, Db::open(&OpenOptions::new(url)).await.unwrap())
    }

    /// Products by id, each with the seller that it belongs to.
    fn products(db: &Db, entries_max: usize) -> Cache<String, String> {
        let topics = [Topic::Product, Topic::Company, Topic::Connector];
        let cache = Cache::new(db, entries_max, topics, |id: &String, seller: &String| {
            [
                id.as_str().into(),
                seller.as_str().into(),
                "platform".into(),
            ]
        });
        for product in 0..PRODUCTS {
            let seller = Arc::new(format!("seller {}", product % SELLERS));
            cache.keep(format!("product {product}"), &seller, cache.epoch());
        }
        cache
    }

    /// A change looks at the entries that it concerns and at no other, however many there are.
    #[tokio::test]
    async fn a_change_costs_what_it_concerns() {
        let (_directory, db) = store().await;
        let cache = products(&db, 2 * PRODUCTS);
        assert_eq!(cache.forget(Topic::Product, "product 7"), 1);
        assert!(cache.get("product 7").is_none());
        assert!(cache.get("product 8").is_some());
        // What was dropped is not looked at again, whatever else it was made from.
        assert_eq!(
            cache.forget(Topic::Company, "seller 7"),
            PRODUCTS / SELLERS - 1
        );
        assert_eq!(cache.forget(Topic::Company, "seller 7"), 0);
        assert_eq!(cache.forget(Topic::Product, "nothing of ours"), 0);
        // No value is made from a delivery, so loads under way may be kept, too.
        let epoch = cache.epoch();
        assert_eq!(cache.forget(Topic::Delivery, "product 8"), 0);
        assert_eq!(cache.epoch(), epoch);
        assert_eq!(
            cache.forget(Topic::Connector, "platform"),
            PRODUCTS - PRODUCTS / SELLERS
        );
        assert!((0..PRODUCTS).all(|product| cache.get(&format!("product {product}")).is_none()));
    }

    /// A thread that answers what it has of a key.
    struct Other {
        ask: std::sync::mpsc::Sender<String>,
        answers: std::sync::mpsc::Receiver<Option<String>>,
    }

    impl Other {
        fn of(cache: &Cache<String, String>) -> Other {
            let (ask, asked) = std::sync::mpsc::channel::<String>();
            let (answer, answers) = std::sync::mpsc::channel();
            let cache = cache.clone();
            std::thread::spawn(move || {
                for key in asked {
                    let found = cache.get(&key).map(|value| (*value).clone());
                    answer.send(found).unwrap();
                }
            });
            Other { ask, answers }
        }

        fn get(&self, key: &str) -> Option<String> {
            self.ask.send(key.to_owned()).unwrap();
            self.answers.recv().unwrap()
        }
    }

    /// Another thread has nothing in front of it that has left, whatever way it went.
    #[tokio::test]
    async fn no_thread_has_what_has_left() {
        let (_directory, db) = store().await;
        let cache = products(&db, 2 * PRODUCTS);
        let other = Other::of(&cache);
        type Departure = fn(&Cache<String, String>);
        let departures: [(&str, Departure); 4] = [
            ("product 1", |cache| {
                cache.forget(Topic::Product, "product 1");
            }),
            ("product 102", |cache| {
                cache.forget(Topic::Company, "seller 2");
            }),
            ("product 3", |cache| cache.remove("product 3")),
            ("product 4", Cache::clear),
        ];
        for (key, depart) in departures {
            assert!(
                other.get(key).is_some() && other.get(key).is_some(),
                "{key}"
            );
            depart(&cache);
            assert_eq!(other.get(key), None, "{key}");
        }
    }

    /// Nor what somebody else's value took the place of, or another one of its own.
    #[tokio::test]
    async fn no_thread_has_what_was_displaced() {
        let (_directory, db) = store().await;
        let anew = Arc::new("of another seller".to_owned());
        let roomy = products(&db, 2 * PRODUCTS);
        let other = Other::of(&roomy);
        assert!(other.get("product 1").is_some());
        roomy.keep("product 1".to_owned(), &anew, roomy.epoch());
        assert_eq!(other.get("product 1").as_ref(), Some(&*anew));
        let cache = products(&db, 4 * SHARDS);
        let other = Other::of(&cache);
        let in_shard = |key: &str| {
            let shard = cache.shard(cache.hash(key)).read();
            shard.contains_key(key)
        };
        let mut keys = (0..PRODUCTS).map(|product| format!("product {product}"));
        let one = keys.rfind(|key| in_shard(key)).unwrap();
        assert!(other.get(&one).is_some());
        for number in 0.. {
            cache.keep(format!("new {number}"), &anew, cache.epoch());
            if !in_shard(&one) {
                break;
            }
        }
        assert_eq!(other.get(&one), None);
    }

    /// What leaves takes nothing else from in front of anybody: a company that has a value thrown out with each request costs others nothing of theirs.
    #[tokio::test]
    async fn what_leaves_takes_nobody_elses_place() {
        let (_directory, db) = store().await;
        let cache = texts(&db, OWNERS);
        keep(&cache, "small", 1, 10);
        keep(&cache, "large", 2, LARGE);
        let both = || ["small", "large"].map(|key| cache.get(key).unwrap());
        let before = both();
        // The same holders as before: they come from in front, and not from the shards once more.
        let is_in_front = || {
            let same = before.iter().zip(both());
            same.filter(|(before, now)| Arc::ptr_eq(&before.0, &now.0))
                .count()
        };
        for one in 0..100 {
            keep(&cache, &format!("busy {one}"), 3, LARGE);
            assert_eq!(is_in_front(), 2);
            assert!(cache.get(&format!("busy {one}")).is_some());
            // Nor does a change of something else.
            keep(&cache, "changed", 3, 10);
            assert_eq!(cache.forget(Topic::Product, "changed"), 1);
            assert_eq!(is_in_front(), 2);
        }
        cache.remove("small");
        assert!(cache.get("small").is_none() && cache.get("large").is_some());
    }

    /// A thread that has not asked while more has left than is remembered has nothing that has left.
    #[tokio::test]
    async fn who_was_away_for_long_has_nothing_that_has_left() {
        let (_directory, db) = store().await;
        let cache = products(&db, 2 * PRODUCTS);
        let other = Other::of(&cache);
        let (first, stays) = ("product 0", "product 1");
        assert!(other.get(first).is_some() && other.get(stays).is_some());
        cache.remove(first);
        for product in 2..PRODUCTS {
            cache.remove(&*format!("product {product}"));
        }
        assert_eq!(other.get(first), None);
        assert!(other.get(stays).is_some());
    }

    /// A cache of texts that are their owner's: the digits that they begin with say whose. Large ones have room for so many.
    fn texts(db: &Db, large_max: usize) -> Cache<String, String> {
        Cache::weighed(
            db,
            (PRODUCTS * SHARDS, large_max * LARGE),
            [Topic::Product],
            |id: &String, _: &String| [id.as_str().into()],
            |text: &String| (text.trim_end_matches('x'), text.len()),
        )
    }

    /// Keeps a text of an owner's.
    fn keep(cache: &Cache<String, String>, key: &str, owner: usize, bytes: usize) {
        let owner = owner.to_string();
        let rest = "x".repeat(bytes - owner.len());
        let text = Arc::new(owner + &rest);
        cache.keep(key.to_owned(), &text, cache.epoch());
    }

    /// Those of a hundred keys that are kept.
    fn kept(cache: &Cache<String, String>, kind: &str) -> Vec<String> {
        let keys = (0..100).map(|one| format!("{kind} {one}"));
        keys.filter(|key| cache.get(key).is_some()).collect()
    }

    /// Large values have a bound together and make room for each other; small ones stay, whoever has many large ones.
    #[tokio::test]
    async fn large_values_are_bounded_by_bytes() {
        let (_directory, db) = store().await;
        let cache = texts(&db, 10);
        for one in 0..100 {
            keep(&cache, &format!("small {one}"), one, 10);
            let large = format!("large {one}");
            keep(&cache, &large, one, LARGE);
            assert!(cache.get(&large).is_some());
        }
        let large = kept(&cache, "large");
        assert_eq!((kept(&cache, "small").len(), large.len()), (100, 10));
        // One takes its own place, and makes room whatever way it leaves.
        keep(&cache, &large[0], 1_000, LARGE);
        assert_eq!(kept(&cache, "large"), large);
        let bytes = || {
            let index = cache.inner.index.lock();
            let owned = index.owned.values().map(|owned| owned.bytes);
            assert_eq!(owned.sum::<usize>(), index.large_bytes);
            index.large_bytes
        };
        assert_eq!(bytes(), 10 * LARGE);
        cache.forget(Topic::Product, &large[0]);
        cache.remove(&large[1]);
        keep(&cache, &large[2], 1_000, 10);
        assert_eq!(bytes(), 7 * LARGE);
        cache.clear();
        assert_eq!(bytes(), 0);
    }

    /// Whoever has many large values has an eighth of the room for them, and makes room for its own only; what is alone may be larger.
    #[tokio::test]
    async fn an_owner_has_its_share_of_large_values() {
        let (_directory, db) = store().await;
        let cache = texts(&db, 2 * OWNERS);
        for owner in 1..=6 {
            for one in 0..2 {
                keep(&cache, &format!("others {owner}{one}"), owner, LARGE);
            }
        }
        for one in 0..100 {
            keep(&cache, &format!("busy {one}"), 7, LARGE);
            assert!(cache.get(&format!("busy {one}")).is_some());
            let (others, busy) = (kept(&cache, "others"), kept(&cache, "busy"));
            assert_eq!((others.len(), busy.len()), (12, (one + 1).min(2)));
        }
        keep(&cache, "busy 100", 7, 3 * LARGE);
        assert!(cache.get("busy 100").is_some() && kept(&cache, "busy").is_empty());
        assert_eq!(kept(&cache, "others").len(), 12);
        // Its room is another one's when it has left.
        cache.remove("busy 100");
        assert!(!cache.inner.index.lock().owned.contains_key("7"));
    }

    /// The index knows what is cached and nothing else, whatever way an entry went.
    #[tokio::test]
    async fn the_index_holds_what_is_cached() {
        let (_directory, db) = store().await;
        let cache = products(&db, 160);
        let cached = |cache: &Cache<String, String>| -> usize {
            cache
                .inner
                .shards
                .iter()
                .map(|shard| shard.read().len())
                .sum()
        };
        let indexed = |cache: &Cache<String, String>, topic: Topic| -> usize {
            let index = cache.inner.index.lock();
            let keys = index.keys.get(&topic).into_iter().flatten();
            keys.map(|(_, keys)| keys.len()).sum()
        };
        let check = |cache: &Cache<String, String>| {
            for topic in [Topic::Product, Topic::Company, Topic::Connector] {
                assert_eq!(indexed(cache, topic), cached(cache), "{topic:?}");
            }
            assert_eq!(cache.inner.index.lock().origins.len(), cached(cache));
        };
        assert!((1..=160).contains(&cached(&cache)), "{}", cached(&cache));
        check(&cache);
        let some = || {
            let shards = cache.inner.shards.iter();
            shards
                .flat_map(|shard| shard.read().keys().next().cloned())
                .next()
        };
        let one = some().unwrap();
        cache.remove(&one);
        assert!(cache.get(&one).is_none());
        check(&cache);
        // The same product of another seller: the former one is not its business any more.
        let other = some().unwrap();
        let seller = cache.get(&other).unwrap();
        cache.keep(
            other.clone(),
            &Arc::new("another".to_owned()),
            cache.epoch(),
        );
        check(&cache);
        cache.forget(Topic::Company, &seller);
        assert!(cache.get(&other).is_some());
        assert_eq!(cache.forget(Topic::Company, "another"), 1);
        check(&cache);
        cache.clear();
        assert_eq!(cached(&cache), 0);
        check(&cache);
    }
}
