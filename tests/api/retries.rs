//! A request that is sent again with its `Idempotency-Key` while it is still at work.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::{PgCluster, TestHost};

use crate::LEAGUE;

/// What a publication may take here: less than its test may.
const WITHIN: Duration = Duration::from_secs(50);

/// A publication whose test lasts longer than its claim would hold by itself is not done a second time beside the first: who asks again is told that it is at
/// work, and then what came of it.
#[tokio::test]
async fn a_long_publication_keeps_its_key() {
    let host = TestHost::builder().start().await;
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let seller = host.company("patient").await;
    let connection = seller.postgres(cluster, &database).await;
    let path = seller.path(&format!("/connections/{connection}"));
    let patience = json!({"statement_timeout_ms": 60_000});
    seller.client.patch(&path, patience).await.expect(200);
    let asset =
        json!({"sql_logic": "SELECT count(*) AS played FROM matches", "timeout_ms": 60_000});
    let asset = seller.asset(&connection, asset).await;
    let prices = seller.path(&format!("/assets/{asset}/prices"));
    let price = json!({"price_credits": 1});
    seller.client.post(&prices, price).await.expect(201);

    let locked = cluster.client(&database).await;
    let lock = "BEGIN; LOCK TABLE matches IN ACCESS EXCLUSIVE MODE";
    locked.batch_execute(lock).await.expect("the lock");
    let publish = seller.path(&format!("/assets/{asset}/publish"));
    let key = [("idempotency-key", "once")];
    let published = async || seller.client.post_with(&publish, &key, json!({})).await;
    let meanwhile = async {
        let store = rusqlite::Connection::open(host.data_dir.join("souk.db")).expect("the store");
        let since = Instant::now();
        let pause = async || {
            let waited = since.elapsed();
            assert!(waited < WITHIN, "{}", host.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        // As if it had been at work for a minute without a word of its host.
        let age = "UPDATE idempotency SET expires_at = 1 WHERE idempotency_key = 'once' AND status IS NULL";
        while store.execute(age, []).expect("the claim") == 0 {
            pause().await;
        }
        let held = "SELECT expires_at > 1 FROM idempotency WHERE idempotency_key = 'once'";
        while !store
            .query_row(held, [], |row| row.get::<_, bool>(0))
            .expect("the claim")
        {
            pause().await;
        }
        published()
            .await
            .expect_error(409, "IDEMPOTENCY_IN_PROGRESS");
        locked.batch_execute("COMMIT").await.expect("let go");
    };
    let (first, ()) = tokio::join!(published(), meanwhile);
    let first = first.expect(200);
    let again = published().await.expect(200);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.body, first.body);
}
