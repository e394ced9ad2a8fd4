//! The audit log: no change without its line, no line without a change, no secret in any.

mod operations;

use crate::world::{Answer, Company, World, now, request};
use axum::body::Body;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use souk_store::{Fields, StoreError};
use std::time::{Duration, Instant};

impl World {
    /// The operations whose lines a request left.
    pub async fn audited(&self, answer: &Answer) -> Vec<String> {
        let mut read = self.db.read().await.unwrap();
        let rows = sqlx::query("SELECT operation FROM audit_log WHERE request_id = $1")
            .bind(answer.header("x-request-id"))
            .fetch_all(&mut *read)
            .await
            .unwrap();
        let operations = rows.iter().map(|row| row.text("operation").unwrap());
        operations.collect()
    }

    /// Lines as a company reads them.
    async fn audit_log(&self, company: &Company, query: &str) -> Vec<Value> {
        let path = company.path(&format!("/audit-log?{query}"));
        let found = self.get(&company.key, &path).await.expect(200);
        found.at("/data").as_array().unwrap().clone()
    }
}

/// Whoever has secrets sealed anew leaves a line, also where they hang up before it is done.
#[tokio::test]
async fn who_hangs_up_leaves_a_line() {
    let world = World::new().await;
    let reseal = request(Method::POST, &world.platform, "/admin/secrets/reseal");
    let reseal = reseal.body(Body::empty()).unwrap();
    world.hang_up(vec![reseal]).await;
    let lines = async || {
        let mut read = world.db.read().await.unwrap();
        let sql = "SELECT COUNT(*) AS found FROM audit_log WHERE operation = 'reseal_secrets'";
        let counted = sqlx::query(sql).fetch_one(&mut *read).await.unwrap();
        counted.number("found").unwrap()
    };
    let since = Instant::now();
    while lines().await == 0 {
        let waited = since.elapsed();
        assert!(waited < Duration::from_secs(60), "it was given up");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A line says who, what, when, from where, and what differs; a secret only that it changed.
#[tokio::test]
async fn a_line_tells_what_changed_and_keeps_secrets() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let hook = json!({"url": "https://93.184.216.34/souk", "event_types": ["credits.low"]});
    let made = world
        .post(&acme.key, &acme.path("/webhooks"), hook)
        .await
        .expect(201);
    let (id, secret) = (made.text("/data/id"), made.text("/data/secret"));
    let path = acme.path(&format!("/webhooks/{id}"));
    let rotated = world
        .post(&acme.key, &format!("{path}/rotate-secret"), json!({}))
        .await
        .expect(200);
    world
        .patch(
            &acme.key,
            &path,
            json!({"description": "d", "is_active": false}),
        )
        .await
        .expect(200);
    // What changes nothing leaves no line.
    let same = world
        .patch(&acme.key, &path, json!({"description": "d"}))
        .await
        .expect(200);
    assert_eq!(world.audited(&same).await, Vec::<String>::new());
    world.delete(&acme.key, &path).await.expect(204);

    let lines = world.audit_log(&acme, &format!("subject_id={id}")).await;
    let told = |line: &Value| {
        let text = |name: &str| line[name].as_str().unwrap().to_owned();
        (text("operation"), text("change"))
    };
    let told: Vec<_> = lines.iter().map(told).collect();
    let expected = [
        ("delete_webhook", "deleted"),
        ("update_webhook", "changed"),
        ("update_webhook", "changed"),
        ("rotate_webhook_secret", "changed"),
        ("create_webhook", "created"),
    ];
    assert_eq!(told, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let created = &lines[4];
    assert_eq!(created["before"], Value::Null);
    assert_eq!(
        created["after"],
        json!({"url": "https://93.184.216.34/souk", "event_types": ["credits.low"], "is_active": true, "secret": "secret"})
    );
    assert_eq!(created["request_id"], made.header("x-request-id"));
    assert_eq!(created["company_id"], acme.id);
    assert_eq!(
        (&created["method"], &created["path"]),
        (&json!("POST"), &json!(acme.path("/webhooks")))
    );
    let actor = &created["actor"];
    assert_eq!(
        (
            &actor["type"],
            &actor["company_id"],
            &actor["user_id"],
            &actor["role_id"],
            &actor["address"]
        ),
        (
            &json!("key"),
            &json!(acme.id),
            &json!(acme.user_id),
            &json!(4),
            &json!("0.0.0.0")
        )
    );
    assert_eq!(lines[3]["before"]["secret"], "former secret");
    assert_eq!(lines[3]["after"]["secret"], "new secret");
    assert_eq!(
        (&lines[2]["before"], &lines[2]["after"]),
        (&json!({"description": null}), &json!({"description": "d"}))
    );
    assert_eq!(
        lines[1]["after"],
        json!({"is_active": false, "disabled_reason": "request"})
    );
    let text = Value::from(lines).to_string();
    for secret in [secret, rotated.text("/data/secret"), acme.key.clone()] {
        let hidden = secret.strip_prefix("whsec_").unwrap_or(&secret);
        assert!(!text.contains(hidden), "{text}");
    }
}

/// What fails leaves no line, not even of the part that was done before.
#[tokio::test]
async fn what_fails_leaves_no_line() {
    let world = World::new().await;
    let (acme, _) = (world.company("acme").await, world.company("taken").await);
    let taken = world
        .patch(&acme.key, &acme.path(""), json!({"handle": "taken"}))
        .await
        .expect(409);
    assert_eq!(world.audited(&taken).await, Vec::<String>::new());
    let key = json!({"name": "k", "role_id": 5});
    let refused = world
        .post(&acme.key, &acme.path("/api-keys"), key)
        .await
        .expect(403);
    assert_eq!(world.audited(&refused).await, Vec::<String>::new());
}

/// Of what another company's key does here its address and id stay hidden; of what one's own key does there the values do.
#[tokio::test]
async fn companies_do_not_see_each_others_secrets() {
    let world = World::new().await;
    let (seller, buyer) = (world.company("seller").await, world.company("buyer").await);
    world.grant(&buyer, 50).await;
    let granted = world.audit_log(&buyer, "operation=grant_credits").await;
    assert_eq!(granted.len(), 1);
    let actor = &granted[0]["actor"];
    assert!(actor["company_id"].is_string() && actor["company_id"] != buyer.id.as_str());
    assert_eq!(
        (&actor["api_key_id"], &actor["address"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(granted[0]["after"]["amount_credits"], 50);

    let asset = world.asset(&seller).await;
    let charge = world.charge(&buyer, &seller, &asset, 10).await;
    let refund = seller.path(&format!("/credits/transactions/{charge}/refund"));
    world
        .post(&seller.key, &refund, json!({"reason": "wrong"}))
        .await
        .expect(201);
    let of_seller = world
        .audit_log(&seller, "operation=refund_transaction")
        .await;
    let of_buyer = world
        .audit_log(&buyer, "operation=refund_transaction")
        .await;
    assert_eq!((of_seller.len(), of_buyer.len()), (1, 1));
    assert_eq!(
        (&of_seller[0]["after"], &of_seller[0]["actor"]["role_id"]),
        (&Value::Null, &json!(4))
    );
    assert_eq!(of_buyer[0]["after"]["amount_credits"], 10);
    assert_eq!(of_buyer[0]["actor"]["company_id"], seller.id);
    assert_eq!(of_buyer[0]["actor"]["role_id"], Value::Null);
    // Staff sees both sides.
    let path = buyer.path("/audit-log?operation=refund_transaction");
    let seen = world.get(&world.platform, &path).await.expect(200);
    assert_eq!(seen.at("/data/0/actor/role_id"), 4);
    assert_eq!(seen.at("/data/0/after/amount_credits"), 10);
}

/// A page of long values, which a compute lane reads and writes, is like any other.
#[tokio::test]
async fn long_values_are_shown() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let long = "x".repeat(10_000);
    let values = json!({"name": long, "email_verified": 1}).to_string();
    let write = world.db.write(async |write| -> Result<_, StoreError> {
        sqlx::query(
            "INSERT INTO audit_log (company_id, at, after_values, bytes, act_id, line, address, operation, method, path, request_id,
                                    subject_type, subject_id, change)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
             SELECT $1, $2, $3, 1, 'aud_long', i, '127.0.0.1', 'long_one', 'POST', '/long', 'req_1', 'user', 'usr_1', 'created' FROM n",
        )
        .bind(&acme.id)
        .bind(now().micros())
        .bind(&values)
        .execute(&mut **write)
        .await
        .unwrap();
        Ok(())
    });
    write.await.unwrap();
    let lines = world
        .audit_log(&acme, "operation=long_one&per_page=100")
        .await;
    assert_eq!(lines.len(), 60);
    for line in lines {
        let expected = json!({"name": long, "email_verified": true});
        assert_eq!(line["after"], expected);
        assert_eq!(line["before"], Value::Null);
    }
}

/// For role 4 of the company, and nobody else; wrong parameters are all named.
#[tokio::test]
async fn the_log_is_for_administrators() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let path = acme.path("/audit-log");
    world
        .get("", &path)
        .await
        .expect_error(401, "MISSING_API_KEY");
    world
        .get(&other.key, &path)
        .await
        .expect_error(403, "COMPANY_ACCESS_DENIED");
    let engineer = json!({"name": "engineer", "role_id": 3});
    let made = world
        .post(&acme.key, &acme.path("/api-keys"), engineer)
        .await
        .expect(201);
    let engineer = made.text("/data/key");
    world
        .get(&engineer, &path)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    let wrong = world
        .get(&acme.key, &format!("{path}?page=0&since=1&start_date=x"))
        .await;
    let wrong = wrong.expect_error(400, "INVALID_PARAMETER");
    let fields = wrong.at("/error/details/errors").as_array().unwrap();
    let fields: Vec<_> = fields
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["page", "since", "start_date"]);
    world
        .get(
            &acme.key,
            &format!("{path}?start_date=2026-01-02&end_date=2026-01-01"),
        )
        .await
        .expect_error(400, "INVALID_PERIOD");
    let today = now().date();
    let lines = world
        .audit_log(&acme, &format!("subject_type=api_key&start_date={today}"))
        .await;
    assert_eq!(lines.len(), 2);
    let id = made.text("/data/id");
    assert_eq!(lines[0]["subject_id"], id.as_str());
    assert_eq!(world.audit_log(&acme, "end_date=2026-01-01").await.len(), 0);
    assert_eq!(
        world
            .audit_log(&acme, &format!("api_key_id={id}"))
            .await
            .len(),
        0
    );
    let one = world
        .get(&acme.key, &format!("{path}?per_page=1&page=2"))
        .await
        .expect(200);
    assert_eq!(one.status, StatusCode::OK);
    assert_eq!(one.at("/data").as_array().unwrap().len(), 1);
}
