//! What a run costs when prices change under it, and when it is retried after a crash or on another host.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use souk_tests::postgres::{GATED, Gate};
use souk_tests::{Answer, Client, Company, PgCluster, TestHost};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::hosts::MASTER_KEY;
use crate::paid_faults::eventually;
use crate::{LEAGUE, host, unique};

/// A statement that takes as many seconds as it is told.
pub(crate) async fn slow_asset(seller: &Company, cluster: &PgCluster, credits: u64) -> String {
    let database = cluster.database(LEAGUE).await;
    let connection = seller.postgres(cluster, &database).await;
    let asset = seller
        .asset(
            &connection,
            json!({"name": "Slow", "slug": unique("slow"),
                "sql_logic": "SELECT count(*) AS goals FROM matches, pg_sleep(CAST(:seconds AS double precision))",
                "parameters": [{"name": "seconds", "type": "integer", "default": 0}],
                // A machine with other work takes its time.
                "timeout_ms": 20_000}),
        )
        .await;
    seller.publish(&asset, credits).await;
    asset
}

fn charged(answer: &Answer) -> i64 {
    let used = answer.at("/meta/credits_used").as_i64();
    used.unwrap_or_else(|| panic!("no credits_used in {}", answer.body))
}

async fn execute(client: &Client, buyer: &Company, asset: &str, key: &str, seconds: u32) -> Answer {
    client
        .post_with(
            &buyer.path(&format!("/assets/{asset}/execute")),
            &[("idempotency-key", key)],
            json!({"params": {"seconds": seconds}}),
        )
        .await
}

/// A run pays the price that held when it was admitted, whatever price begins while it runs; a planned price begins by itself, without
/// anybody asking for it.
#[tokio::test]
async fn a_run_pays_the_price_it_was_admitted_with() {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("pricing")).await;
    let buyer = host().await.buyer(&unique("paying"), 100).await;
    let asset = slow_asset(&seller, cluster, 2).await;
    let prices = seller.path(&format!("/assets/{asset}/prices"));
    let run = |seconds: u32| {
        let (buyer, asset) = (buyer.clone(), asset.clone());
        tokio::spawn(async move { buyer.execute(&asset, json!({"seconds": seconds})).await })
    };

    let running = run(2);
    buyer.holds(2).await;
    seller
        .client
        .post(&prices, json!({"price_credits": 7}))
        .await
        .expect(201);
    assert_eq!(charged(&run(0).await.unwrap().expect(200)), 7);
    assert_eq!(charged(&running.await.unwrap().expect(200)), 2);

    // A run begins before it, on a loaded machine too, and ends behind it.
    let begins = SystemTime::now() + Duration::from_secs(5);
    let begins_at = jiff::Timestamp::try_from(begins).unwrap().to_string();
    seller
        .client
        .post(
            &prices,
            json!({"price_credits": 9, "effective_from": begins_at}),
        )
        .await
        .expect(201);
    let running = run(7);
    buyer.holds(7).await;
    tokio::time::sleep(begins.duration_since(SystemTime::now()).unwrap_or_default()).await;
    assert_eq!(charged(&run(0).await.unwrap().expect(200)), 9);
    assert_eq!(charged(&running.await.unwrap().expect(200)), 7);
    assert_eq!(buyer.balance().await, 100 - 7 - 2 - 9 - 7);
}

/// What a body takes to arrive does not count against what is held for its run: where holds are rows, the run would have been for nothing.
#[tokio::test]
async fn a_body_that_is_long_on_its_way_takes_nothing_off_its_hold() {
    // A hold outlives its run's time by ten seconds.
    const TIMEOUT: Duration = Duration::from_secs(8);
    const ON_ITS_WAY: Duration = Duration::from_secs(19);
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let host = TestHost::builder().arg("--database-url", &url);
    let host = host.start().await;
    let (seller, buyer) = (host.company("seller").await, host.buyer("buyer", 10).await);
    let asset = slow_asset(&seller, cluster, 3).await;
    let path = seller.path(&format!("/assets/{asset}"));
    let timeout = json!({"timeout_ms": TIMEOUT.as_millis() as u64});
    seller.client.patch(&path, timeout).await.expect(200);

    let address = host.base_url.trim_start_matches("http://");
    // Long enough for a hold whose time is over to be given back.
    let body = json!({"params": {"seconds": 4}}).to_string();
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: {address}\r\nx-api-key: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        buyer.path(&format!("/assets/{asset}/execute")),
        buyer.key,
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(head.as_bytes()).await.expect("sent");
    tokio::time::sleep(ON_ITS_WAY).await;
    stream.write_all(body.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(buyer.credits().await, (7, 0));
}

/// A run whose hold has lapsed when it is to be charged, as it does where the store does not answer for long, costs nothing. Its buyer is told to try again:
/// nothing is wrong with the host. It is among the seller's failed runs, by the name that the buyer was told.
#[tokio::test]
async fn a_run_that_outlasts_its_hold_may_be_tried_again() {
    let cluster = PgCluster::shared().await;
    let store = cluster.database("").await;
    let host = TestHost::builder().arg("--database-url", cluster.url(&store));
    let host = host.start().await;
    let (seller, buyer) = (host.company("seller").await, host.buyer("buyer", 10).await);
    let slow = format!("CREATE VIEW slow AS SELECT id FROM matches, {GATED};");
    let database = cluster.database(&format!("{LEAGUE} {slow}")).await;
    let connection = seller.postgres(cluster, &database).await;
    let definition =
        json!({"sql_logic": "SELECT count(*) AS goals FROM slow", "timeout_ms": 60_000});
    let asset = seller.asset(&connection, definition).await;
    seller.publish(&asset, 3).await;

    let gate = Gate::shut(cluster, &database).await;
    let meanwhile = async {
        gate.is_reached().await;
        buyer.holds(3).await;
        let lapses = "UPDATE holds SET expires_at = 1";
        let store = cluster.client(&store).await;
        assert_eq!(store.execute(lapses, &[]).await.expect("a hold"), 1);
        buyer.holds(0).await;
        gate.open().await;
    };
    let (told, ()) = tokio::join!(buyer.execute(&asset, json!({})), meanwhile);
    let told = told.expect_error(503, "SERVICE_UNAVAILABLE");
    assert_eq!(buyer.credits().await, (10, 0));
    let execution = told.at("/error/details/execution_id");
    let failed = seller.path("/failed-executions");
    let failed = eventually(&seller.client, &failed).await;
    assert_eq!(
        (&failed["execution_id"], &failed["class"], &failed["blame"]),
        (execution, &json!("internal"), &json!("host")),
        "{failed}"
    );
    let runs = seller.path("/executions?status=failed");
    let run = eventually(&seller.client, &runs).await;
    assert_eq!(&run["execution_id"], execution, "{run}");
    buyer.execute(&asset, json!({})).await.expect(200);
    assert_eq!(buyer.credits().await, (7, 0));
}

/// Hosts that share a store charge a retried run once, whichever of them is asked, and also after the one that ran it is gone.
#[tokio::test]
async fn a_retry_on_another_host_charges_once() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let start = || {
        TestHost::builder()
            .arg("--database-url", &url)
            .env("SOUK_MASTER_KEY", MASTER_KEY)
            .start()
    };
    let mut first = start().await;
    let second = start().await;
    let (seller, buyer) = (
        first.company("seller").await,
        first.buyer("buyer", 10).await,
    );
    let asset = slow_asset(&seller, cluster, 3).await;
    let elsewhere = second.client(&buyer.key);

    let running = {
        let (buyer, asset) = (buyer.clone(), asset.clone());
        tokio::spawn(async move { execute(&buyer.client, &buyer, &asset, "k", 3).await })
    };
    buyer.holds(3).await;
    execute(&elsewhere, &buyer, &asset, "k", 3)
        .await
        .expect_error(409, "IDEMPOTENCY_IN_PROGRESS");
    execute(&elsewhere, &buyer, &asset, "k", 0)
        .await
        .expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    let answered = running.await.unwrap().expect(200);
    assert_eq!(charged(&answered), 3);

    first.kill();
    let again = execute(&elsewhere, &buyer, &asset, "k", 3)
        .await
        .expect(200);
    assert_eq!(again.body, answered.body);
    assert_eq!(again.header("idempotency-replayed"), "true");
    let statement = elsewhere
        .get(&buyer.path("/credits/transactions?type=charge"))
        .await
        .expect(200);
    assert_eq!(
        (
            statement.at("/meta/total"),
            statement.at("/data/0/id"),
            statement.at("/data/0/balance_after_credits")
        ),
        (&json!(1), answered.at("/meta/transaction_id"), &json!(7))
    );
    let platform = second.client(first.ready["platform"]["api_key"].as_str().expect("a key"));
    let books = platform
        .get("/admin/ledger/reconciliation")
        .await
        .expect(200);
    assert_eq!(books.at("/data/balanced"), true, "{}", books.body);
}

/// However many ask at once under one key, through whichever host: one run, one charge, one answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_under_one_key_charges_once() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("").await);
    let start = || {
        TestHost::builder()
            .arg("--database-url", &url)
            .env("SOUK_MASTER_KEY", MASTER_KEY)
            .start()
    };
    let (one, other) = (start().await, start().await);
    let seller = one.company("seller").await;
    let buyer = one.buyer("buyer", 100).await;
    let asset = slow_asset(&seller, cluster, 3).await;
    let call = |number: usize| {
        let host = if number.is_multiple_of(2) {
            &one
        } else {
            &other
        };
        let (client, buyer) = (host.client(&buyer.key), buyer.clone());
        let asset = asset.clone();
        tokio::spawn(async move { execute(&client, &buyer, &asset, "burst", 1).await })
    };
    let calls: Vec<_> = (0..24).map(call).collect();
    let mut answered = Vec::new();
    for call in calls {
        let answer = call.await.expect("no panic");
        match answer.status.as_u16() {
            200 => answered.push(answer),
            _ => drop(answer.expect_error(409, "IDEMPOTENCY_IN_PROGRESS")),
        }
    }
    for number in 0..2 {
        let again = call(number).await.expect("no panic").expect(200);
        assert_eq!(again.header("idempotency-replayed"), "true");
        answered.push(again);
    }
    let first = &answered[0];
    assert!(answered.iter().all(|answer| answer.body == first.body));
    let path = buyer.path("/credits/transactions?type=charge");
    let statement = buyer.client.get(&path).await.expect(200);
    assert_eq!(statement.at("/meta/total"), 1, "{}", statement.body);
    assert_eq!(statement.at("/data/0/id"), first.at("/meta/transaction_id"));
    assert_eq!(buyer.balance().await, 97);
}

/// A host that is killed while a run is in flight has charged nothing; the same key then runs once, and is answered alike after one more
/// restart.
#[tokio::test]
async fn a_retry_after_a_crash_charges_once() {
    let cluster = PgCluster::shared().await;
    let mut host = TestHost::builder().start().await;
    let (seller, buyer) = (host.company("seller").await, host.buyer("buyer", 10).await);
    let asset = slow_asset(&seller, cluster, 3).await;
    let path = buyer.path(&format!("/assets/{asset}/execute"));
    let request = buyer
        .client
        .request(reqwest::Method::POST, &path)
        .header("idempotency-key", "k")
        .json(&json!({"params": {"seconds": 2}}));
    let running = tokio::spawn(request.send());
    buyer.holds(3).await;
    host.kill();
    assert!(running.await.unwrap().is_err(), "the host was killed");

    host.start_again().await;
    let client = host.client(&buyer.key);
    let balance = async |client: &Client| {
        let answer = client.get(&buyer.path("/credits")).await.expect(200);
        (
            answer.at("/data/balance_credits").clone(),
            answer.at("/data/held_credits").clone(),
        )
    };
    assert_eq!(balance(&client).await, (json!(10), json!(0)));
    let answered = execute(&client, &buyer, &asset, "k", 2).await.expect(200);
    assert_eq!(
        (charged(&answered), answered.header("idempotency-replayed")),
        (3, "")
    );
    host.start_again().await;
    let client = host.client(&buyer.key);
    let again = execute(&client, &buyer, &asset, "k", 2).await.expect(200);
    assert_eq!(again.body, answered.body);
    assert_eq!(balance(&client).await, (json!(7), json!(0)));
    assert_ne!(again.at("/meta/transaction_id"), &Value::Null);
}
