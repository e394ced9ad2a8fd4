//! What a cache serves, what it never does, and what it costs.

use super::index::OWNERS;
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
