//! What a cache knows of its values beside them: what they were made from, which of them are large, and whose those are. Knows nothing of the
//! values, nor of threads.

use crate::changes::Topic;
use hashbrown::HashMap;
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// How many owners have room for as many large values as one may have: fewer never keep another one's out.
pub(super) const OWNERS: usize = 8;

/// From what values were made from to their keys, and back; and which of them are large.
pub(super) struct Index<K> {
    pub(super) keys: HashMap<Topic, HashMap<Arc<str>, HashSet<K>>>,
    pub(super) origins: HashMap<K, Vec<(Topic, Arc<str>)>>,
    large: HashMap<K, Large>,
    /// Of all of these.
    pub(super) large_bytes: usize,
    /// By owner: who has none is not there.
    pub(super) owned: HashMap<Arc<str>, Owned<K>>,
}

/// What is known of a large value.
struct Large {
    owner: Arc<str>,
    bytes: usize,
}

/// The large values of one owner.
pub(super) struct Owned<K> {
    pub(super) bytes: usize,
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
    pub(super) fn insert(&mut self, key: &K, origins: Vec<(Topic, Arc<str>)>) {
        self.remove(key);
        for (topic, id) in &origins {
            let keys = self.keys.entry(*topic).or_default();
            keys.entry(id.clone()).or_default().insert(key.clone());
        }
        self.origins.insert(key.clone(), origins);
    }

    /// Of a large value that has just been inserted.
    pub(super) fn weigh(&mut self, key: &K, owner: &str, bytes: usize) {
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
    pub(super) fn in_the_way(&self, owner: &str, bytes: usize, bytes_max: usize) -> Option<K> {
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

    pub(super) fn remove<Q>(&mut self, key: &Q)
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
    pub(super) fn take(&mut self, topic: Topic, id: &str) -> HashSet<K> {
        let by_id = self.keys.get_mut(&topic);
        by_id.and_then(|by_id| by_id.remove(id)).unwrap_or_default()
    }
}
