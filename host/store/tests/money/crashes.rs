//! A host that dies between any two steps, simulated in this process: its runtime is dropped with everything that is under way in it.
//!
//! On SQLite the next host opens either the same file, or a copy of the database and its log as they were at that instant, which is what
//! the death of a process leaves. What the clients were told is all that survives of a host, and the books must agree with it.

use crate::support::{Market, credits, later, market, open, postgres};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use souk_domain::ids::{CompanyId, ExecutionId, PayoutId, TopUpId, TransactionId};
use souk_domain::money::UsdCents;
use souk_store::executions::Billing;
use souk_store::idempotency::{self, Claim, Scope, Ticket};
use souk_store::ledger::{self, Account};
use souk_store::payouts::{self, AdvanceError, Method, PayoutStatus, RequestError};
use souk_store::reconciliation::reconcile;
use souk_store::refunds::{RefundError, refund};
use souk_store::teller::{HoldError, IdempotencyEntry, PostError, Receipt, Teller};
use souk_store::top_ups::{self, NewTopUp};
use souk_store::{Db, Fields, StoreError, db, maturity, payment_events};
use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

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

struct Client {
    db: Db,
    teller: Teller,
    setting: Arc<Setting>,
    notes: Arc<Mutex<Notes>>,
    told: Arc<Notify>,
    random: StdRng,
}

impl Client {
    async fn run(mut self) {
        loop {
            let choice = self.random.random_range(0..24);
            let result = match choice {
                0..=11 => self.charge().await,
                12 => self.void().await,
                13..=15 => self.refund().await,
                16 | 17 => self.top_up().await,
                18 | 19 => self.grant().await,
                20 => self.mature().await,
                21 => self.request_payout().await,
                _ => self.advance_payout().await,
            };
            result.unwrap();
            self.notes.lock().unwrap().told += 1;
            self.told.notify_one();
            for _ in 0..self.random.random_range(0..3) {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn charge(&mut self) -> Result<(), StoreError> {
        let buyer = self.random.random_range(0..BUYERS);
        let amount = self.random.random_range(1..20);
        let market = &self.setting.buyers[buyer];
        let run = market.run(Billing::Charged);
        let id = run.id.clone();
        let mut idempotency = None;
        if self.random.random_bool(0.4) {
            let mut write = self.db.write().await?;
            let Claim::Granted(ticket) = claim(&mut write, market, &id).await? else {
                panic!("a new key is granted")
            };
            write.commit().await?;
            idempotency = Some(IdempotencyEntry {
                company: ticket.scope.company,
                route: ticket.scope.route.to_owned(),
                key: ticket.scope.key,
                ticket: ticket.id,
                status: 200,
                location: None,
                body: format!("answer of {id}"),
                expires_at: later(db::now(), 86_400),
            });
        }
        let hold = match market.hold(&self.teller, amount, &run).await {
            Ok(hold) => hold,
            Err(HoldError::Insufficient { .. }) => return Ok(()),
            Err(error) => panic!("{error}"),
        };
        let charge = Charge {
            buyer,
            amount,
            transaction: hold.transaction().unwrap().clone(),
            is_keyed: idempotency.is_some(),
            fate: Fate::UnderWay,
            refund: None,
        };
        self.notes
            .lock()
            .unwrap()
            .charges
            .insert(id.clone(), charge);
        let posted = self.teller.post(hold, Receipt { run, idempotency }).await;
        let fate = match posted {
            Ok(_) => Fate::Done,
            Err(PostError::Unknown(_)) => Fate::UnderWay,
            Err(_) => Fate::Refused,
        };
        self.notes
            .lock()
            .unwrap()
            .charges
            .get_mut(&id)
            .unwrap()
            .fate = fate;
        Ok(())
    }

    async fn void(&mut self) -> Result<(), StoreError> {
        let market = &self.setting.buyers[self.random.random_range(0..BUYERS)];
        let run = market.run(Billing::Charged);
        let held = market.hold(&self.teller, 5, &run).await;
        tokio::task::yield_now().await;
        drop(held);
        Ok(())
    }

    async fn refund(&mut self) -> Result<(), StoreError> {
        let number = self.random.random_range(0..usize::MAX);
        let chosen = {
            let mut notes = self.notes.lock().unwrap();
            let mut booked: Vec<_> = notes
                .charges
                .iter_mut()
                .filter(|(_, charge)| charge.fate == Fate::Done)
                .collect();
            booked.sort_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
            let count = booked.len();
            booked
                .into_iter()
                .nth(number % count.max(1))
                .map(|(id, charge)| {
                    charge.refund.get_or_insert(Fate::UnderWay);
                    (id.clone(), charge.transaction.clone())
                })
        };
        let Some((id, transaction)) = chosen else {
            return Ok(());
        };
        let mut write = self.db.write().await?;
        match refund(&mut write, &transaction, None, "test", None, db::now()).await {
            Ok(_) => write.commit().await?,
            Err(RefundError::Refunded) => {}
            Err(error) => panic!("{error}"),
        }
        self.notes
            .lock()
            .unwrap()
            .charges
            .get_mut(&id)
            .unwrap()
            .refund = Some(Fate::Done);
        Ok(())
    }

    /// Buys credits; or hears again that the money of an older top-up has come.
    async fn top_up(&mut self) -> Result<(), StoreError> {
        let amount = self.random.random_range(1..30);
        let buyer = self.random.random_range(0..BUYERS);
        let again = self.random.random_bool(0.4);
        let older = {
            let notes = self.notes.lock().unwrap();
            notes
                .top_ups
                .keys()
                .min_by_key(|id| id.as_str().to_owned())
                .cloned()
        };
        let id = match older.filter(|_| again) {
            Some(id) => id,
            None => {
                let id = TopUpId::generate();
                let market = &self.setting.buyers[buyer];
                let new = NewTopUp {
                    id: &id,
                    company: &market.buyer,
                    credits: credits(amount),
                    provider: "stripe",
                    payment_method: None,
                    key: &market.key,
                };
                let mut write = self.db.write().await?;
                top_ups::insert(&mut write, &new, db::now()).await?;
                write.commit().await?;
                let gain = Gain {
                    buyer,
                    amount,
                    fate: Fate::UnderWay,
                };
                self.notes.lock().unwrap().top_ups.insert(id.clone(), gain);
                id
            }
        };
        let event = format!("evt_{}_{id}", self.random.random_range(0..2));
        let mut write = self.db.write().await?;
        if payment_events::note(&mut write, "stripe", &event, "paid", &id, db::now()).await? {
            top_ups::settle(&mut write, &id, &event, None, db::now()).await?;
            write.commit().await?;
        }
        self.notes
            .lock()
            .unwrap()
            .top_ups
            .get_mut(&id)
            .unwrap()
            .fate = Fate::Done;
        Ok(())
    }

    async fn grant(&mut self) -> Result<(), StoreError> {
        let gain = Gain {
            buyer: self.random.random_range(0..BUYERS),
            amount: self.random.random_range(1..40),
            fate: Fate::UnderWay,
        };
        let reason = format!("grant {}", TransactionId::generate_at(db::now()));
        let mut write = self.db.write().await?;
        let buyer = &self.setting.buyers[gain.buyer].buyer;
        let amount = credits(gain.amount);
        // Noted before it is sent, like everything else.
        self.notes
            .lock()
            .unwrap()
            .grants
            .insert(reason.clone(), gain);
        ledger::grant(&mut write, buyer, amount, &reason, None, db::now()).await?;
        write.commit().await?;
        self.notes
            .lock()
            .unwrap()
            .grants
            .get_mut(&reason)
            .unwrap()
            .fate = Fate::Done;
        Ok(())
    }

    async fn mature(&mut self) -> Result<(), StoreError> {
        let mut write = self.db.write().await?;
        let before = db::now();
        maturity::mature(&mut write, &self.setting.buyers[0].seller, before, before).await?;
        write.commit().await
    }

    async fn request_payout(&mut self) -> Result<(), StoreError> {
        let market = &self.setting.buyers[0];
        let amount = Some(UsdCents::new(self.random.random_range(1..400)));
        let mut write = self.db.write().await?;
        let minimum = UsdCents::new(1);
        match payouts::request(
            &mut write,
            &market.seller,
            amount,
            minimum,
            &market.key,
            db::now(),
        )
        .await
        {
            Ok(payout) => {
                write.commit().await?;
                self.notes
                    .lock()
                    .unwrap()
                    .payouts
                    .insert(payout.id, payout.status);
                Ok(())
            }
            Err(RequestError::TooLittle { .. }) => Ok(()),
            Err(error) => panic!("{error}"),
        }
    }

    async fn advance_payout(&mut self) -> Result<(), StoreError> {
        let chosen = {
            let notes = self.notes.lock().unwrap();
            let open = notes
                .payouts
                .iter()
                .filter(|(_, status)| !status.is_final());
            open.map(|(id, _)| id.clone())
                .min_by_key(|id| id.as_str().to_owned())
        };
        let Some(id) = chosen else { return Ok(()) };
        let to = [
            PayoutStatus::Processing,
            PayoutStatus::Paid,
            PayoutStatus::Failed,
        ];
        let to = to[self.random.random_range(0..3)];
        let key = &self.setting.buyers[0].key;
        let mut write = self.db.write().await?;
        let told = match payouts::advance(&mut write, &id, to, None, None, key, db::now()).await {
            Ok(_) => {
                write.commit().await?;
                to
            }
            Err(AdvanceError::State(status)) => status,
            Err(error) => panic!("{error}"),
        };
        let mut notes = self.notes.lock().unwrap();
        let noted = notes.payouts.get_mut(&id).unwrap();
        // Two clients may be told in another order than it happened.
        if !noted.is_final() {
            *noted = told;
        }
        Ok(())
    }
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
    idempotency::claim(write, scope, "f", now, later(now, 60)).await
}

/// Whether the books agree with what the clients know of the hosts that died.
async fn verify(db: &Db, teller: &Teller, setting: &Setting, notes: &Notes) {
    let mut read = db.read().await.unwrap();
    let rows = sqlx::query(
        "SELECT type, execution_id, external_id, description, amount_credits FROM transactions",
    )
    .fetch_all(&mut *read)
    .await
    .unwrap();
    drop(read);
    let mut posted = [0_i64; BUYERS];
    let mut seen: HashMap<(String, String), i64> = HashMap::new();
    for row in &rows {
        let kind = row.text("type").unwrap();
        let name = match kind.as_str() {
            "charge" | "refund" => row.text("execution_id").unwrap(),
            "grant" => row.text("description").unwrap(),
            "maturity" => continue,
            _ => row.text("external_id").unwrap(),
        };
        let amount = row.number("amount_credits").unwrap();
        let earlier = seen.insert((kind.clone(), name.clone()), amount);
        assert!(earlier.is_none(), "{kind} {name} was booked twice");
        let expected = match kind.as_str() {
            "charge" | "refund" => {
                let id = ExecutionId::parse(&name).unwrap();
                let charge = notes.charges.get(&id).expect("somebody asked for it");
                let sign = if kind == "charge" { -1 } else { 1 };
                (charge.buyer, sign * charge.amount)
            }
            "grant" => {
                let grant = notes.grants.get(&name).expect("somebody granted it");
                (grant.buyer, grant.amount)
            }
            "top_up" => {
                let id = TopUpId::parse(name.strip_prefix("top-up:").unwrap()).unwrap();
                let top_up = notes.top_ups.get(&id).expect("somebody bought it");
                (top_up.buyer, top_up.amount)
            }
            _ => continue,
        };
        assert_eq!(amount, expected.1, "{kind} {name}");
        posted[expected.0] += amount;
    }
    let is_booked = |kind: &str, name: &str| seen.contains_key(&(kind.to_owned(), name.to_owned()));
    for (id, charge) in &notes.charges {
        let booked = is_booked("charge", id.as_str());
        match charge.fate {
            Fate::Done => assert!(booked, "{id} was answered and is not booked"),
            Fate::Refused => assert!(!booked, "{id} was refused and is booked"),
            Fate::UnderWay => {}
        }
        let refunded = is_booked("refund", id.as_str());
        assert!(
            charge.refund != Some(Fate::Done) || refunded,
            "the refund of {id} is missing"
        );
        assert!(
            charge.refund.is_some() || !refunded,
            "{id} was refunded by nobody"
        );
        if charge.is_keyed {
            let mut write = db.write().await.unwrap();
            match claim(&mut write, &setting.buyers[charge.buyer], id)
                .await
                .unwrap()
            {
                Claim::Done(answer) => {
                    assert!(booked, "an answer without its charge: {id}");
                    assert_eq!(answer.body, format!("answer of {id}"));
                }
                Claim::Granted(Ticket { .. }) => {
                    assert!(!booked, "a charge without its answer: {id}")
                }
                other => panic!("{id}: {other:?}"),
            }
        }
    }
    for (reason, grant) in &notes.grants {
        assert!(
            grant.fate != Fate::Done || is_booked("grant", reason),
            "{reason} is missing"
        );
    }
    for (id, top_up) in &notes.top_ups {
        let booked = is_booked("top_up", &format!("top-up:{id}"));
        assert!(
            top_up.fate != Fate::Done || booked,
            "top-up {id} is missing"
        );
    }
    let mut read = db.read().await.unwrap();
    for (id, told) in &notes.payouts {
        let payout = payouts::find(&mut read, id)
            .await
            .unwrap()
            .expect("a payout is missing");
        assert!(!told.is_final() || payout.status == *told, "payout {id}");
        assert!(is_booked("payout", &format!("payout:{id}")));
        let ended = format!("payout:{id}:end");
        assert_eq!(
            is_booked("payout_paid", &ended),
            payout.status == PayoutStatus::Paid
        );
        assert_eq!(
            is_booked("payout_return", &ended),
            payout.status == PayoutStatus::Failed
        );
    }
    for (market, posted) in setting.buyers.iter().zip(posted) {
        let standing = teller.standing(&market.buyer).await.unwrap();
        assert_eq!(
            (standing.posted, standing.held),
            (posted, 0),
            "granted, bought and refunded, less what was charged"
        );
        let account = Account::Buyer(market.buyer.clone());
        assert_eq!(
            ledger::balance(&mut read, &account).await.unwrap().get(),
            posted * 50
        );
    }
    drop(read);
    let books = reconcile(db, db::now()).await.unwrap();
    assert!(books.is_balanced() && books.open_holds == 0, "{books:?}");
    assert_eq!(teller.held_in_all().await.unwrap(), 0);
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
                begun.elapsed() < Duration::from_secs(10),
                "a dead host's transactions stay"
            );
            drop(read);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let mut write = db.write().await.unwrap();
    if db.is_shared() {
        // Time passes.
        for sql in [
            "UPDATE holds SET expires_at = 1",
            "UPDATE idempotency SET expires_at = 1 WHERE status IS NULL",
        ] {
            sqlx::query(sql).execute(&mut *write).await.unwrap();
        }
    } else {
        idempotency::release_all(&mut write).await.unwrap();
    }
    write.commit().await.unwrap();
    let teller = Teller::open(&db).await.unwrap();
    let begun = Instant::now();
    while teller.held_in_all().await.unwrap() > 0 {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
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

/// How many charges were answered, and of those that were under way when their host died, how many are booked and how many are not.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    answered: usize,
    booked: usize,
    not_booked: usize,
}

async fn tally(db: &Db, notes: &Notes) -> Tally {
    let mut tally = Tally::default();
    let mut read = db.read().await.unwrap();
    for (id, charge) in &notes.charges {
        let found = sqlx::query("SELECT id FROM executions WHERE id = $1")
            .bind(id.as_str())
            .fetch_optional(&mut *read)
            .await
            .unwrap();
        match (charge.fate, found) {
            (Fate::Done, _) => tally.answered += 1,
            (_, Some(_)) => tally.booked += 1,
            (_, None) => tally.not_booked += 1,
        }
    }
    tally
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
                let waited = tokio::time::timeout(Duration::from_secs(20), told.notified()).await;
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
    let mut write = db.write().await.unwrap();
    payouts::set_method(&mut write, &one.seller, &method, db::now())
        .await
        .unwrap();
    write.commit().await.unwrap();
    let buyers = (0..BUYERS).map(|_| Market {
        buyer: CompanyId::generate(),
        seller: one.seller.clone(),
        product: one.product.clone(),
        key: one.key.clone(),
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
