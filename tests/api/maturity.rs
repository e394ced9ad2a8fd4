//! What sellers earn is pending at first and becomes payable by itself, on schedule, and once, however many hosts look after it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::{Client, Company, PgCluster, TestHost};
use sqlx::ConnectOptions;
use sqlx::any::AnyConnectOptions;

use crate::charges::slow_asset;
use crate::hosts::MASTER_KEY;

/// A loaded machine gets a hundred times as long as it takes.
const SOON: Duration = Duration::from_secs(60);
const PRICE: i64 = 5;
/// The seller's share of one call: 40 cents a credit.
const SHARE_USD: f64 = 2.0;

/// A seller, and a buyer of its asset.
struct Trade {
    seller: Company,
    buyer: Company,
    asset: String,
}

impl Trade {
    async fn begin(host: &TestHost, name: &str) -> Trade {
        let seller = host.company(&format!("{name}-seller")).await;
        let buyer = host.buyer(&format!("{name}-buyer"), 1_000).await;
        let asset = slow_asset(&seller, PgCluster::shared().await, PRICE as u64).await;
        Trade {
            seller,
            buyer,
            asset,
        }
    }

    /// One charged call through `host`; returns its transaction.
    async fn sell(&self, host: &TestHost) -> String {
        let path = self.buyer.path(&format!("/assets/{}/execute", self.asset));
        let client = host.client(&self.buyer.key);
        let sold = client.post(&path, json!({})).await.expect(200);
        sold.text("/meta/transaction_id")
    }

    /// Pending and payable, in dollars.
    async fn earnings(&self, host: &TestHost) -> (f64, f64) {
        let client = host.client(&self.seller.key);
        let path = self.seller.path("/earnings");
        let earnings = client.get(&path).await.expect(200);
        let dollars = |name: &str| earnings.at(name).as_f64().expect("dollars");
        (dollars("/data/pending_usd"), dollars("/data/payable_usd"))
    }

    async fn until(&self, host: &TestHost, expected: (f64, f64)) {
        let since = Instant::now();
        loop {
            let found = self.earnings(host).await;
            if found == expected {
                return;
            }
            assert!(
                since.elapsed() < SOON,
                "pending and payable are {found:?}, not {expected:?}\n{}",
                host.log()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The host's job is to wait for a week; this moves a charge back by `days` instead.
async fn age(store: &str, transaction: &str, days: i64) {
    sqlx::any::install_default_drivers();
    let options: AnyConnectOptions = store.parse().expect("a store");
    let mut store = options.connect().await.expect("the store opens");
    let moved = sqlx::query("UPDATE transactions SET created_at = created_at - $1 WHERE id = $2")
        .bind(days * 86_400_000_000)
        .bind(transaction)
        .execute(&mut store)
        .await
        .expect("the charge is moved");
    assert_eq!(moved.rows_affected(), 1);
}

/// Cents that were made payable, whether once or often.
async fn made_payable(store: &str) -> (i64, i64) {
    sqlx::any::install_default_drivers();
    let options: AnyConnectOptions = store.parse().expect("a store");
    let mut store = options.connect().await.expect("the store opens");
    sqlx::query_as(
        "SELECT COUNT(*), CAST(COALESCE(SUM(amount_cents), 0) AS BIGINT) FROM transactions WHERE type = 'maturity'",
    )
    .fetch_one(&mut store)
    .await
    .expect("a sum")
}

async fn assert_balanced(platform: &Client) {
    let books = platform
        .get("/admin/ledger/reconciliation")
        .await
        .expect(200);
    assert_eq!(
        (books.at("/data/balanced"), books.at("/data/mismatches")),
        (&Value::Bool(true), &json!([])),
        "{}",
        books.body
    );
}

/// Without a word of the operator's, a charge that is seven days old is payable and a younger one is not.
#[tokio::test]
async fn earnings_become_payable_after_a_week() {
    let mut host = TestHost::builder().start().await;
    let trade = Trade::begin(&host, "weekly").await;
    let (old, young) = (trade.sell(&host).await, trade.sell(&host).await);
    trade.sell(&host).await;
    host.start_again().await;
    assert_eq!(trade.earnings(&host).await, (3.0 * SHARE_USD, 0.0));

    assert!(host.stop().await.success());
    let store = format!("sqlite:{}", host.data_dir.join("souk.db").display());
    age(&store, &old, 8).await;
    age(&store, &young, 6).await;
    host.start_again().await;
    trade.until(&host, (2.0 * SHARE_USD, SHARE_USD)).await;

    host.start_again().await;
    trade.sell(&host).await;
    assert_eq!(
        trade.earnings(&host).await,
        (3.0 * SHARE_USD, SHARE_USD),
        "what was made payable is so once"
    );
    assert_balanced(&host.platform()).await;
}

/// Two hosts that find the same old charges at the same time make them payable once, for every seller.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_that_start_together_make_earnings_payable_once() {
    let cluster = PgCluster::shared().await;
    let store = cluster.url(&cluster.database("SELECT 1").await);
    let builder = || {
        TestHost::builder()
            .arg("--database-url", &store)
            .env("SOUK_MASTER_KEY", MASTER_KEY)
    };
    let (mut one, mut other) = (builder().start().await, builder().start().await);
    let mut trades = Vec::new();
    for number in 0..8 {
        let trade = Trade::begin(&one, &format!("together-{number}")).await;
        let (old, _young) = (trade.sell(&one).await, trade.sell(&other).await);
        age(&store, &old, 8).await;
        trades.push(trade);
    }
    for round in 1..=3 {
        tokio::join!(one.start_again(), other.start_again());
        for trade in &trades {
            let payable = f64::from(round) * SHARE_USD;
            trade.until(&one, (SHARE_USD, payable)).await;
            let old = trade.sell(&other).await;
            age(&store, &old, 8).await;
        }
        let cents = i64::from(round) * 8 * PRICE * 40;
        let (times, sum) = made_payable(&store).await;
        assert_eq!((times, sum), (i64::from(round) * 8, cents));
    }
    assert_balanced(&one.platform()).await;
}

/// A running host makes earnings payable by itself when their time has come; two that sell and look after one store all the while make
/// every charge payable once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_hosts_make_earnings_payable_on_schedule() {
    let cluster = PgCluster::shared().await;
    let store = cluster.url(&cluster.database("SELECT 1").await);
    let start = || {
        TestHost::builder()
            .arg("--database-url", &store)
            .arg("--payable-after-seconds", "2")
            .env("SOUK_MASTER_KEY", MASTER_KEY)
            .start()
    };
    let (one, other) = (start().await, start().await);
    let trade = Trade::begin(&one, "scheduled").await;
    let began = Instant::now();
    let mut sold = 0;
    // Those of the first seconds become payable, and the next ones after them, while the last ones wait.
    while made_payable(&store).await.0 < 2 {
        assert!(began.elapsed() < SOON, "{}", one.log());
        trade.sell(&one).await;
        trade.sell(&other).await;
        sold += 2;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    trade.until(&other, (0.0, sold as f64 * SHARE_USD)).await;
    // Both look again, and find nothing.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (_, cents) = made_payable(&store).await;
    assert_eq!(cents, sold * PRICE * 40);
    trade.until(&one, (0.0, sold as f64 * SHARE_USD)).await;
    assert_balanced(&one.platform()).await;
}
