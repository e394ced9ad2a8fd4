//! Killing the host under charged load loses no charge and doubles none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::{Answer, Client, PgCluster, TestHost};

const ROUNDS: usize = 20;
const CLIENTS: usize = 16;
const PRICE: i64 = 2;
const CREDITS: i64 = 1_000_000;

/// One paid execution under an idempotency key of its own; `None` when the host died first.
async fn pay(client: &Client, path: &str, key: &str) -> Option<String> {
    let request = client
        .request(reqwest::Method::POST, path)
        .header("idempotency-key", key)
        .json(&json!({}));
    let response = request.send().await.ok()?;
    let status = response.status();
    let body: Value = response.json().await.ok()?;
    match status.as_u16() {
        200 => Some(
            body["data"]["execution_id"]
                .as_str()
                .expect("an execution id")
                .to_owned(),
        ),
        // The draining or starting host, or the first attempt still in flight: not answered.
        409 | 502 | 503 => None,
        other => panic!("{other}: {body}"),
    }
}

/// The credits once nothing is held any more. On a shared store the holds of a host that died are rows;
/// they expire ten seconds after their run's deadline.
async fn settled(client: &Client, company: &str) -> Answer {
    let since = Instant::now();
    loop {
        let credits = client
            .get(&format!("/companies/{company}/credits"))
            .await
            .expect(200);
        if credits.at("/data/held_credits") == 0 {
            return credits;
        }
        assert!(
            since.elapsed() < Duration::from_secs(60),
            "credits are held for ever: {}",
            credits.body
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Calls until told to stop; returns the keys that were answered and the one that was not.
async fn load(
    client: Client,
    path: String,
    prefix: String,
    stop: Arc<AtomicBool>,
) -> (Vec<String>, Vec<String>) {
    let (mut answered, mut unanswered) = (Vec::new(), Vec::new());
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let key = format!("{prefix}-{number}");
        match pay(&client, &path, &key).await {
            Some(_) => answered.push(key),
            None => {
                unanswered.push(key);
                break;
            }
        }
    }
    (answered, unanswered)
}

async fn rounds(mut host: TestHost) {
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
            json!({"sql_logic": "SELECT n FROM t", "timeout_ms": 2000}),
        )
        .await;
    seller.publish(&asset, PRICE as u64).await;
    let path = buyer.path(&format!("/assets/{asset}/execute"));

    let mut charged = 0;
    for round in 0..ROUNDS {
        let stop = Arc::new(AtomicBool::new(false));
        let client = host.client(&buyer.key);
        let tasks: Vec<_> = (0..CLIENTS)
            .map(|client_number| {
                let prefix = format!("round{round}-client{client_number}");
                tokio::spawn(load(
                    client.clone(),
                    path.clone(),
                    prefix,
                    Arc::clone(&stop),
                ))
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(400 + 37 * round as u64)).await;
        host.kill();
        stop.store(true, Ordering::Relaxed);
        let (mut answered, mut unanswered) = (0, Vec::new());
        for task in tasks {
            let (done, open) = task.await.expect("no panic");
            answered += done.len();
            unanswered.extend(open);
        }
        assert!(
            answered > 0,
            "the load never got an answer in round {round}\n{}",
            host.log()
        );

        host.start_again().await;
        let client = host.client(&buyer.key);
        // What was never answered may have been charged or not; retrying settles it, exactly once.
        for key in &unanswered {
            let mut attempts = 0;
            while pay(&client, &path, key).await.is_none() {
                attempts += 1;
                assert!(attempts < 600, "{key} is never answered\n{}", host.log());
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        charged += (answered + unanswered.len()) as i64;
        let credits = settled(&client, &buyer.id).await;
        println!(
            "round {round}: {answered} answered, {} retried, balance {}",
            unanswered.len(),
            credits.at("/data/balance_credits")
        );
        assert_eq!(
            credits.at("/data/balance_credits"),
            CREDITS - PRICE * charged,
            "round {round}"
        );
    }
}

/// Twenty rounds of SIGKILL on the embedded store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigkill_under_charged_load_on_sqlite() {
    rounds(TestHost::builder().start().await).await;
}

/// The same on PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigkill_under_charged_load_on_postgres() {
    let cluster = PgCluster::shared().await;
    let store = cluster.database("SELECT 1").await;
    rounds(
        TestHost::builder()
            .arg("--database-url", cluster.url(&store))
            .start()
            .await,
    )
    .await;
}
