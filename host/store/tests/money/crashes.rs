//! A host that dies between any two steps, simulated in this process: its runtime is dropped with everything that is under way in it.
//!
//! On SQLite the next host opens either the same file, or a copy of the database and its log as they were at that instant, which is what
//! the death of a process leaves. What the clients were told is all that survives of a host, and the books must agree with it.

mod client;
mod verdict;

use crate::support::{Market, credits, later, market, mature, open, postgres, roll_back};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use souk_domain::ids::{CompanyId, ExecutionId, PayoutId, TopUpId, TransactionId};
use souk_domain::money::UsdCents;
use souk_store::executions::Billing;
use souk_store::idempotency::{self, Claim, KeptAnswer, Scope, Ticket};
use souk_store::ledger::{self, Account};
use souk_store::payouts::{self, AdvanceError, Method, PayoutStatus, RequestError};
use souk_store::reconciliation::reconcile;
use souk_store::refunds::{RefundError, refund};
use souk_store::teller::{HoldError, IdempotencyEntry, PostError, Receipt, Teller};
use souk_store::top_ups::{self, NewTopUp};
use souk_store::{Db, Fields, StoreError, db, payment_events};
use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

use client::Client;
use verdict::{Tally, tally, verify};

/// One host's life and death each; the last one ends in peace.
const HOSTS: u64 = 4;
const CLIENTS: u64 = 6;
const BUYERS: usize = 2;
const SQLITE_SEEDS: u64 = 30;
const POSTGRES_SEEDS: u64 = 6;

/// What a client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing yet.
    UnderWay,
    Done,
    Refused,
}

#[derive(Debug, Clone)]
struct Charge {
    buyer: usize,
    amount: i64,
    transaction: TransactionId,
    is_keyed: bool,
    fate: Fate,
    refund: Option<Fate>,
}

#[derive(Debug, Clone)]
struct Gain {
    buyer: usize,
    amount: i64,
    fate: Fate,
}

/// All that survives of a host: what its clients know.
#[derive(Debug, Clone, Default)]
struct Notes {
    /// What clients were told so far, a count.
    told: u64,
    charges: HashMap<ExecutionId, Charge>,
    grants: HashMap<String, Gain>,
    top_ups: HashMap<TopUpId, Gain>,
    payouts: HashMap<PayoutId, PayoutStatus>,
}

struct Setting {
    buyers: Vec<Market>,
}

/// Every charge has a key of its own.
async fn claim(
    write: &mut souk_store::Write,
    market: &Market,
    id: &ExecutionId,
) -> Result<Claim, StoreError> {
    let scope = Scope {
        company: market.buyer.clone(),
        route: "/runs",
        key: id.to_string(),
    };
    let now = db::now();
    idempotency::claim(
        write,
        scope,
        "f",
        now,
        later(now, 60),
        idempotency::COMPANY_BYTES_MAX,
    )
    .await
}

/// What a host does when it starts; on a shared store, when the holds and claims of the one that died have expired.
async fn start(url: &str) -> (Db, Teller) {
    let db = open(url).await;
    if db.is_shared() {
        // What was sent before the crash takes effect, or not, but soon.
        let begun = Instant::now();
        loop {
            let mut read = db.read().await.unwrap();
            let busy = sqlx::query(
                "SELECT COUNT(*) AS busy FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'",
            )
            .fetch_one(&mut *read)
            .await
            .unwrap();
            if busy.number("busy").unwrap() == 0 {
                break;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "a dead host's transactions stay"
            );
            drop(read);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    db.write(async |write| -> Result<_, StoreError> {
        if db.is_shared() {
            // Time passes.
            for sql in [
                "UPDATE holds SET expires_at = 1",
                "UPDATE idempotency SET expires_at = 1 WHERE status IS NULL",
            ] {
                sqlx::query(sql).execute(&mut **write).await.unwrap();
            }
        } else {
            idempotency::release_all(write).await.unwrap();
        }
        Ok(())
    })
    .await
    .unwrap();
    let teller = Teller::open(&db).await.unwrap();
    let begun = Instant::now();
    while teller.held_in_all().await.unwrap() > 0 {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "holds stay for ever"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (db, teller)
}

/// The database and its logs, as they are now. Only SQLite's log grows between two checkpoints.
fn copy(from: &Path, to: &Path) {
    let beside = |path: &Path, suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name
    };
    let log = |path: &Path| beside(path, "-wal");
    // First: what is booked meanwhile is then in both.
    for suffix in ["-charges-0", "-charges-1"] {
        if let Ok(charges) = std::fs::read(beside(from, suffix)) {
            std::fs::write(beside(to, suffix), charges).unwrap();
        }
    }
    loop {
        let before = std::fs::read(from).unwrap();
        let tail = std::fs::read(log(from)).unwrap_or_default();
        let after = std::fs::read(from).unwrap();
        let header = std::fs::read(log(from)).unwrap_or_default();
        if before == after && header.get(..32) == tail.get(..32) {
            std::fs::write(to, before).unwrap();
            std::fs::write(log(to), tail).unwrap();
            return;
        }
    }
}

/// Simulates with every seed, and sees to it that hosts died while they were at work.
fn simulate_all(count: u64, store: impl Fn() -> (String, Option<PathBuf>)) {
    let mut all = Tally::default();
    let seeds = seeds(count);
    for seed in &seeds {
        let (url, file) = store();
        let one = simulate(*seed, url, file);
        all.answered += one.answered;
        all.booked += one.booked;
        all.not_booked += one.not_booked;
    }
    println!("{} seeds: {all:?}", seeds.len());
    // How many a dead host booked without telling is a matter of timing.
    assert!(seeds.len() == 1 || (all.answered > 0 && all.not_booked > 0));
}

/// Tells which seed failed.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "seed {}: run it again with SOUK_TEST_SEED={}",
                self.0, self.0
            );
        }
    }
}

/// One store and the hosts that live and die on it. `file`: of a SQLite store, in a directory of its own.
fn simulate(seed: u64, mut url: String, mut file: Option<PathBuf>) -> Tally {
    let _seed = Seed(seed);
    let mut random = StdRng::seed_from_u64(seed);
    let mut notes = Notes::default();
    let mut setting: Option<Arc<Setting>> = None;
    for host in 0..HOSTS {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .event_interval(1)
            .global_queue_interval(1)
            .build()
            .unwrap();
        let next = file
            .as_ref()
            .map(|file| file.with_file_name(format!("copy {host}.db")));
        let copy_to = next.filter(|_| random.random_bool(0.5));
        let until = notes.told + random.random_range(1..60);
        let ticks = random.random_range(0..60);
        let pause = Duration::from_micros(if random.random_bool(0.5) {
            0
        } else {
            random.random_range(0..3_000)
        });
        let client_seed: u64 = random.random();
        notes = runtime.block_on(async {
            let (db, teller) = start(&url).await;
            if setting.is_none() {
                setting = Some(Arc::new(found(&db).await));
            }
            let setting = setting.clone().unwrap();
            verify(&db, &teller, &setting, &notes).await;
            let shared = Arc::new(Mutex::new(notes.clone()));
            let told = Arc::new(Notify::new());
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let client = Client {
                        db: db.clone(),
                        teller: teller.clone(),
                        setting: setting.clone(),
                        notes: shared.clone(),
                        told: told.clone(),
                        random: StdRng::seed_from_u64(client_seed.wrapping_add(number)),
                    };
                    tokio::spawn(client.run())
                })
                .collect();
            while shared.lock().unwrap().told < until {
                let waited = tokio::time::timeout(Duration::from_secs(60), told.notified()).await;
                assert!(waited.is_ok(), "the host stands still");
            }
            for _ in 0..ticks {
                tokio::task::yield_now().await;
            }
            let begun = Instant::now();
            while begun.elapsed() < pause {
                tokio::task::yield_now().await;
            }
            assert!(
                clients.iter().all(|client| !client.is_finished()),
                "a client failed"
            );
            // From here on nobody is told anything any more.
            let left = shared.lock().unwrap().clone();
            if let (Some(from), Some(to)) = (&file, &copy_to) {
                copy(from, to);
            }
            left
        });
        drop(runtime);
        if let Some(to) = copy_to {
            url = format!("sqlite:{}", to.display());
            file = Some(to);
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (db, teller) = start(&url).await;
        verify(&db, &teller, &setting.unwrap(), &notes).await;
        let tally = tally(&db, &notes).await;
        db.close().await;
        tally
    })
}

async fn found(db: &Db) -> Setting {
    let one = market(db, 0).await;
    let method = Method {
        kind: "bank_account".into(),
        account_holder: "S".into(),
        sealed_destination: vec![1],
        last4: "1234".into(),
    };
    db.write(async |write| payouts::set_method(write, &one.seller, &method, db::now()).await)
        .await
        .unwrap();
    let buyers = (0..BUYERS).map(|_| Market {
        buyer: CompanyId::generate(),
        seller: one.seller.clone(),
        product: one.product.clone(),
        actor: one.actor.clone(),
    });
    Setting {
        buyers: buyers.collect(),
    }
}

/// These many, or as many as the environment asks for, or the one that it names.
fn seeds(count: u64) -> Vec<u64> {
    let asked = |name| {
        std::env::var(name)
            .ok()
            .map(|number| number.parse().unwrap())
    };
    match asked("SOUK_TEST_SEED") {
        Some(seed) => vec![seed],
        None => (0..asked("SOUK_TEST_SEEDS").unwrap_or(count)).collect(),
    }
}

/// A host that has its store to itself.
#[test]
fn a_host_that_dies_on_its_file_loses_and_doubles_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let number = Cell::new(0);
    simulate_all(SQLITE_SEEDS, || {
        number.set(number.get() + 1);
        let own = directory.path().join(number.get().to_string());
        std::fs::create_dir(&own).unwrap();
        let file = own.join("souk.db");
        (format!("sqlite:{}", file.display()), Some(file))
    });
}

/// A host that shares its store; its server lives on.
#[test]
fn a_host_that_dies_on_a_server_loses_and_doubles_nothing() {
    simulate_all(POSTGRES_SEEDS, || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let url = runtime.block_on(async {
            let store = postgres().await;
            store.db.close().await;
            store.url
        });
        (url, None)
    });
}
