//! The audit log: no change without its line, no line without a change, no secret in any.

use crate::audited::{BY_HOSTS, BY_PAYMENTS, BY_PROVIDERS, NOTHING};
use crate::world::{Answer, Company, World, now, request};
use axum::body::Body;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use souk_app::earnings;
use souk_store::{Fields, StoreError};
use std::cell::RefCell;
use std::collections::BTreeSet;
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

/// Demands of every change that it makes that it leaves a line.
struct Auditor<'a> {
    world: &'a World,
    seen: RefCell<BTreeSet<String>>,
}

impl Auditor<'_> {
    async fn see(&self, answer: Answer) -> Answer {
        assert!(answer.status.is_success(), "{}", answer.body);
        let operations = self.world.audited(&answer).await;
        assert!(!operations.is_empty(), "no line: {}", answer.body);
        self.seen.borrow_mut().extend(operations);
        answer
    }

    async fn post(&self, key: &str, path: &str, body: Value) -> Answer {
        self.see(self.world.post(key, path, body).await).await
    }

    async fn patch(&self, key: &str, path: &str, body: Value) -> Answer {
        self.see(self.world.patch(key, path, body).await).await
    }

    async fn put(&self, key: &str, path: &str, body: Value) -> Answer {
        self.see(self.world.put(key, path, body).await).await
    }

    async fn delete(&self, key: &str, path: &str) -> Answer {
        self.see(self.world.delete(key, path).await).await
    }

    async fn keyed(&self, key: &str, path: &str, body: Value) -> Answer {
        let answer = self.world.post_keyed(key, path, path, body).await;
        self.see(answer).await
    }
}

/// Every operation that changes something leaves a line in the transaction that does it: those of the edge here, the others where
/// [`BY_HOSTS`] and [`BY_PAYMENTS`] say.
#[tokio::test]
async fn every_operation_that_changes_something_leaves_a_line() {
    let world = World::new().await;
    let auditor = Auditor {
        world: &world,
        seen: RefCell::default(),
    };
    let staff = world.platform.clone();
    auditor
        .post(&staff, "/admin/secrets/reseal", json!({}))
        .await;
    let made = json!({"name": "made", "handle": "made"});
    auditor.post(&staff, "/admin/companies", made).await;
    let (seller, buyer) = (world.company("seller").await, world.company("buyer").await);
    let key = seller.key.as_str();
    let patch = json!({"description": "sells", "low_credit_threshold": 7});
    auditor.patch(key, &seller.path(""), patch).await;
    let asset = world.asset(&seller).await;
    let schema = seller.path(&format!("/assets/{asset}/schema"));
    let tables = |name: &str| json!({"schema": {"tables": [{"name": name}]}});
    auditor.put(key, &schema, tables("one")).await;
    auditor.post(key, &schema, tables("two")).await;
    let plan = format!("/admin/companies/{}/plan", seller.id);
    auditor.put(&staff, &plan, json!({"plan": "growth"})).await;
    keys(&auditor, &seller).await;
    let endpoint = products(&auditor, &seller).await;
    purchases(&auditor, &buyer, &endpoint).await;
    webhooks(&auditor, &buyer, &endpoint).await;
    money(&auditor, &seller, &buyer).await;
    files(&auditor, &seller).await;
    favorites(&auditor, &buyer, &endpoint).await;
    users(&auditor, &buyer).await;
    alerts(&auditor, &seller).await;
    posts(&auditor, &seller).await;

    let routes = souk_api::all();
    let all: BTreeSet<String> = routes
        .operations()
        .filter(|operation| operation.is_audited())
        .map(|operation| operation.id.to_owned())
        .collect();
    let mut seen = auditor.seen.into_inner();
    for elsewhere in [BY_HOSTS, BY_PAYMENTS, BY_PROVIDERS, NOTHING] {
        seen.extend(elsewhere.iter().map(|id| id.to_string()));
    }
    assert_eq!(seen, all);
    // Nobody is left acting.
    let mut read = world.db.read().await.unwrap();
    let acting = sqlx::query("SELECT COUNT(*) AS acting FROM audit_acting");
    let acting = acting.fetch_one(&mut *read).await.unwrap();
    assert_eq!(acting.number("acting").unwrap(), 0);
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

async fn keys(auditor: &Auditor<'_>, company: &Company) {
    let (key, path) = (company.key.as_str(), company.path("/api-keys"));
    let new = || json!({"name": "new", "role_id": 2});
    let made = auditor.keyed(key, &path, new()).await;
    let one = format!("{path}/{}", made.text("/data/id"));
    auditor.patch(key, &one, json!({"name": "other"})).await;
    let rotated = auditor.post(key, &format!("{one}/rotate"), json!({})).await;
    let two = format!("{path}/{}", rotated.text("/data/id"));
    auditor.post(key, &format!("{two}/revoke"), json!({})).await;
    let made = auditor.post(key, &path, new()).await;
    let three = format!("{path}/{}", made.text("/data/id"));
    auditor.delete(key, &three).await;
}

/// A priced endpoint.
async fn products(auditor: &Auditor<'_>, seller: &Company) -> String {
    let key = seller.key.as_str();
    let endpoint = auditor.world.endpoint(seller).await;
    let prices = seller.path(&format!("/endpoints/{endpoint}/prices"));
    auditor
        .post(key, &prices, json!({"price_credits": 4}))
        .await;
    let discount = json!({"discount_percent": 50});
    auditor
        .post(key, &format!("{prices}/discount"), discount)
        .await;
    let later = now().after(Duration::from_secs(3_600)).to_string();
    let future = json!({"price_credits": 9, "effective_from": later});
    let future = auditor.post(key, &prices, future).await;
    let future = format!("{prices}/{}", future.text("/data/id"));
    auditor
        .patch(key, &future, json!({"price_credits": 8}))
        .await;
    auditor.delete(key, &future).await;
    let keys = seller.path(&format!("/endpoints/{endpoint}/keys"));
    let made = auditor.post(key, &keys, json!({"name": "own"})).await;
    let one = format!("{keys}/{}", made.text("/data/id"));
    auditor.patch(key, &one, json!({"name": "other"})).await;
    auditor.delete(key, &one).await;
    endpoint
}

async fn purchases(auditor: &Auditor<'_>, buyer: &Company, endpoint: &str) {
    let key = buyer.key.as_str();
    let path = buyer.path("/purchases");
    let order = json!({"product_id": endpoint, "accept_terms": true});
    let bought = auditor.post(key, &path, order).await;
    let id = bought.text("/data/id");
    let keys = buyer.path("/api-keys");
    let provisioned = bought.text("/data/endpoint_key/id");
    auditor.delete(key, &format!("{keys}/{provisioned}")).await;
    let access = format!("{path}/{id}/access");
    auditor.post(key, &access, json!({})).await;
    for what in ["suspend", "resume"] {
        let path = format!("/admin/purchases/{id}/{what}");
        auditor
            .post(&auditor.world.platform, &path, json!({}))
            .await;
    }
    auditor.delete(key, &format!("{path}/{id}")).await;
}

async fn webhooks(auditor: &Auditor<'_>, company: &Company, endpoint: &str) {
    let (key, path) = (company.key.as_str(), company.path("/webhooks"));
    let hook = json!({"url": "https://93.184.216.34/souk"});
    let hook = auditor.post(key, &path, hook).await;
    let hook = format!("{path}/{}", hook.text("/data/id"));
    auditor.patch(key, &hook, json!({"description": "d"})).await;
    let rotate = format!("{hook}/rotate-secret");
    auditor.post(key, &rotate, json!({})).await;
    let order = json!({"product_id": endpoint, "accept_terms": true});
    auditor.post(key, &company.path("/purchases"), order).await;
    let deliveries = format!("{hook}/deliveries");
    let written = auditor.world.get(key, &deliveries).await.expect(200);
    let retry = format!("{deliveries}/{}/retry", written.text("/data/0/id"));
    auditor.post(key, &retry, json!({})).await;
    auditor.delete(key, &hook).await;
}

async fn money(auditor: &Auditor<'_>, seller: &Company, buyer: &Company) {
    let (world, staff) = (auditor.world, auditor.world.platform.as_str());
    let grants = format!("/admin/companies/{}/credits/grants", buyer.id);
    let grant = json!({"credits": 100, "reason": "welcome"});
    auditor.post(staff, &grants, grant).await;
    let top_ups = buyer.path("/credits/top-ups");
    let order = auditor
        .keyed(&buyer.key, &top_ups, json!({"credits": 5}))
        .await;
    let settle = format!("/admin/top-ups/{}/settle", order.text("/data/id"));
    auditor
        .post(staff, &settle, json!({"reference": "line 7"}))
        .await;
    let asset = world.asset(seller).await;
    let charge = world.charge(buyer, seller, &asset, 10).await;
    world.charge(buyer, seller, &asset, 80).await;
    let refund = seller.path(&format!("/credits/transactions/{charge}/refund"));
    auditor
        .post(&seller.key, &refund, json!({"reason": "wrong"}))
        .await;
    let later = now().after(Duration::from_secs(1));
    earnings::mature(&world.db, later, now()).await.unwrap();
    let method = json!({"type": "bank_account", "account_holder": "Seller Inc.", "destination": "DE89 3704 0044 0532 0130 00"});
    auditor
        .put(&seller.key, &seller.path("/payout-method"), method)
        .await;
    let payout = auditor
        .keyed(&seller.key, &seller.path("/payouts"), json!({}))
        .await;
    let payout = format!("/admin/payouts/{}", payout.text("/data/id"));
    auditor
        .patch(staff, &payout, json!({"status": "processing"}))
        .await;
}

async fn files(auditor: &Auditor<'_>, company: &Company) {
    let path = company.path("/files/goals.csv");
    let put = request(Method::PUT, &company.key, &path).body(Body::from("a,b\n1,2\n"));
    auditor.see(auditor.world.send(put.unwrap()).await).await;
    auditor.delete(&company.key, &path).await;
}

async fn favorites(auditor: &Auditor<'_>, company: &Company, endpoint: &str) {
    let key = company.key.as_str();
    let path = company.path(&format!("/users/{}/favorites", company.user_id));
    let made = auditor
        .post(key, &path, json!({"endpoint_id": endpoint}))
        .await;
    let one = format!("{path}/{}", made.text("/data/id"));
    auditor.patch(key, &one, json!({"note": "n"})).await;
    auditor.delete(key, &one).await;
}

async fn users(auditor: &Auditor<'_>, company: &Company) {
    let (key, path) = (company.key.as_str(), company.path("/users"));
    let made = auditor
        .post(key, &path, json!({"email": "ann@example.org"}))
        .await;
    let one = format!("{path}/{}", made.text("/data/id"));
    auditor.patch(key, &one, json!({"name": "Ann"})).await;
    let again = format!("{one}/invitation");
    let invited = auditor.post(key, &again, json!({})).await;
    let url = invited.text("/data/url");
    let token = url.split_once('#').unwrap().1;
    let accept = "/users/invitations/accept";
    let entered = auditor.post("", accept, json!({"token": token})).await;
    let session = entered.text("/data/session/id");
    let sessions = format!("{one}/sessions");
    auditor.delete(key, &format!("{sessions}/{session}")).await;
    let cleo = auditor.world.browser(company, 3).await;
    let name = json!({"name": "cleo", "role_id": 1});
    let keys = company.path("/api-keys");
    let made = cleo.ask(auditor.world, Method::POST, &keys, name);
    let made = made.await.expect(201).text("/data/key");
    auditor.post(&made, "/users/logout", json!({})).await;
    auditor.delete(key, &one).await;
}

async fn alerts(auditor: &Auditor<'_>, company: &Company) {
    let key = company.key.as_str();
    let asset = auditor.world.sample(company, "{}").await;
    let path = company.path(&format!("/users/{}/alerts", company.user_id));
    let made = auditor.post(key, &path, json!({"asset_id": asset})).await;
    let one = company.path(&format!("/alerts/{}", made.text("/data/id")));
    auditor.patch(key, &one, json!({"name": "other"})).await;
    auditor.post(key, &format!("{one}/test"), json!({})).await;
    auditor.delete(key, &one).await;
}

async fn posts(auditor: &Auditor<'_>, company: &Company) {
    let (key, path) = (company.key.as_str(), company.path("/posts"));
    let body = json!({"title": "t", "body_markdown": "x"});
    let made = auditor.post(key, &path, body).await;
    let one = format!("{path}/{}", made.text("/data/id"));
    auditor.patch(key, &one, json!({"title": "other"})).await;
    for what in ["publish", "unpublish"] {
        auditor.post(key, &format!("{one}/{what}"), json!({})).await;
    }
    auditor.delete(key, &one).await;
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
