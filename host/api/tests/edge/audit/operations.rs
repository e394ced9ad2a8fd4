//! Every operation that changes something, and the line that it leaves.

use crate::audited::{BY_HOSTS, BY_PAYMENTS, BY_PROVIDERS, NOTHING};
use crate::world::{Answer, Company, World, now, request};
use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use souk_app::earnings;
use souk_store::Fields;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

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
    let status = format!("/admin/companies/{}/status", seller.id);
    let reason = json!({"status": "active", "reason": "looked at"});
    auditor.put(&staff, &status, reason).await;
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
