//! What companies are told: each event when what it tells of has happened, on one host, on two, and on one that was killed.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::receiver::ARRIVES_WITHIN;
use souk_tests::seller_api::{API_KEY, SellerApi};
use souk_tests::{Company, PgCluster, Receiver, Reply, TestHost};

use crate::hosts::MASTER_KEY;
use crate::webhooks::{Hook, QUIET, revoke_a_key};
use crate::{host, league, unique};

/// A paid function, its buyer and its seller.
struct Shop {
    seller: Company,
    buyer: Company,
    asset: String,
    _api: SellerApi,
}

async fn shop(host: &TestHost, credits: u64) -> Shop {
    let api = SellerApi::start().await;
    let seller = host.company(&unique("shop")).await;
    let connection = seller.seller_api(&api.base_url(), API_KEY).await;
    let parameters = json!([{"name": "team", "type": "string", "default": "Ajax"}]);
    let fields = json!({"name": "goals", "slug": unique("goals"), "function_id": "sum_goals", "parameters": parameters});
    let asset = seller.asset(&connection, fields).await;
    seller.publish(&asset, 1).await;
    Shop {
        buyer: host.buyer(&unique("spends"), credits).await,
        seller,
        asset,
        _api: api,
    }
}

impl Shop {
    /// Fifty calls at once, through these hosts in turn.
    async fn spend_fifty(&self, hosts: &[&TestHost]) {
        let calls: Vec<_> = (0..50)
            .map(|call| {
                let client = hosts[call % hosts.len()].client(&self.buyer.key);
                let path = self.buyer.path(&format!("/assets/{}/execute", self.asset));
                tokio::spawn(async move { client.post(&path, json!({})).await })
            })
            .collect();
        for call in calls {
            call.await.expect("no panic").expect(200);
        }
    }
}

/// Fifty paid calls at once that cross the threshold are told of once, with the balance that the crossing call left; credits that come in arm
/// it again; the company says where the threshold is. The first paid call was a purchase, which the seller is told of.
async fn low_credits_are_told_once(hosts: &[&TestHost]) {
    let shop = shop(hosts[0], 130).await;
    let (receiver, sellers) = (Receiver::start().await, Receiver::start().await);
    Hook::new(&shop.buyer, &receiver, &["credits.low"]).await;
    Hook::new(&shop.seller, &sellers, &[]).await;
    shop.spend_fifty(hosts).await;
    let low = receiver.wait_for(1).await.remove(0);
    assert_eq!(low.kind(), "credits.low");
    let data = &low.body["data"];
    assert_eq!(
        (&data["balance_credits"], &data["threshold_credits"]),
        (&json!(99), &json!(100))
    );
    assert_eq!(data["company_id"], json!(shop.buyer.id));
    assert!(data["transaction_id"].to_string().contains("txn_"));
    let bought = sellers.wait_for(1).await.remove(0);
    assert_eq!(bought.kind(), "purchase.created");
    assert_eq!(bought.body["data"]["company_id"], json!(shop.buyer.id));
    assert_eq!(bought.body["data"]["product_id"], json!(shop.asset));

    // 80 left. Up to 130 and down again.
    hosts[0].grant(&shop.buyer, 50).await;
    shop.spend_fifty(hosts).await;
    let again = receiver.wait_for(2).await.remove(1);
    assert_eq!(again.body["data"]["balance_credits"], 99);
    assert_ne!(again.id, low.id);
    let patched = shop
        .buyer
        .client
        .patch(&shop.buyer.path(""), json!({"credits_low_threshold": 40}))
        .await
        .expect(200);
    assert_eq!(patched.at("/data/credits_low_threshold"), 40);
    shop.spend_fifty(hosts).await;
    let third = receiver.wait_for(3).await.remove(2);
    assert_eq!(third.body["data"]["balance_credits"], 39);
    assert_eq!(third.body["data"]["threshold_credits"], 40);
    tokio::time::sleep(QUIET).await;
    assert_eq!(receiver.times().len(), 3, "{:#?}", receiver.received());
    assert!(receiver.times().values().all(|times| *times == 1));
    assert_eq!(sellers.received().len(), 1, "one purchase");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn low_credits_are_told_once_on_sqlite() {
    low_credits_are_told_once(&[host().await]).await;
}

/// Two hosts on one PostgreSQL store that both charge the buyer, and both deliver: the same promises, and every event arrives once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_tell_everything_once() {
    let cluster = PgCluster::shared().await;
    let url = cluster.url(&cluster.database("SELECT 1").await);
    let start = || {
        TestHost::builder()
            .arg("--database-url", &url)
            .env("SOUK_MASTER_KEY", MASTER_KEY)
            .start()
    };
    let (one, other) = (start().await, start().await);
    low_credits_are_told_once(&[&one, &other]).await;

    const EVENTS: usize = 40;
    let company = one.company("tells").await;
    let receiver = Receiver::start().await;
    Hook::new(&company, &receiver, &["credits.top_up.settled"]).await;
    let mut settled = Vec::new();
    for number in 0..EVENTS {
        let key = format!("k{number}");
        let headers = [("idempotency-key", key.as_str())];
        let body = json!({"credits": number + 1});
        let path = company.path("/credits/top-ups");
        let made = company.client.post_with(&path, &headers, body).await;
        let settle = format!(
            "/admin/top-ups/{}/settle",
            made.expect(201).text("/data/id")
        );
        let host = if number % 2 == 0 { &one } else { &other };
        let platform = host.client(one.platform().key.as_deref().expect("a key"));
        settled.push(tokio::spawn(async move {
            platform
                .post(&settle, json!({"reference": "r"}))
                .await
                .expect(200)
        }));
    }
    for answer in settled {
        answer.await.expect("no panic");
    }
    receiver.wait_for(EVENTS).await;
    tokio::time::sleep(QUIET).await;
    let times = receiver.times();
    assert_eq!(times.len(), EVENTS);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
}

/// A buyer of an endpoint and its seller are told of the purchase, the buyer of its key, and of the key's end.
#[tokio::test]
async fn a_purchase_and_its_key_are_told() {
    let league = league().await;
    let (endpoint, _) = league.matches(2).await;
    let buyer = host().await.buyer(&unique("buys"), 10).await;
    let (receiver, sellers) = (Receiver::start().await, Receiver::start().await);
    Hook::new(&buyer, &receiver, &[]).await;
    Hook::new(&league.seller, &sellers, &["purchase.created"]).await;
    let bought = buyer.buy(&endpoint).await;
    let purchase = bought.text("/data/id");
    buyer
        .client
        .delete(&buyer.path(&format!("/purchases/{purchase}")))
        .await
        .expect(204);
    let mut received = receiver.wait_for(3).await;
    received.sort_by(|one, other| one.kind().cmp(other.kind()));
    let kinds: Vec<_> = received.iter().map(|one| one.kind()).collect();
    assert_eq!(
        kinds,
        [
            "api_key.revoked",
            "endpoint_key.provisioned",
            "purchase.created"
        ]
    );
    let key = bought.at("/data/endpoint_key/id");
    let secret = bought.text("/data/endpoint_key/key");
    assert_eq!(&received[0].body["data"]["api_key_id"], key);
    assert_eq!(&received[1].body["data"]["api_key_id"], key);
    assert_eq!(received[1].body["data"]["source"], "marketplace");
    assert_eq!(received[2].body["data"]["purchase_id"], json!(purchase));
    assert!(received.iter().all(|one| !one.text.contains(&secret)));
    let sold = sellers.wait_for(1).await.remove(0);
    assert_eq!(sold.body["data"], received[2].body["data"]);
}

/// What was committed is told although the host is killed before it could: one attempt in flight, one waiting, and one that was never tried.
#[tokio::test]
async fn events_survive_a_killed_host() {
    let mut host = TestHost::builder().start().await;
    let company = host.company("survives").await;
    let receiver = Receiver::start().await;
    let hook = Hook::new(&company, &receiver, &["api_key.revoked"]).await;
    receiver.next([Reply::Status(500), Reply::Silence]);
    let waiting = revoke_a_key(&company).await;
    hook.delivery(&company, |delivery| delivery["response_code"] == 500)
        .await;
    let in_flight = revoke_a_key(&company).await;
    receiver.wait_for(2).await;
    let committed = revoke_a_key(&company).await;
    host.kill();
    host.start_again().await;
    let company = Company {
        client: host.client(&company.key),
        ..company
    };
    let since = Instant::now();
    loop {
        let path = format!("{}/deliveries?status=delivered", hook.path);
        let delivered = company.client.get(&path).await.expect(200);
        if delivered.at("/meta/total") == 3 {
            break;
        }
        assert!(since.elapsed() < ARRIVES_WITHIN, "{}", delivered.body);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let received = receiver.received();
    for key in [&waiting, &in_flight, &committed] {
        let ids: Vec<_> = received
            .iter()
            .filter(|one| one.body["data"]["api_key_id"] == json!(key))
            .map(|one| one.id.clone())
            .collect();
        assert!(!ids.is_empty(), "{key} was never told of");
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
}
