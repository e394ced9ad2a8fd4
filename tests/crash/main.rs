//! Ending the host under charged load, by force and by request: the ledger holds every answered charge exactly once, and nothing
//! else but what was in flight.
//!
//! `SOUK_CRASH_ROUNDS` sets how often the host is killed (6 unless told; a release deserves 50). Start reading at [`rounds`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use souk_tests::host::Builder;
use souk_tests::{Answer, Client, Company, PgCluster, TestHost};

const ROUNDS: usize = 6;
const STOPS: usize = 3;
const CLIENTS: usize = 16;
const PRICE: i64 = 2;
/// A statement, and its deadline in milliseconds.
const QUICK: (&str, u32) = ("SELECT n FROM t", 2_000);
/// Runs that wait for each other, so that some end while a drain of one second does.
const SLOW: (&str, u32) = ("SELECT n FROM t, pg_sleep(random() * 0.8)", 60_000);
const CREDITS: i64 = 1_000_000;
/// Claims and holds of a host that died lapse ten seconds after their run's deadline, two seconds; a loaded machine gets much longer.
const PATIENCE: Duration = Duration::from_secs(120);

fn rounds_wanted() -> usize {
    match std::env::var("SOUK_CRASH_ROUNDS") {
        Ok(text) => text.parse().expect("SOUK_CRASH_ROUNDS is a number"),
        Err(_) => ROUNDS,
    }
}

/// What an answer says about its charge.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Charge {
    transaction: String,
    execution: String,
    replayed: bool,
}

/// One paid execution; `None` when there is no answer.
async fn pay(client: &Client, path: &str, key: Option<&str>) -> Option<Charge> {
    let mut request = client.request(Method::POST, path).json(&json!({}));
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let response = request.send().await.ok()?;
    let status = response.status();
    let replayed = response.headers().contains_key("idempotency-replayed");
    let body: Value = response.json().await.ok()?;
    let text = |pointer: &str| match body.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        other => panic!("{pointer} is {other:?} in {body}"),
    };
    match status.as_u16() {
        200 => {
            assert_eq!(body["meta"]["credits_used"], PRICE, "{body}");
            Some(Charge {
                transaction: text("/meta/transaction_id"),
                execution: text("/data/execution_id"),
                replayed,
            })
        }
        // The draining or starting host, or the first attempt still in flight: not answered.
        409 | 502 | 503 => None,
        other => panic!("{other}: {body}"),
    }
}

/// What a client of the load saw.
#[derive(Default)]
struct Seen {
    answered: Vec<Charge>,
    /// Keys of requests without an answer.
    unanswered: Vec<String>,
    /// Requests without a key and without an answer.
    cut: usize,
}

/// What the clients of a load have in common.
#[derive(Default)]
struct Run {
    stop: AtomicBool,
    answered: AtomicUsize,
}

/// Calls until told to stop or left without an answer; with a `prefix`, every call has an idempotency key.
async fn load(client: Client, path: String, prefix: Option<String>, run: Arc<Run>) -> Seen {
    let mut seen = Seen::default();
    for number in 0.. {
        if run.stop.load(Ordering::Relaxed) {
            break;
        }
        let key = prefix.as_ref().map(|prefix| format!("{prefix}-{number}"));
        match pay(&client, &path, key.as_deref()).await {
            Some(charge) => {
                seen.answered.push(charge);
                run.answered.fetch_add(1, Ordering::Relaxed);
            }
            None => {
                seen.cut += usize::from(key.is_none());
                seen.unanswered.extend(key);
                break;
            }
        }
    }
    seen
}

/// A line of the buyer's statement.
#[derive(Debug)]
struct Line {
    transaction: String,
    execution: String,
    credits: i64,
    balance_after: i64,
}

/// A market with one paid asset, and one buyer.
struct Market {
    host: TestHost,
    buyer: Company,
    path: String,
}

impl Market {
    async fn open(host: TestHost, (sql, timeout_ms): (&str, u32)) -> Market {
        let cluster = PgCluster::shared().await;
        let database = cluster
            .database("CREATE TABLE t (n bigint); INSERT INTO t VALUES (7)")
            .await;
        let seller = host.company("seller").await;
        let buyer = host.buyer("buyer", CREDITS as u64).await;
        let keys = buyer.client.get(&buyer.path("/api-keys")).await.expect(200);
        let key_path = buyer.path(&format!("/api-keys/{}", keys.text("/data/0/id")));
        buyer
            .client
            .patch(&key_path, json!({"rate_limit": 1_000_000_000}))
            .await
            .expect(200);
        let connection = seller.postgres(cluster, &database).await;
        let asset = seller
            .asset(
                &connection,
                json!({"sql_logic": sql, "timeout_ms": timeout_ms}),
            )
            .await;
        seller.publish(&asset, PRICE as u64).await;
        let path = buyer.path(&format!("/assets/{asset}/execute"));
        Market { host, buyer, path }
    }

    /// The buyer as a client of the host where it runs now.
    fn client(&self) -> Client {
        self.host.client(&self.buyer.key)
    }

    /// Charged load until `end` has ended the host. With `keys`, every other client can ask again: such charges are booked with their
    /// answer, those of the others (on SQLite) logged first.
    async fn under_load(
        &mut self,
        keys: Option<&str>,
        lasting: Duration,
        end: impl AsyncFnOnce(&mut TestHost),
    ) -> Seen {
        let run = Arc::new(Run::default());
        let client = self.client();
        let tasks: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let prefix = keys
                    .filter(|_| number % 2 == 0)
                    .map(|prefix| format!("{prefix}-client{number}"));
                let (client, path) = (client.clone(), self.path.clone());
                tokio::spawn(load(client, path, prefix, Arc::clone(&run)))
            })
            .collect();
        tokio::time::sleep(lasting).await;
        // A machine that is busy with other tests may need longer for the first answer.
        let patience = Instant::now() + PATIENCE;
        while run.answered.load(Ordering::Relaxed) == 0 && Instant::now() < patience {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        end(&mut self.host).await;
        run.stop.store(true, Ordering::Relaxed);
        let mut all = Seen::default();
        for task in tasks {
            let seen = task.await.expect("no panic");
            all.answered.extend(seen.answered);
            all.unanswered.extend(seen.unanswered);
            all.cut += seen.cut;
        }
        let log = || self.host.log();
        assert!(!all.answered.is_empty(), "nothing was answered\n{}", log());
        all
    }

    /// The charges since `from`, newest first, as the statement shows them.
    async fn charges(&self, from: jiff::Timestamp) -> Vec<Line> {
        let mut lines = Vec::new();
        for page in 1.. {
            let path = format!(
                "/credits/transactions?type=charge&per_page=100&page={page}&start_date={from}"
            );
            let answer = self.client().get(&self.buyer.path(&path)).await.expect(200);
            let Some(Value::Array(data)) = answer.body.get("data") else {
                panic!("no statement: {}", answer.body)
            };
            let text = |line: &Value, name: &str| match &line[name] {
                Value::String(text) => text.clone(),
                other => panic!("{name} is {other} in {line}"),
            };
            let number = |line: &Value, name: &str| line[name].as_i64().expect("a number");
            lines.extend(data.iter().map(|line| Line {
                transaction: text(line, "id"),
                execution: text(line, "execution_id"),
                credits: number(line, "amount_credits"),
                balance_after: number(line, "balance_after_credits"),
            }));
            if data.len() < 100 {
                break;
            }
        }
        lines
    }

    /// The credits once nothing is held any more. On a shared store the holds of a host that died are rows, which expire.
    async fn settled(&self) -> Answer {
        let since = Instant::now();
        loop {
            let path = self.buyer.path("/credits");
            let credits = self.client().get(&path).await.expect(200);
            if credits.at("/data/held_credits") == 0 {
                return credits;
            }
            assert!(
                since.elapsed() < PATIENCE,
                "credits are held for ever: {}",
                credits.body
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The whole books after `charged` charges: the balance, the statement's length, and the proof of the ledger.
    async fn prove_books(&self, charged: usize) {
        let credits = self.settled().await;
        let spent = PRICE * charged as i64;
        assert_eq!(
            (
                credits.at("/data/balance_credits"),
                credits.at("/data/total_spent_credits_30d")
            ),
            (&json!(CREDITS - spent), &json!(spent)),
            "{}",
            credits.body
        );
        let path = self
            .buyer
            .path("/credits/transactions?type=charge&per_page=1");
        let statement = self.client().get(&path).await.expect(200);
        assert_eq!(statement.at("/meta/total"), charged, "{}", statement.body);
        let platform = self.host.platform();
        let books = platform.get("/admin/ledger/reconciliation").await;
        let books = books.expect(200);
        for (pointer, expected) in [
            ("/data/balanced", json!(true)),
            ("/data/sum_all_accounts", json!(0)),
            ("/data/mismatches", json!([])),
            ("/data/open_holds", json!(0)),
            ("/data/orphan_holds", json!(0)),
        ] {
            assert_eq!(books.at(pointer), &expected, "{pointer}: {}", books.body);
        }
    }
}

/// Asserts that the statement is in order: every line a charge of the price, none twice, each with what was left after it.
/// Returns executions by transaction.
#[track_caller]
fn read(lines: &[Line]) -> BTreeMap<&str, &str> {
    let mut known = BTreeMap::new();
    let mut executions = BTreeSet::new();
    for line in lines {
        assert_eq!(line.credits, -PRICE, "{line:?}");
        let former = known.insert(line.transaction.as_str(), line.execution.as_str());
        assert_eq!(former, None, "a transaction is there twice: {line:?}");
        let first = executions.insert(line.execution.as_str());
        assert!(first, "an execution was charged twice: {line:?}");
    }
    for pair in lines.windows(2) {
        let [newer, older] = pair else { continue };
        assert_eq!(
            newer.balance_after,
            older.balance_after - PRICE,
            "{newer:?} does not follow {older:?}"
        );
    }
    known
}

/// Asserts that every answered charge is in the statement.
#[track_caller]
fn assert_booked(answered: &[Charge], statement: &BTreeMap<&str, &str>) {
    for charge in answered {
        assert_eq!(
            statement.get(charge.transaction.as_str()),
            Some(&charge.execution.as_str()),
            "an answered charge is not in the ledger: {charge:?}"
        );
    }
}

/// Kills the host under charged load, again and again.
///
/// Every answered charge is in the statement exactly once. What is there beyond them was in flight at the kill: each of those has a
/// client that got no answer, and one with a key gets exactly this charge when it asks again. In the end nothing is held and the books
/// balance.
async fn rounds(host: TestHost) {
    let mut market = Market::open(host, QUICK).await;
    let (mut charged, mut lost_in_all) = (0, 0);
    for round in 0..rounds_wanted() {
        let from = jiff::Timestamp::now();
        let lasting = Duration::from_millis(400 + 37 * (round as u64 % 20));
        let keys = format!("round{round}");
        let seen = market
            .under_load(Some(&keys), lasting, async |host| host.kill())
            .await;
        assert!(seen.unanswered.len() + seen.cut <= CLIENTS);
        market.host.start_again().await;

        let lines = market.charges(from).await;
        let before = read(&lines);
        assert_booked(&seen.answered, &before);
        let answered: BTreeSet<&str> = seen
            .answered
            .iter()
            .map(|charge| charge.transaction.as_str())
            .collect();
        assert_eq!(
            answered.len(),
            seen.answered.len(),
            "two answers, one charge"
        );
        let lost: BTreeSet<&str> = before
            .keys()
            .copied()
            .filter(|transaction| !answered.contains(transaction))
            .collect();
        assert!(
            lost.len() <= seen.unanswered.len() + seen.cut,
            "{} charges without an answer, but {} and {} requests were in flight",
            lost.len(),
            seen.unanswered.len(),
            seen.cut
        );

        let client = market.client();
        let mut retried = Vec::new();
        for key in &seen.unanswered {
            let since = Instant::now();
            retried.push(loop {
                if let Some(charge) = pay(&client, &market.path, Some(key)).await {
                    break charge;
                }
                let log = || market.host.log();
                assert!(
                    since.elapsed() < PATIENCE,
                    "{key} is never answered\n{}",
                    log()
                );
                tokio::time::sleep(Duration::from_millis(100)).await;
            });
        }
        let replayed: BTreeSet<&str> = retried
            .iter()
            .filter(|charge| charge.replayed)
            .map(|charge| charge.transaction.as_str())
            .collect();
        assert!(
            replayed.is_subset(&lost) && lost.len() - replayed.len() <= seen.cut,
            "a retry gets what was charged for it: {replayed:?} of {lost:?}, {} without a key",
            seen.cut
        );

        let lines = market.charges(from).await;
        let after = read(&lines);
        assert_booked(&seen.answered, &after);
        assert_booked(&retried, &after);
        assert_eq!(
            after.len(),
            seen.answered.len() + retried.len() + lost.len() - replayed.len(),
            "a charge that nobody was answered for"
        );
        charged += after.len();
        lost_in_all += lost.len();
        market.prove_books(charged).await;
        println!(
            "round {round}: {} answered, {} in flight of which {} were charged; {charged} charges in all",
            seen.answered.len(),
            seen.unanswered.len() + seen.cut,
            lost.len(),
        );
    }
    println!("{charged} charges, {lost_in_all} of them in flight when the host was killed");
}

/// Stops the host under charged load whose clients cannot ask again: what was charged was answered.
async fn stops(host: TestHost, asset: (&str, u32)) {
    let mut market = Market::open(host, asset).await;
    let mut charged = 0;
    for round in 0..STOPS {
        let from = jiff::Timestamp::now();
        let seen = market
            .under_load(None, Duration::from_secs(2), async |host| {
                let status = host.stop().await;
                assert!(status.success(), "{status}\n{}", host.log());
            })
            .await;
        market.host.start_again().await;
        let lines = market.charges(from).await;
        let statement = read(&lines);
        assert_booked(&seen.answered, &statement);
        assert_eq!(
            statement.len(),
            seen.answered.len(),
            "a charge without an answer"
        );
        let path = market.buyer.path("/credits");
        let credits = market.client().get(&path).await.expect(200);
        assert_eq!(credits.at("/data/held_credits"), 0);
        charged += seen.answered.len();
        market.prove_books(charged).await;
        println!("stop {round}: {} answered", seen.answered.len());
    }
}

async fn postgres() -> Builder {
    let cluster = PgCluster::shared().await;
    let store = cluster.database("SELECT 1").await;
    TestHost::builder().arg("--database-url", cluster.url(&store))
}

/// Rounds of SIGKILL on the embedded store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigkill_under_charged_load_on_sqlite() {
    rounds(TestHost::builder().start().await).await;
}

/// The same on PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigkill_under_charged_load_on_postgres() {
    rounds(postgres().await.start().await).await;
}

/// SIGTERM charges nobody who is not answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_under_charged_load_on_sqlite() {
    stops(TestHost::builder().start().await, QUICK).await;
}

/// The same on PostgreSQL, and it leaves no hold behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_under_charged_load_on_postgres() {
    stops(postgres().await.start().await, QUICK).await;
}

/// A drain that is too short for some of the runs charges those that it answers and no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_drain_under_charged_load_on_sqlite() {
    let host = TestHost::builder().arg("--drain-seconds", "1");
    stops(host.start().await, SLOW).await;
}

/// The same on PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_drain_under_charged_load_on_postgres() {
    let host = postgres().await.arg("--drain-seconds", "1");
    stops(host.start().await, SLOW).await;
}
