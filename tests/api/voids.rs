//! Whatever keeps a result from its buyer costs nothing: the hold that was taken before the run is given back.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use souk_tests::{Answer, Client, Company, PgCluster, TestHost};

use crate::charges::slow_asset;
use crate::sqlite_source::dataset;
use crate::{host, unique};

/// A loaded machine gets a hundred times as long as it takes.
const SOON: Duration = Duration::from_secs(30);
const PRICE: i64 = 3;

/// Balance, held credits, and how many charges are on the statement.
pub async fn books(client: &Client, buyer: &Company) -> (i64, i64, i64) {
    let credits = client.get(&buyer.path("/credits")).await.expect(200);
    let statement = client
        .get(&buyer.path("/credits/transactions?type=charge"))
        .await
        .expect(200);
    let number = |value: &Value| value.as_i64().expect("a number");
    (
        number(credits.at("/data/balance_credits")),
        number(credits.at("/data/held_credits")),
        number(statement.at("/meta/total")),
    )
}

/// Waits until the buyer's books are `expected`.
pub async fn until(client: &Client, buyer: &Company, expected: (i64, i64, i64)) {
    let since = Instant::now();
    loop {
        let found = books(client, buyer).await;
        if found == expected {
            return;
        }
        assert!(
            since.elapsed() < SOON,
            "balance, held, charges are {found:?}, not {expected:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

struct Shop {
    buyer: Company,
    asset: String,
}

/// A buyer with 10 credits, and an asset that takes as many seconds as it is told.
async fn shop(host: &TestHost) -> Shop {
    let seller = host.company(&unique("patient")).await;
    let buyer = host.buyer(&unique("waiting"), 10).await;
    let asset = slow_asset(&seller, PgCluster::shared().await, PRICE as u64).await;
    Shop { buyer, asset }
}

impl Shop {
    fn request(&self, seconds: u32) -> reqwest::RequestBuilder {
        let path = self.buyer.path(&format!("/assets/{}/execute", self.asset));
        self.buyer
            .client
            .request(Method::POST, &path)
            .json(&json!({"params": {"seconds": seconds}}))
    }

    /// The same request under its key, to the host where it runs now.
    async fn again(&self, client: &Client, seconds: u32, key: &str) -> Answer {
        let path = self.buyer.path(&format!("/assets/{}/execute", self.asset));
        let body = json!({"params": {"seconds": seconds}});
        let header = [("idempotency-key", key)];
        client.post_with(&path, &header, body).await
    }

    /// Sends a request and returns it once its credits are held.
    async fn running(
        &self,
        request: reqwest::RequestBuilder,
    ) -> tokio::task::JoinHandle<reqwest::Result<reqwest::Response>> {
        let running = tokio::spawn(request.send());
        until(&self.buyer.client, &self.buyer, (10 - PRICE, PRICE, 0)).await;
        running
    }
}

async fn postgres() -> souk_tests::host::Builder {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("SELECT 1").await);
    TestHost::builder().arg("--database-url", url)
}

async fn on_postgres() -> TestHost {
    postgres().await.start().await
}

/// The run ends with its client: the credits are back before the statement would have come to its end, and it charges nothing later.
async fn hangs_up(host: &TestHost) {
    let shop = shop(host).await;
    let running = shop.running(shop.request(12)).await;
    let since = Instant::now();
    running.abort();
    until(&shop.buyer.client, &shop.buyer, (10, 0, 0)).await;
    assert!(
        since.elapsed() < Duration::from_secs(11),
        "it ran to its end"
    );
    tokio::time::sleep(Duration::from_secs(13).saturating_sub(since.elapsed())).await;
    assert_eq!(books(&shop.buyer.client, &shop.buyer).await, (10, 0, 0));
}

/// A client that hangs up before the result pays nothing.
#[tokio::test]
async fn a_client_that_hangs_up_pays_nothing() {
    hangs_up(host().await).await;
}

/// The same where holds are rows.
#[tokio::test]
async fn a_client_that_hangs_up_pays_nothing_on_postgres() {
    hangs_up(&on_postgres().await).await;
}

/// With an idempotency key the run goes on for the client that will ask again: one charge, and the answer waits for it.
#[tokio::test]
async fn a_client_that_hangs_up_with_a_key_gets_its_answer_later() {
    let shop = shop(host().await).await;
    let keyed = || shop.request(2).header("idempotency-key", "again");
    shop.running(keyed()).await.abort();
    until(&shop.buyer.client, &shop.buyer, (10 - PRICE, 0, 1)).await;
    let again = Answer::of(keyed()).await.expect(200);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.at("/meta/credits_used"), PRICE);
    assert_eq!(
        books(&shop.buyer.client, &shop.buyer).await,
        (10 - PRICE, 0, 1)
    );
}

/// A source that does not answer in time costs its buyer nothing.
#[tokio::test]
async fn a_timeout_costs_the_buyer_nothing() {
    let shop = shop(host().await).await;
    let running = shop.running(shop.request(60)).await;
    let answer = running.await.expect("no panic").expect("an answer");
    assert_eq!(answer.status(), 504);
    let body: Value = answer.json().await.expect("an envelope");
    assert_eq!(body["error"]["code"], "EXECUTION_TIMEOUT");
    assert_eq!(body["error"]["details"]["charged"], false);
    assert_eq!(books(&shop.buyer.client, &shop.buyer).await, (10, 0, 0));
}

/// A host that is told to stop finishes the run in flight: it is answered, and charged as the answer says.
async fn stops_in_time(mut host: TestHost) {
    let shop = shop(&host).await;
    let running = shop.running(shop.request(3)).await;
    assert!(host.stop().await.success());
    let answer = running.await.expect("no panic").expect("an answer");
    assert_eq!(answer.status(), 200);
    let body: Value = answer.json().await.expect("a result");
    host.start_again().await;
    let client = host.client(&shop.buyer.key);
    assert_eq!(books(&client, &shop.buyer).await, (10 - PRICE, 0, 1));
    let path = shop.buyer.path("/credits/transactions?type=charge");
    let statement = client.get(&path).await.expect(200);
    assert_eq!(statement.at("/data/0/id"), &body["meta"]["transaction_id"]);
}

/// A run in flight at SIGTERM is answered and charged.
#[tokio::test]
async fn a_host_that_stops_answers_what_it_charges() {
    stops_in_time(TestHost::builder().start().await).await;
}

/// The same where holds are rows.
#[tokio::test]
async fn a_host_that_stops_answers_what_it_charges_on_postgres() {
    stops_in_time(on_postgres().await).await;
}

/// A run that the stopping host does not wait for is told so and costs nothing; nothing stays held, and its key is free.
async fn outlasts_the_drain(mut host: TestHost) {
    let shop = shop(&host).await;
    let keyed = || shop.request(5).header("idempotency-key", "long");
    let plain = shop.running(shop.request(5)).await;
    let second = tokio::spawn(keyed().send());
    until(
        &shop.buyer.client,
        &shop.buyer,
        (10 - 2 * PRICE, 2 * PRICE, 0),
    )
    .await;
    assert!(host.stop().await.success());
    for running in [plain, second] {
        let answer = running.await.expect("no panic").expect("an answer");
        assert_eq!(answer.status(), 503);
        let body: Value = answer.json().await.expect("an envelope");
        assert_eq!(body["error"]["code"], "SHUTTING_DOWN", "{body}");
        assert_eq!(body["error"]["details"]["charged"], false, "{body}");
    }
    host.start_again().await;
    let client = host.client(&shop.buyer.key);
    assert_eq!(books(&client, &shop.buyer).await, (10, 0, 0));
    let again = shop.again(&client, 5, "long").await.expect(200);
    assert_eq!(again.header("idempotency-replayed"), "");
    assert_eq!(books(&client, &shop.buyer).await, (10 - PRICE, 0, 1));
}

/// A run that outlasts the drain costs nothing.
#[tokio::test]
async fn a_run_that_outlasts_the_drain_costs_nothing() {
    let host = TestHost::builder().arg("--drain-seconds", "1");
    outlasts_the_drain(host.start().await).await;
}

/// The same where holds are rows: the stopping host gives them back itself.
#[tokio::test]
async fn a_run_that_outlasts_the_drain_costs_nothing_on_postgres() {
    let host = postgres().await.arg("--drain-seconds", "1");
    outlasts_the_drain(host.start().await).await;
}

/// A statement in a file, which the host computes itself, is cut alike.
#[tokio::test]
async fn a_run_in_a_file_that_outlasts_the_drain_costs_nothing() {
    let host = TestHost::builder().arg("--drain-seconds", "1");
    let mut host = host.start().await;
    let seller = host.company("filer").await;
    let buyer = host.buyer("reader", 10).await;
    let file = dataset(1).await;
    let connection = seller.sqlite("sales.db", file).await;
    let count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :upto) SELECT count(*) FROM n";
    let fields = json!({"sql_logic": count, "timeout_ms": 60_000,
        "parameters": [{"name": "upto", "type": "integer", "default": 1}]});
    let asset = seller.asset(&connection, fields).await;
    seller.publish(&asset, PRICE as u64).await;
    let running = {
        let (buyer, asset) = (buyer.clone(), asset.clone());
        let params = json!({"upto": 100_000_000_000_i64});
        tokio::spawn(async move { buyer.execute(&asset, params).await })
    };
    until(&buyer.client, &buyer, (10 - PRICE, PRICE, 0)).await;
    assert!(host.stop().await.success());
    let answer = running.await.expect("no panic");
    answer.expect_error(503, "SHUTTING_DOWN");
    host.start_again().await;
    let client = host.client(&buyer.key);
    assert_eq!(books(&client, &buyer).await, (10, 0, 0));
}

/// The host also finishes a run whose client has hung up but will ask again.
async fn stops_without_the_client(mut host: TestHost) {
    let shop = shop(&host).await;
    let keyed = shop.request(3).header("idempotency-key", "gone");
    shop.running(keyed).await.abort();
    assert!(host.stop().await.success());
    host.start_again().await;
    let client = host.client(&shop.buyer.key);
    assert_eq!(books(&client, &shop.buyer).await, (10 - PRICE, 0, 1));
    let again = shop.again(&client, 3, "gone").await.expect(200);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(books(&client, &shop.buyer).await, (10 - PRICE, 0, 1));
}

/// A keyed run without its client is finished before the host stops.
#[tokio::test]
async fn a_host_that_stops_finishes_a_keyed_run_without_its_client() {
    stops_without_the_client(TestHost::builder().start().await).await;
}

/// The same where holds are rows.
#[tokio::test]
async fn a_host_that_stops_finishes_a_keyed_run_without_its_client_on_postgres() {
    stops_without_the_client(on_postgres().await).await;
}
