//! Caches never serve what a commit has replaced, on this host or another, and none is used by a host that cannot hear.

mod support;

use souk_domain::ids::CompanyId;
use souk_store::{Cache, Change, Db, StoreError, Topic, companies, db};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::{company, open, postgres, roll_back, sqlite, stores};

fn handles(db: &Db) -> Cache<CompanyId, String> {
    Cache::new(db, 100, [Topic::Company], |id: &CompanyId, _: &String| {
        [id.as_str().into()]
    })
}

async fn cached_handle(db: &Db, cache: &Cache<CompanyId, String>, id: &CompanyId) -> String {
    let (db, company) = (db.clone(), id.clone());
    let load = async move || -> Result<String, StoreError> {
        let mut read = db.read().await?;
        Ok(companies::get(&mut read, &company)
            .await?
            .ok_or(StoreError::NotFound)?
            .handle)
    };
    cache
        .get_or_load(id.clone(), load)
        .await
        .unwrap()
        .to_string()
}

async fn rename(db: &Db, id: &CompanyId, handle: &str) {
    db.write(async |write| -> Result<_, StoreError> {
        let company = companies::get(write, id).await.unwrap().unwrap();
        companies::update(
            write,
            &companies::Company {
                handle: handle.into(),
                ..company
            },
            db::now(),
        )
        .await
        .unwrap();
        Ok(())
    })
    .await
    .unwrap();
}

/// What was cached is gone when the commit that replaces it returns.
#[tokio::test]
async fn caches_forget_before_a_commit_returns() {
    for store in stores().await {
        let founded = company(&store.db, "one").await;
        let id = &founded.company.id;
        let cache = handles(&store.db);
        wait_coherent(&store.db).await;
        assert_eq!(cached_handle(&store.db, &cache, id).await, "one");
        assert!(cache.get(id).is_some(), "{}", store.name);
        for handle in ["two", "three", "four"] {
            rename(&store.db, id, handle).await;
            assert!(cache.get(id).is_none());
            assert_eq!(cached_handle(&store.db, &cache, id).await, handle);
        }
    }
}

/// A value that was read before a change and arrives after it is not kept.
#[tokio::test]
async fn loads_that_raced_a_change_are_not_kept() {
    let store = sqlite().await;
    let id = company(&store.db, "one").await.company.id;
    let cache = handles(&store.db);
    let db = store.db.clone();
    let load = async || -> Result<String, StoreError> {
        let before = "one".to_owned();
        rename(&db, &id, "two").await;
        Ok(before)
    };
    assert_eq!(*cache.get_or_load(id.clone(), load).await.unwrap(), "one");
    assert!(cache.get(&id).is_none(), "a stale value was kept");
    assert_eq!(cached_handle(&store.db, &cache, &id).await, "two");
}

/// A commit whose caller went away still tells the caches.
#[tokio::test]
async fn cancelled_commits_still_announce() {
    for store in stores().await {
        let id = company(&store.db, "one").await.company.id;
        wait_coherent(&store.db).await;
        let cache = handles(&store.db);
        cached_handle(&store.db, &cache, &id).await;
        let is_done = AtomicBool::new(false);
        let mut renaming = Box::pin(store.db.write(async |write| {
            let company = companies::get(write, &id).await?;
            let company = companies::Company {
                handle: "two".into(),
                ..company.ok_or(StoreError::NotFound)?
            };
            companies::update(write, &company, db::now()).await?;
            is_done.store(true, Ordering::SeqCst);
            Ok::<_, StoreError>(())
        }));
        // Until the commit is on its way; then its caller goes away.
        while !is_done.load(Ordering::SeqCst) {
            assert!(futures_util::poll!(&mut renaming).is_pending());
            tokio::task::yield_now().await;
        }
        drop(renaming);
        if store.name == "postgres" {
            // Cancelled before the commit was sent: nothing happened.
            continue;
        }
        until(|| cache.get(&id).is_none()).await;
        assert_eq!(
            cached_handle(&store.db, &cache, &id).await,
            "two",
            "{}",
            store.name
        );
    }
}

async fn wait_coherent(db: &Db) {
    until(|| db.is_coherent()).await;
}

/// Hosts that share a store hear of each other's changes; a host that cannot hear uses no cache, and catches up when it can again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_hear_of_each_other() {
    let store = postgres().await;
    let other = open(&store.url).await;
    let id = company(&store.db, "one").await.company.id;
    let cache = handles(&other);
    wait_coherent(&other).await;
    // The notification of the founding may still be on its way; a load that it overtakes is not kept.
    while cache.get(&id).is_none() {
        assert_eq!(cached_handle(&other, &cache, &id).await, "one");
    }
    // Long enough for the listener to ask whether the server is still there; silence is not a loss.
    let heard = count_losses(&other);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(heard.load(Ordering::SeqCst), 0);
    assert!(other.is_coherent());
    rename(&store.db, &id, "two").await;
    until(|| cache.get(&id).is_none()).await;
    assert_eq!(cached_handle(&other, &cache, &id).await, "two");

    let lost = count_losses(&other);
    let cut_off = async {
        roll_back(&store.db, async |write| {
            sqlx::query("SELECT CAST(COUNT(pg_terminate_backend(pid)) AS BIGINT) FROM pg_stat_activity WHERE (query LIKE 'LISTEN%' OR query = 'SELECT 1') AND datname = current_database()")
                .execute(&mut **write)
                .await
                .unwrap();
        }).await;
    };
    // What a host that hears nothing finds in its cache, in which there is something.
    let deaf = async {
        loop {
            let is_deaf = !other.is_coherent();
            let found = cache.get(&id);
            if is_deaf && !other.is_coherent() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    while cache.get(&id).is_none() {
        assert_eq!(cached_handle(&other, &cache, &id).await, "two");
    }
    let deaf = tokio::time::timeout(Duration::from_secs(30), deaf);
    let (found, ()) = tokio::join!(deaf, cut_off);
    assert_eq!(found.expect("it never noticed"), None);
    until(|| lost.load(Ordering::SeqCst) > 0).await;
    wait_coherent(&other).await;
    while cache.get(&id).is_none() {
        assert_eq!(cached_handle(&other, &cache, &id).await, "two");
    }
    rename(&store.db, &id, "three").await;
    until(|| cache.get(&id).is_none()).await;
    assert_eq!(cached_handle(&other, &cache, &id).await, "three");
}

/// Counts how often the host may have missed changes from now on.
fn count_losses(db: &Db) -> Arc<AtomicU32> {
    let losses = Arc::new(AtomicU32::new(0));
    let counter = losses.clone();
    db.on_change(Box::new(move |change| {
        if *change == Change::Everything {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    }));
    losses
}

/// A loaded machine gets a thousand times as long as it takes.
async fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
