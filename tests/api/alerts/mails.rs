//! Who is told of an alert by mail, and how often.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::receiver::ARRIVES_WITHIN;
use souk_tests::{Company, TestHost};

use super::{Gauge, show, watch};
use crate::users::Relay;

/// Waits until the newest event of an alert says so of its mail.
async fn wait_for_mail(company: &Company, alert: &str, status: &str) {
    let since = Instant::now();
    loop {
        let events = company.client.get(&format!("{alert}/events")).await;
        let events = events.expect(200);
        let newest = events.at("/data/0/mail_status");
        if newest == status {
            return;
        }
        assert!(
            since.elapsed() < ARRIVES_WITHIN,
            "the mail is {newest}, not {status}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A user who wants it is told by mail, once for each change. A relay that is away is asked again. Whoever is no user (yet) is told nothing, and
/// watches nothing any more once removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_mailed() {
    let mut relay = Relay::start().await;
    let host = TestHost::builder()
        .arg("--smtp-url", format!("smtp://127.0.0.1:{}", relay.port))
        .arg("--mail-from", "souk@example.org")
        .start()
        .await;
    let gauge = Gauge::new(&host).await;
    let seller = &gauge.seller;
    let body = json!({"name": "hot", "condition": {"operator": "gt", "threshold": 4}, "notify_by_mail": true});
    let alert = watch(seller, &gauge.asset, body.clone()).await;
    wait_for_mail(seller, &alert, "sent").await;
    let mail = relay.taken();
    let told = [
        "Subject: Alert \"hot\" has triggered",
        "Answer: 5",
        "Condition: gt 4",
    ];
    for line in told {
        assert!(mail.contains(line), "{line} is not in {mail}");
    }
    assert!(sends_a_test_mail(seller, &alert).await);
    let both = relay.taken();
    let test = &both[mail.len()..];
    for line in told.into_iter().chain(["Why: this is a test"]) {
        assert!(test.contains(line), "{line} is not in {test}");
    }
    // It changes nothing of what is known.
    let events = seller.client.get(&format!("{alert}/events")).await;
    assert_eq!(events.expect(200).at("/meta/total"), &json!(1));
    let silent = watch(seller, &gauge.asset, json!({})).await;
    assert!(!sends_a_test_mail(seller, &silent).await);

    let users = seller.path("/users");
    let ann = json!({"email": "ann@example.org", "name": "Ann", "role_id": 3});
    let ann = seller.client.post(&users, ann).await.expect(201);
    let ann = ann.text("/data/id");
    let mut hers = body;
    hers["asset_id"] = json!(gauge.asset);
    let path = seller.path(&format!("/users/{ann}/alerts"));
    let hers = seller.client.post(&path, hers).await.expect(201);
    let hers = seller.path(&format!("/alerts/{}", hers.text("/data/id")));
    wait_for_mail(seller, &hers, "failed").await;
    assert!(!sends_a_test_mail(seller, &hers).await);
    let removed = seller.client.delete(&format!("{users}/{ann}")).await;
    assert!(removed.status.is_success(), "{}", removed.body);
    let shown = show(seller, &hers).await;
    assert_eq!(
        (&shown["state"], &shown["is_active"]),
        (&json!("paused"), &json!(false))
    );

    relay.stop();
    let anew = json!({"condition": {"operator": "gt", "threshold": 3}});
    seller.client.patch(&alert, anew).await.expect(200);
    wait_for_mail(seller, &alert, "pending").await;
    let since = Instant::now();
    while !host.log().contains("a mail could not be sent") {
        assert!(since.elapsed() < ARRIVES_WITHIN, "the relay is not asked");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    wait_for_mail(seller, &alert, "pending").await;
    assert!(!sends_a_test_mail(seller, &alert).await);
    assert_eq!(relay.taken().matches("Subject: Alert").count(), 2);
}

async fn sends_a_test_mail(company: &Company, alert: &str) -> bool {
    let test = format!("{alert}/test");
    let sent = company.client.post(&test, json!({})).await.expect(202);
    sent.at("/data/mail_sent").as_bool().expect("a flag")
}

/// Where there is no relay nobody is promised a mail.
#[tokio::test]
async fn a_host_without_a_relay_promises_no_mail() {
    let gauge = Gauge::new(crate::host().await).await;
    let seller = &gauge.seller;
    let path = seller.path(&format!("/users/{}/alerts", seller.user_id));
    let body = json!({"asset_id": gauge.asset, "notify_by_mail": true});
    let refused = seller.client.post(&path, body).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        refused.at("/error/details/errors/0/field"),
        "notify_by_mail"
    );
    let alert = watch(seller, &gauge.asset, json!({})).await;
    let wanted = json!({"notify_by_mail": true});
    let refused = seller.client.patch(&alert, wanted).await;
    refused.expect_error(400, "VALIDATION_ERROR");
}
