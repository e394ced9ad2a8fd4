//! Two hosts on one PostgreSQL store: what one does, the other knows.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::{PgCluster, TestHost};

use crate::LEAGUE;

/// Hosts that share a store share its master key too.
pub(crate) const MASTER_KEY: &str =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// A change travels by NOTIFY, in milliseconds; a loaded machine gets a thousand times as long.
const HEARD_WITHIN: Duration = Duration::from_secs(30);

async fn pair() -> (TestHost, TestHost) {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("SELECT 1").await);
    let start = || {
        TestHost::builder()
            .arg("--database-url", &url)
            .env("SOUK_MASTER_KEY", MASTER_KEY)
            .start()
    };
    let one = start().await;
    (one, start().await)
}

/// Calls race through both hosts for the last credits: exactly as many are answered as are paid for.
/// A retry through the other host returns the first answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_charge_one_buyer_exactly() {
    let (one, other) = pair().await;
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let seller = one.company("seller").await;
    let buyer = one.buyer("buyer", 31).await;
    let connection = seller.postgres(cluster, &database).await;
    let asset = seller
        .asset(
            &connection,
            json!({"sql_logic": "SELECT count(*) FROM matches"}),
        )
        .await;
    seller.publish(&asset, 1).await;

    let path = buyer.path(&format!("/assets/{asset}/execute"));
    let header = [("idempotency-key", "once")];
    let first = one
        .client(&buyer.key)
        .post_with(&path, &header, json!({}))
        .await
        .expect(200);
    let again = other
        .client(&buyer.key)
        .post_with(&path, &header, json!({}))
        .await
        .expect(200);
    assert_eq!(first.body, again.body);
    assert_eq!(again.header("idempotency-replayed"), "true");

    let calls: Vec<_> = (0..60)
        .map(|call| {
            let host = if call % 2 == 0 { &one } else { &other };
            let (client, path) = (host.client(&buyer.key), path.clone());
            tokio::spawn(async move { client.post(&path, json!({})).await.status.as_u16() })
        })
        .collect();
    let mut statuses = Vec::new();
    for call in calls {
        statuses.push(call.await.expect("no panic"));
    }
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        30,
        "{statuses:?}"
    );
    assert_eq!(
        statuses.iter().filter(|status| **status == 402).count(),
        30,
        "{statuses:?}"
    );
    assert_eq!(buyer.balance().await, 0);
    let books = one
        .platform()
        .get("/admin/ledger/reconciliation")
        .await
        .expect(200);
    assert_eq!(
        (
            books.at("/data/balanced"),
            books.at("/data/sum_all_accounts")
        ),
        (&json!(true), &json!(0)),
        "{}",
        books.body
    );
}

/// A key revoked through one host is soon refused by the other, although it had it cached; a price, an asset, an endpoint and a connection
/// are soon as they were changed.
#[tokio::test]
async fn a_change_through_one_host_reaches_the_other() {
    let (one, other) = pair().await;
    let cluster = PgCluster::shared().await;
    let database = cluster.database(LEAGUE).await;
    let seller = one.company("seller").await;
    let buyer = one.buyer("buyer", 100_000).await;
    let connection = seller.postgres(cluster, &database).await;
    let asset = seller
        .asset(
            &connection,
            json!({"sql_logic": "SELECT count(*) FROM matches"}),
        )
        .await;
    seller.publish(&asset, 1).await;
    let there = other.client(&buyer.key);
    let path = buyer.path(&format!("/assets/{asset}/execute"));
    assert_eq!(
        there
            .post(&path, json!({}))
            .await
            .expect(200)
            .at("/meta/credits_used"),
        1
    );

    let prices = seller.path(&format!("/assets/{asset}/prices"));
    seller
        .client
        .post(&prices, json!({"price_credits": 7}))
        .await
        .expect(201);
    let since = Instant::now();
    while there
        .post(&path, json!({}))
        .await
        .expect(200)
        .at("/meta/credits_used")
        != 7
    {
        assert!(
            since.elapsed() < HEARD_WITHIN,
            "the other host still charges the old price"
        );
    }

    let row = json!({"slug": "row", "source": {"schema": "public", "table": "matches"}, "fields": [{"name": "id"}], "order_by": ["id"]});
    let endpoint = seller.endpoint(&connection, row).await;
    let page = seller.path(&format!("/endpoints/{endpoint}/execute?limit=1"));
    let sellers = other.client(&seller.key);
    let first = "/data/response/data/0";
    let cached = sellers.get(&page).await.expect(200);
    assert_eq!(cached.at(first), &json!({"id": 1}));
    let later = format!("{LEAGUE} DELETE FROM matches WHERE id < 5;");
    let moved = cluster.database(&later).await;
    for (what, change) in [
        (
            format!("/assets/{asset}"),
            json!({"sql_logic": "SELECT count(*) + 1000 FROM matches"}),
        ),
        (
            format!("/endpoints/{endpoint}"),
            json!({"fields": [{"name": "id", "alias": "number"}]}),
        ),
        (
            format!("/connections/{connection}"),
            json!({"database": moved}),
        ),
    ] {
        let changed = seller.client.patch(&seller.path(&what), change).await;
        changed.expect(200);
    }
    let since = Instant::now();
    loop {
        let (asset, page) = tokio::join!(there.post(&path, json!({})), sellers.get(&page));
        let asset = asset.expect(200).at("/data/answer_value").clone();
        let page = page.expect(200).at(first).clone();
        if (&asset, &page) == (&json!(1246), &json!({"number": 5})) {
            break;
        }
        assert!(
            since.elapsed() < HEARD_WITHIN,
            "the other host still runs what was before: {asset}, {page}"
        );
    }

    let keys = buyer.path("/api-keys");
    let brief = buyer
        .client
        .post(&keys, json!({"name": "brief"}))
        .await
        .expect(201);
    let holder = other.client(&brief.text("/data/key"));
    holder.get(&keys).await.expect(200);
    buyer
        .client
        .delete(&format!("{keys}/{}", brief.text("/data/id")))
        .await
        .expect(204);
    let since = Instant::now();
    while holder.get(&keys).await.status != 410 {
        assert!(
            since.elapsed() < HEARD_WITHIN,
            "the other host still takes the revoked key"
        );
    }
}
