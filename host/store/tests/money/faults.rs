//! Processes that are killed and connections that are cut, under charged load.

use crate::support::{
    Market, assert_settled, credits, later, market, open, postgres, sqlite, stores,
};
use souk_domain::ids::{AssetId, CompanyId, ExecutionId, KeyId};
use souk_domain::products::Product;
use souk_store::executions::Billing;
use souk_store::reconciliation::reconcile;
use souk_store::teller::{HoldError, HoldRequest, PostError, Receipt, Teller};
use souk_store::{Fields, StoreError, db};
use std::collections::HashSet;
use std::io::BufRead;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const URL: &str = "SOUK_TEST_CHILD_URL";
const BUYER: &str = "SOUK_TEST_CHILD_BUYER";
const CLIENTS: usize = 16;

/// What the child process does: charges as fast as it can and prints each run once its charge was answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process for sigkill_loses_no_answered_charge"]
async fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let db = open(&url).await;
    let teller = Teller::open(&db).await.unwrap();
    let market = Arc::new(Market {
        buyer: CompanyId::parse(&std::env::var(BUYER).unwrap()).unwrap(),
        seller: CompanyId::generate(),
        product: Product::Asset(AssetId::generate()),
        actor: KeyId::generate().into(),
    });
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (teller, market) = (teller.clone(), market.clone());
            tokio::spawn(async move {
                loop {
                    let run = market.run(Billing::Charged);
                    let id = run.id.clone();
                    let request = HoldRequest {
                        execution: id.clone(),
                        buyer: market.buyer.clone(),
                        amount: credits(1),
                        expires_at: db::now().after(Duration::from_secs(3)),
                    };
                    let hold = teller.hold(request).await.unwrap();
                    teller
                        .post(
                            hold,
                            Receipt {
                                run,
                                idempotency: None,
                            },
                        )
                        .await
                        .unwrap();
                    println!("charged {id}");
                }
            })
        })
        .collect();
    // None of them ends but by a panic.
    futures_util::future::try_join_all(clients).await.unwrap();
}

/// However often the process is killed, every charge that it answered is in the books exactly once, and nothing stays held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigkill_loses_no_answered_charge() {
    for store in stores().await {
        let buyer = market(&store.db, 1_000_000).await.buyer;
        store.db.close().await;
        let url = store.url.clone();
        let _files = store.without_db();
        let mut answered = HashSet::new();
        for round in 0..5 {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["faults::child", "--exact", "--ignored", "--nocapture"])
                .env(URL, &url)
                .env(BUYER, buyer.as_str())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
            let mut before = 0;
            while let Some(Ok(line)) = lines.next() {
                let Some(id) = line.strip_prefix("charged ") else {
                    continue;
                };
                answered.insert(id.to_owned());
                before += 1;
                if before == 50 + round * 37 {
                    child.kill().unwrap();
                }
            }
            child.wait().unwrap();
            assert!(before >= 50, "the child ended early");
        }
        let db = open(&url).await;
        let mut read = db.read().await.unwrap();
        let rows = sqlx::query("SELECT execution_id FROM transactions WHERE type = 'charge'")
            .fetch_all(&mut *read)
            .await
            .unwrap();
        let booked: Vec<String> = rows
            .iter()
            .map(|row| row.text("execution_id").unwrap())
            .collect();
        let distinct: HashSet<_> = booked.iter().cloned().collect();
        assert_eq!(booked.len(), distinct.len(), "a run was charged twice");
        assert!(
            answered.is_subset(&distinct),
            "an answered charge is missing"
        );
        // What was booked but not answered was under way when the process died: at most one a client and round.
        assert!(
            distinct.len() - answered.len() <= CLIENTS * 5,
            "{} of {}",
            answered.len(),
            distinct.len()
        );
        drop(read);
        let teller = Teller::open(&db).await.unwrap();
        let begun = Instant::now();
        while teller.held_in_all().await.unwrap() > 0 {
            let waited = begun.elapsed();
            assert!(waited < Duration::from_secs(60), "holds did not expire");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(
            teller.balance(&buyer).await.unwrap().posted,
            1_000_000 - booked.len() as i64
        );
        assert_settled(&db, &teller).await;
    }
}

/// While the server cuts connections at random, a charge that was answered is booked once, and one that was refused is not booked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_lose_and_double_nothing() {
    let store = postgres().await;
    let market = Arc::new(market(&store.db, 1_000_000).await);
    let teller = Teller::open(&store.db).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (teller, market, stop) = (teller.clone(), market.clone(), stop.clone());
            tokio::spawn(async move {
                let (mut booked, mut refused, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
                while !stop.load(Ordering::SeqCst) {
                    let run = market.run(Billing::Charged);
                    let id = run.id.clone();
                    match market.hold(&teller, 1, &run).await {
                        Ok(hold) => match teller
                            .post(
                                hold,
                                Receipt {
                                    run,
                                    idempotency: None,
                                },
                            )
                            .await
                        {
                            Ok(_) => booked.push(id),
                            Err(PostError::Unknown(_)) => unknown.push(id),
                            Err(_) => refused.push(id),
                        },
                        Err(HoldError::Store(_)) => refused.push(id),
                        Err(error) => panic!("{error}"),
                    }
                }
                (booked, refused, unknown)
            })
        })
        .collect();
    let admin = open(&store.url).await;
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let cut = admin.write(async |write| -> Result<_, StoreError> {
            sqlx::query(
                "SELECT CAST(COUNT(pg_terminate_backend(pid)) AS BIGINT) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5",
            )
            .execute(&mut **write)
            .await?;
            Ok(())
        });
        // Its own connection may be among them.
        cut.await.ok();
    }
    stop.store(true, Ordering::SeqCst);
    let (mut booked, mut refused, mut unknown) = (HashSet::new(), HashSet::new(), HashSet::new());
    for client in clients {
        let (some_booked, some_refused, some_unknown) = client.await.unwrap();
        booked.extend(some_booked);
        refused.extend(some_refused);
        unknown.extend(some_unknown);
    }
    let db = open(&store.url).await;
    let mut read = db.read().await.unwrap();
    let rows = sqlx::query("SELECT execution_id FROM transactions WHERE type = 'charge'")
        .fetch_all(&mut *read)
        .await
        .unwrap();
    let found: HashSet<ExecutionId> = rows
        .iter()
        .map(|row| row.id("execution_id").unwrap())
        .collect();
    println!(
        "{} booked, {} refused, {} unknown",
        booked.len(),
        refused.len(),
        unknown.len()
    );
    assert!(booked.len() > 10, "hardly anything was booked");
    assert_eq!(rows.len(), found.len(), "a run was charged twice");
    assert!(booked.is_subset(&found), "an answered charge is missing");
    assert!(refused.is_disjoint(&found), "a refused charge was booked");
    assert!(
        found
            .iter()
            .all(|id| booked.contains(id) || unknown.contains(id))
    );
    let books = reconcile(&db, later(db::now(), 0)).await.unwrap();
    assert!(books.is_balanced(), "{books:?}");
}

/// A store whose file is gone from under it fails loudly.
#[tokio::test]
async fn a_vanished_directory_is_an_error() {
    let store = sqlite().await;
    let url = format!("{}/nowhere/souk.db", store.url);
    assert!(
        souk_store::Db::open(&souk_store::OpenOptions::new(url))
            .await
            .is_err()
    );
}
