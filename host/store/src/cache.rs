//! A cache that never serves what a committed transaction has replaced.
//!
//! Every invalidation advances an epoch. A value that was loaded across an invalidation is handed to its caller, whose request was concurrent
//! with the change, but not kept. Loads are not shared between callers: a request that begins after a change must not receive a load that
//! began before it. While the store cannot vouch for other hosts' changes, the cache is bypassed.

use crate::changes::Change;
use crate::db::Db;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Threads that read different keys rarely meet on one lock.
const SHARDS: usize = 16;

/// Values by key, shared by all threads. Cheap to clone.
pub struct Cache<K, V> {
    inner: Arc<Inner<K, V>>,
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

struct Inner<K, V> {
    shards: [RwLock<HashMap<K, Arc<V>>>; SHARDS],
    hasher: RandomState,
    epoch: AtomicU64,
    coherent: Arc<AtomicBool>,
    shard_max: usize,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static, V: Send + Sync + 'static> Cache<K, V> {
    /// A cache of at most about `entries_max` values that drops every entry for which `concerns(change, key, value)` holds whenever a
    /// change is committed, by this host or another one. `concerns` is not asked about [`Change::Everything`].
    pub fn new(
        db: &Db,
        entries_max: usize,
        concerns: impl Fn(&Change, &K, &V) -> bool + Send + Sync + 'static,
    ) -> Self {
        let inner = Arc::new(Inner {
            shards: std::array::from_fn(|_| RwLock::default()),
            hasher: RandomState::new(),
            epoch: AtomicU64::new(0),
            coherent: db.coherent(),
            shard_max: entries_max.div_ceil(SHARDS).max(1),
        });
        let cache = Self { inner };
        let weak = Arc::downgrade(&cache.inner);
        db.on_change(Box::new(move |change| {
            if let Some(inner) = weak.upgrade() {
                Cache { inner }.invalidate(|key, value| {
                    *change == Change::Everything || concerns(change, key, value)
                });
            }
        }));
        cache
    }

    /// The cached value, if there is one and it is known to be current.
    pub fn get<Q>(&self, key: &Q) -> Option<Arc<V>>
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if !self.inner.coherent.load(Ordering::SeqCst) {
            return None;
        }
        self.shard(key).read().get(key).cloned()
    }

    /// The cached value, or what `load` reads from the store. An absent value (an error) is not cached.
    pub async fn get_or_load<E, F>(&self, key: K, load: impl FnOnce() -> F) -> Result<Arc<V>, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        if let Some(value) = self.get(&key) {
            return Ok(value);
        }
        let epoch = self.inner.epoch.load(Ordering::SeqCst);
        let value = Arc::new(load().await?);
        self.keep(key, &value, epoch);
        Ok(value)
    }

    /// The epoch to pass to [`Cache::keep`] later: take it before reading from the store.
    pub fn epoch(&self) -> u64 {
        self.inner.epoch.load(Ordering::SeqCst)
    }

    /// Keeps `value`, which was read after `epoch` was taken, unless anything was invalidated since.
    pub fn keep(&self, key: K, value: &Arc<V>, epoch: u64) {
        if !self.inner.coherent.load(Ordering::SeqCst) {
            return;
        }
        let mut shard = self.shard(&key).write();
        // Checked under the lock: an invalidation advances the epoch first and then takes every lock.
        if self.inner.epoch.load(Ordering::SeqCst) != epoch {
            return;
        }
        if shard.len() >= self.inner.shard_max
            && let Some(victim) = shard.keys().next().cloned()
        {
            shard.remove(&victim);
        }
        shard.insert(key, value.clone());
    }

    /// Drops every entry for which `concerned` holds.
    pub fn invalidate(&self, concerned: impl Fn(&K, &V) -> bool) {
        self.inner.epoch.fetch_add(1, Ordering::SeqCst);
        for shard in &self.inner.shards {
            shard.write().retain(|key, value| !concerned(key, value));
        }
    }

    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> &RwLock<HashMap<K, Arc<V>>> {
        &self.inner.shards[self.inner.hasher.hash_one(key) as usize % SHARDS]
    }
}
