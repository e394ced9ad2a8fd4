//! Receivers that fail, are gone, point elsewhere or never answer: when they are asked again, and when no more.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::receiver::ARRIVES_WITHIN;
use souk_tests::{Company, Receiver, Reply, TestHost};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{Hook, QUIET, micros, revoke_a_key};
use crate::{host, unique};

/// Asserts that the next attempt comes after this pause, give or take the jitter.
#[track_caller]
fn assert_pause(delivery: &Value, seconds: f64) {
    let pause = micros(&delivery["next_attempt_at"]) - micros(&delivery["last_attempt_at"]);
    let pause = pause as f64 / 1e6;
    // The pause begins when the attempt has ended, which a loaded machine notices late.
    assert!(
        (seconds * 0.9..seconds * 1.1 + 10.0).contains(&pause),
        "{pause} s: {delivery}"
    );
}

/// A receiver that fails is asked again after about 5 seconds, then after about 5 minutes, under the same id; a retry by hand comes at once.
#[tokio::test]
async fn a_failing_receiver_is_asked_again() {
    let (company, receiver) = (
        host().await.company(&unique("retries")).await,
        Receiver::start().await,
    );
    let hook = Hook::new(&company, &receiver, &["api_key.revoked"]).await;
    receiver.next([Reply::Status(500), Reply::Status(503)]);
    revoke_a_key(&company).await;
    let first = hook
        .delivery(&company, |delivery| delivery["response_code"] == 500)
        .await;
    assert_eq!(
        (&first["status"], &first["attempts"], &first["error"]),
        (&json!("pending"), &json!(1), &json!("answered 500"))
    );
    assert_pause(&first, 5.0);
    assert!(
        hook.get(&company)
            .await
            .at("/data/failing_since")
            .is_string()
    );
    let second = hook
        .delivery(&company, |delivery| delivery["response_code"] == 503)
        .await;
    assert_eq!(second["attempts"], 2);
    assert_pause(&second, 300.0);

    let id = second["id"].as_str().expect("an id");
    let retry = format!("{}/deliveries/{id}/retry", hook.path);
    let retried = company.client.post(&retry, json!({})).await.expect(202);
    assert_eq!(retried.at("/data/status"), "pending");
    let third = hook
        .delivery(&company, |delivery| delivery["status"] == "delivered")
        .await;
    assert_eq!(third["attempts"], 3);
    let received = receiver.wait_for(3).await;
    assert!(received.iter().all(|one| one.id == id), "{received:#?}");
    assert!(
        received
            .iter()
            .all(|one| one.signatures_by(&hook.secret) == 1)
    );
    assert!(received.iter().all(|one| one.text == received[0].text));
    assert_eq!(
        hook.get(&company).await.at("/data/failing_since"),
        &json!(null)
    );

    // What has arrived can be sent again too.
    company.client.post(&retry, json!({})).await.expect(202);
    assert_eq!(receiver.wait_for(4).await[3].id, id);
    let unknown = format!("{}/deliveries/dlv_x/retry", hook.path);
    company
        .client
        .post(&unknown, json!({}))
        .await
        .expect_error(404, "DELIVERY_NOT_FOUND");
}

/// A receiver that answers 410 is told no more, until its company wants it to be.
#[tokio::test]
async fn gone_disables() {
    let (company, receiver) = (
        host().await.company(&unique("gone")).await,
        Receiver::start().await,
    );
    let hook = Hook::new(&company, &receiver, &["api_key.revoked"]).await;
    receiver.next([Reply::Status(410)]);
    revoke_a_key(&company).await;
    let failed = hook
        .delivery(&company, |delivery| delivery["status"] == "failed")
        .await;
    assert_eq!(failed["response_code"], 410);
    let shown = hook.get(&company).await;
    assert_eq!(
        (
            shown.at("/data/is_active"),
            shown.at("/data/disabled_reason")
        ),
        (&json!(false), &json!("gone"))
    );
    revoke_a_key(&company).await;
    let path = format!("{}/deliveries", hook.path);
    let listed = company.client.get(&path).await.expect(200);
    assert_eq!(listed.at("/meta/total"), 1, "{}", listed.body);
    let retry = format!("{path}/{}/retry", failed["id"].as_str().expect("an id"));
    company
        .client
        .post(&retry, json!({}))
        .await
        .expect_error(409, "INVALID_STATE");
    let back = company
        .client
        .patch(&hook.path, json!({"is_active": true}))
        .await;
    assert_eq!(back.expect(200).at("/data/disabled_reason"), &json!(null));
    company.client.post(&retry, json!({})).await.expect(202);
    receiver.wait_for(2).await;
    hook.delivery(&company, |delivery| delivery["status"] == "delivered")
        .await;
}

/// A receiver that answers 410 when the webhook has another address by then has said nothing of that one: the event is sent there.
#[tokio::test]
async fn a_former_address_disables_nothing() {
    let company = host().await.company(&unique("moved")).await;
    let receiver = Receiver::start().await;
    let former = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", former.local_addr().expect("an address"));
    let hook = json!({"url": url, "event_types": ["api_key.revoked"]});
    let hook = company.client.post(&company.path("/webhooks"), hook).await;
    let hook = hook.expect(201).text("/data/id");
    let path = company.path(&format!("/webhooks/{hook}"));
    revoke_a_key(&company).await;
    let (mut stream, _) = former.accept().await.expect("an attempt");
    let mut request = vec![0; 4096];
    assert!(stream.read(&mut request).await.expect("a request") > 0);
    let moved = json!({"url": receiver.url()});
    company.client.patch(&path, moved).await.expect(200);
    let gone = b"HTTP/1.1 410 x\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(gone).await.expect("an answer");
    receiver.wait_for(1).await;
    let shown = company.client.get(&path).await.expect(200);
    assert_eq!(shown.at("/data/is_active"), true);
}

/// A redirect is not followed: it is a failure, and what it points to never hears of the event.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let company = host().await.company(&unique("redirected")).await;
    let (receiver, elsewhere) = (Receiver::start().await, Receiver::start().await);
    let hook = Hook::new(&company, &receiver, &["api_key.revoked"]).await;
    receiver.always(Reply::RedirectTo(elsewhere.url()));
    revoke_a_key(&company).await;
    let failed = hook
        .delivery(&company, |delivery| delivery["response_code"] == 307)
        .await;
    assert_eq!(failed["status"], "pending");
    assert!(
        failed["error"].to_string().contains("not followed"),
        "{failed}"
    );
    tokio::time::sleep(QUIET).await;
    assert!(elsewhere.received().is_empty());
}

/// The address is judged again when it is dialled: what the operator has allowed no longer is not reached.
#[tokio::test]
async fn the_address_is_judged_when_it_is_dialled() {
    let directory = tempfile::tempdir().expect("a directory");
    let receiver = Receiver::start().await;
    let builder = || TestHost::builder().data_dir(directory.path());
    let mut host = builder().start().await;
    let company = host.company("judged").await;
    let hook = Hook::new(&company, &receiver, &["api_key.revoked"]).await;
    host.stop().await;
    let host = builder().public_only().start().await;
    let company = Company {
        client: host.client(&company.key),
        ..company
    };
    revoke_a_key(&company).await;
    let failed = hook
        .delivery(&company, |delivery| delivery["error"].is_string())
        .await;
    assert!(
        failed["error"].to_string().contains("does not connect to"),
        "{failed}"
    );
    assert_eq!(failed["response_code"], json!(null));
    assert!(receiver.received().is_empty());
}

/// A webhook to which nothing could be delivered for five days is disabled by the next failure.
#[tokio::test]
async fn five_days_of_failure_disable() {
    let mut host = TestHost::builder().start().await;
    let company = host.company("fails").await;
    let receiver = Receiver::start().await;
    receiver.always(Reply::Status(500));
    let hook = Hook::new(&company, &receiver, &["api_key.revoked"]).await;
    revoke_a_key(&company).await;
    hook.delivery(&company, |delivery| delivery["response_code"] == 500)
        .await;
    assert_eq!(hook.get(&company).await.at("/data/is_active"), true);
    host.stop().await;
    // As if it had begun to fail five days ago, and failed all the time.
    let file = format!("sqlite:{}", host.data_dir.join("souk.db").display());
    sqlx::any::install_default_drivers();
    let mut store = <sqlx::AnyConnection as sqlx::Connection>::connect(&file)
        .await
        .expect("the store");
    let five_days = 5 * 86_400_000_000_i64;
    sqlx::query("UPDATE webhooks SET failing_since = failing_since - $1")
        .bind(five_days)
        .execute(&mut store)
        .await
        .expect("an update");
    sqlx::Connection::close(store).await.expect("closed");
    host.start_again().await;
    let company = Company {
        client: host.client(&company.key),
        ..company
    };
    let since = Instant::now();
    while hook.get(&company).await.at("/data/is_active") == true {
        assert!(since.elapsed() < ARRIVES_WITHIN, "it is still active");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let shown = hook.get(&company).await;
    assert_eq!(shown.at("/data/disabled_reason"), "failing");
    hook.delivery(&company, |delivery| delivery["status"] == "failed")
        .await;
}

/// After this long without an answer an attempt has failed.
const ATTEMPT_SECONDS: u64 = 15;

/// A company whose receivers take requests and never answer keeps its own places busy; what another company is to be told arrives meanwhile.
#[tokio::test]
async fn receivers_that_hang_hold_up_their_own_company_only() {
    // Of its own, because the places are the host's.
    let host = TestHost::builder()
        .arg("--company-deliveries", "3")
        .start()
        .await;
    let (hung, silent) = (host.company("hung").await, Receiver::start().await);
    silent.always(Reply::Silence);
    // With four to each this is more than a host delivers at once.
    for _ in 0..17 {
        Hook::new(&hung, &silent, &["api_key.revoked"]).await;
    }
    let began = Instant::now();
    for _ in 0..4 {
        revoke_a_key(&hung).await;
    }
    silent.wait_for(3).await;
    let (other, receiver) = (host.company("other").await, Receiver::start().await);
    Hook::new(&other, &receiver, &["api_key.revoked"]).await;
    revoke_a_key(&other).await;
    receiver.wait_for(1).await;
    // Three at once, and each of them for as long as an attempt may take.
    let attempts = silent.received().len() as u64;
    let rounds = 1 + began.elapsed().as_secs() / ATTEMPT_SECONDS;
    assert!(attempts <= 3 * rounds, "{attempts} in {rounds} rounds");
}
