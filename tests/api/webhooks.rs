//! Webhooks as a customer sees them: a real receiver on this machine is told, can prove who told it, and is told again when it was away.

mod failures;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use souk_tests::receiver::ARRIVES_WITHIN;
use souk_tests::{Answer, Company, Receiver};

use crate::{host, unique};

/// What must not arrive gets this long to arrive all the same.
pub const QUIET: Duration = Duration::from_secs(3);

pub struct Hook {
    pub path: String,
    secret: String,
}

impl Hook {
    pub async fn new(company: &Company, receiver: &Receiver, types: &[&str]) -> Hook {
        let body = json!({"url": receiver.url(), "event_types": types});
        let made = company.client.post(&company.path("/webhooks"), body).await;
        let made = made.expect(201);
        let id = made.text("/data/id");
        Hook {
            path: company.path(&format!("/webhooks/{id}")),
            secret: made.text("/data/secret"),
        }
    }

    async fn get(&self, company: &Company) -> Answer {
        company.client.get(&self.path).await.expect(200)
    }

    /// The newest delivery, once it is as it should be.
    pub async fn delivery(&self, company: &Company, is_so: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let path = format!("{}/deliveries", self.path);
            let found = company.client.get(&path).await.expect(200);
            let newest = found.at("/data/0").clone();
            if is_so(&newest) {
                return newest;
            }
            assert!(since.elapsed() < ARRIVES_WITHIN, "{}", found.body);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Something happens: a key is made and revoked. Returns its id.
pub async fn revoke_a_key(company: &Company) -> String {
    let keys = company.path("/api-keys");
    let made = company.client.post(&keys, json!({"name": "brief"})).await;
    let id = made.expect(201).text("/data/id");
    company
        .client
        .delete(&format!("{keys}/{id}"))
        .await
        .expect(204);
    id
}

fn micros(value: &Value) -> i64 {
    let text = value.as_str().expect("a time");
    let time: jiff::Timestamp = text.parse().expect("a time");
    time.as_microsecond()
}

/// An event arrives signed with the secret that was shown once, and says what happened; the secret is shown nowhere else.
#[tokio::test]
async fn an_event_arrives_signed() {
    let (company, receiver) = (
        host().await.company(&unique("told")).await,
        Receiver::start().await,
    );
    let hooks = company.path("/webhooks");
    let body =
        json!({"url": receiver.url(), "event_types": ["api_key.revoked"], "description": "ours"});
    let once = [("idempotency-key", "k")];
    let made = company.client.post_with(&hooks, &once, body.clone()).await;
    let made = made.expect(201);
    let secret = made.text("/data/secret");
    assert!(secret.starts_with("whsec_"), "{secret}");
    let path = format!("{hooks}/{}", made.text("/data/id"));
    assert_eq!(made.header("location"), path);

    let key = revoke_a_key(&company).await;
    let received = receiver.wait_for(1).await.remove(0);
    assert_eq!(received.path, "/hooks?of=souk");
    assert_eq!(received.signatures_by(&secret), 1, "{received:?}");
    assert_eq!(received.signatures_by("whsec_AAAA"), 0);
    let now = jiff::Timestamp::now().as_second();
    assert!((received.timestamp - now).abs() < 60, "{received:?}");
    assert_eq!(received.kind(), "api_key.revoked");
    assert_eq!(received.body["data"]["api_key_id"], json!(key));
    assert_eq!(received.body["data"]["company_id"], json!(company.id));
    assert!(received.body["timestamp"].is_string());

    let hook = Hook {
        path: path.clone(),
        secret: secret.clone(),
    };
    let delivered = hook
        .delivery(&company, |delivery| delivery["status"] == "delivered")
        .await;
    assert_eq!(delivered["id"], json!(received.id));
    assert_eq!(delivered["payload"], received.body);
    assert_eq!(
        (&delivered["response_code"], &delivered["attempts"]),
        (&json!(204), &json!(1))
    );
    assert_eq!(
        (&delivered["next_attempt_at"], &delivered["error"]),
        (&Value::Null, &Value::Null)
    );

    let again = company.client.post_with(&hooks, &once, body).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    let patched = company.client.patch(&path, json!({"description": null}));
    for shown in [
        again.expect(201),
        company.client.get(&hooks).await.expect(200),
        company.client.get(&path).await.expect(200),
        patched.await.expect(200),
    ] {
        assert!(!shown.body.to_string().contains("whsec_"), "{}", shown.body);
    }
    // The store keeps bytes in hexadecimal.
    let in_hex = hex::encode(&secret);
    for plain in [secret.trim_start_matches("whsec_"), &in_hex] {
        let found = std::process::Command::new("grep")
            .args(["-rqaF", "--", plain])
            .arg(&host().await.data_dir)
            .status()
            .expect("grep");
        assert_eq!(
            found.code(),
            Some(1),
            "the secret is on the disk in the open"
        );
    }
}

/// For a day after a rotation the former secret signs beside the new one; one that was former before signs no more.
#[tokio::test]
async fn after_a_rotation_both_secrets_sign() {
    let (company, receiver) = (
        host().await.company(&unique("rotates")).await,
        Receiver::start().await,
    );
    let hook = Hook::new(&company, &receiver, &["api_key.revoked"]).await;
    let rotate = format!("{}/rotate-secret", hook.path);
    let mut secrets = vec![hook.secret.clone()];
    for round in 0..2 {
        let rotated = company.client.post(&rotate, json!({})).await.expect(200);
        secrets.push(rotated.text("/data/secret"));
        let until = micros(rotated.at("/data/former_secret_expires_at"));
        let hours = (until - jiff::Timestamp::now().as_microsecond()) as f64 / 3.6e9;
        assert!((23.9..24.1).contains(&hours), "{hours}");
        revoke_a_key(&company).await;
        let received = receiver.wait_for(round + 1).await.remove(round);
        let newest_two = &secrets[secrets.len() - 2..];
        for secret in newest_two {
            assert_eq!(received.signatures_by(secret), 1, "{received:?}");
        }
        assert_eq!(received.signature.split(' ').count(), 2);
    }
    let once = [("idempotency-key", "again")];
    let rotated = company.client.post_with(&rotate, &once, json!({})).await;
    let rotated = rotated.expect(200).text("/data/secret");
    let replayed = company.client.post_with(&rotate, &once, json!({})).await;
    assert_eq!(replayed.header("idempotency-replayed"), "true");
    for shown in [replayed.expect(200), hook.get(&company).await] {
        assert!(!shown.body.to_string().contains("whsec_"), "{}", shown.body);
    }
    revoke_a_key(&company).await;
    let received = receiver.wait_for(3).await.remove(2);
    assert_eq!(
        received.signatures_by(&rotated),
        1,
        "replaying rotated again"
    );
}

/// Another company sees neither a webhook nor its deliveries, and is not told of events; lower roles read, but do not write.
#[tokio::test]
async fn webhooks_are_their_companys_own() {
    let host = host().await;
    let (owner, other) = (
        host.company(&unique("owner")).await,
        host.company(&unique("stranger")).await,
    );
    let receiver = Receiver::start().await;
    let hook = Hook::new(&owner, &receiver, &[]).await;
    let eavesdropper = Receiver::start().await;
    Hook::new(&other, &eavesdropper, &[]).await;
    revoke_a_key(&owner).await;
    let delivered = receiver.wait_for(1).await.remove(0);

    let id = hook.path.rsplit('/').next().expect("an id");
    let foreign = other.path(&format!("/webhooks/{id}"));
    let none = json!({});
    let retry = format!("/deliveries/{}/retry", delivered.id);
    for answer in [
        other.client.get(&foreign).await,
        other.client.patch(&foreign, none.clone()).await,
        other.client.delete(&foreign).await,
        other
            .client
            .post(&format!("{foreign}/rotate-secret"), none.clone())
            .await,
        other.client.get(&format!("{foreign}/deliveries")).await,
        other
            .client
            .post(&format!("{foreign}{retry}"), none.clone())
            .await,
    ] {
        answer.expect_error(404, "WEBHOOK_NOT_FOUND");
    }
    let own = Hook::new(&other, &eavesdropper, &["payout.paid"]).await;
    other
        .client
        .post(&format!("{}{retry}", own.path), none.clone())
        .await
        .expect_error(404, "DELIVERY_NOT_FOUND");
    other
        .client
        .get(&hook.path)
        .await
        .expect_error(403, "COMPANY_ACCESS_DENIED");

    let reader = json!({"name": "reader", "role_id": 2});
    let reader = owner.client.post(&owner.path("/api-keys"), reader).await;
    let reader = host.client(&reader.expect(201).text("/data/key"));
    reader.get(&hook.path).await.expect(200);
    reader
        .get(&format!("{}/deliveries", hook.path))
        .await
        .expect(200);
    reader
        .delete(&hook.path)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    tokio::time::sleep(QUIET).await;
    assert!(eavesdropper.received().is_empty());
    assert_eq!(receiver.received().len(), 1);

    owner.client.delete(&hook.path).await.expect(204);
    owner
        .client
        .get(&hook.path)
        .await
        .expect_error(404, "WEBHOOK_NOT_FOUND");
}

/// An address that cannot be one, or that this host does not send to, is refused when it is saved; so is more than a company may have.
#[tokio::test]
async fn bad_webhooks_are_refused() {
    let company = host().await.company(&unique("refused")).await;
    let hooks = company.path("/webhooks");
    for (url, code) in [
        ("https://10.0.0.1/x", "UNSAFE_URL"),
        ("https://169.254.169.254/latest/meta-data", "UNSAFE_URL"),
        ("https://[::1]/", "UNSAFE_URL"),
        ("http://1.1.1.1/x", "UNSAFE_URL"),
        ("http://no-such-name.invalid/x", "VALIDATION_ERROR"),
        ("ftp://1.1.1.1/x", "VALIDATION_ERROR"),
        ("https://user:word@1.1.1.1/x", "VALIDATION_ERROR"),
        ("nothing", "VALIDATION_ERROR"),
    ] {
        let refused = company.client.post(&hooks, json!({"url": url})).await;
        let refused = refused.expect_error(400, code);
        assert_eq!(refused.at("/error/details/errors/0/field"), "url", "{url}");
    }
    let good = json!({"url": "https://1.1.1.1/x"});
    let long = format!("https://1.1.1.1/{}", "x".repeat(2_000));
    let wrong = json!({"url": long});
    company
        .client
        .post(&hooks, wrong)
        .await
        .expect_error(400, "VALIDATION_ERROR");
    let wrong = json!({"url": "https://1.1.1.1/x", "event_types": ["credits.low", "credits.high"]});
    let refused = company.client.post(&hooks, wrong).await;
    assert_eq!(
        refused
            .expect_error(400, "VALIDATION_ERROR")
            .at("/error/details/errors/0/field"),
        "event_types[1]"
    );
    let mut last = String::new();
    for _ in 0..20 {
        let made = company.client.post(&hooks, good.clone()).await.expect(201);
        last = format!("{hooks}/{}", made.text("/data/id"));
    }
    company
        .client
        .post(&hooks, good.clone())
        .await
        .expect_error(409, "CONFLICT");
    company
        .client
        .patch(&last, json!({"url": "https://10.0.0.1/"}))
        .await
        .expect_error(400, "UNSAFE_URL");
    company.client.delete(&last).await.expect(204);
    company.client.post(&hooks, good).await.expect(201);
    let listed = company
        .client
        .get(&format!("{hooks}?per_page=5"))
        .await
        .expect(200);
    assert_eq!(listed.at("/meta/total"), 20);
    assert_eq!(listed.at("/data").as_array().map(Vec::len), Some(5));
}

/// Whoever misspells `event_types` is told so, and not of everything; all else that nobody knows is ignored.
#[tokio::test]
async fn misspelt_event_types_are_refused() {
    let company = host().await.company(&unique("misspelt")).await;
    let hooks = company.path("/webhooks");
    let url = "https://1.1.1.1/x";
    let made = json!({"url": url, "event_types": ["credits.low"], "content_type": "json"});
    let made = company.client.post(&hooks, made).await.expect(201);
    let hook = format!("{hooks}/{}", made.text("/data/id"));
    for name in ["events", "event_type", "eventTypes", "topics", "types"] {
        let created = company
            .client
            .post(&hooks, json!({"url": url, name: ["credits.low"]}));
        let changed = company
            .client
            .patch(&hook, json!({name: ["api_key.revoked"]}));
        for refused in [created.await, changed.await] {
            let refused = refused.expect_error(400, "VALIDATION_ERROR");
            let errors = refused.at("/error/details/errors");
            assert_eq!(errors.as_array().map(Vec::len), Some(1), "{errors}");
            assert_eq!(
                (&errors[0]["field"], &errors[0]["code"]),
                (&json!(name), &json!("unknown"))
            );
            let told = refused.text("/error/details/errors/0/message");
            assert!(told.contains("event_types"), "{told}");
        }
    }
    let listed = company.client.get(&hooks).await.expect(200);
    assert_eq!(listed.at("/meta/total"), 1);
    assert_eq!(*listed.at("/data/0/event_types"), json!(["credits.low"]));
    // With the right name beside it, it is a member like any other.
    let both = json!({"url": url, "event_types": ["credits.low"], "events": []});
    company.client.post(&hooks, both).await.expect(201);
}
