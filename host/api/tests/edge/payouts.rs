//! Earnings and their way out: pending, payable, in payout, paid or payable again. Nothing is paid twice and nothing is lost.

use crate::world::{Answer, Company, World, now};
use serde_json::{Value, json};
use souk_app::earnings;
use souk_domain::ids::{AssetId, CompanyId, ExecutionId, KeyId, RequestId};
use souk_domain::money::Credits;
use souk_domain::products::Product;
use souk_store::executions::{Billing, Outcome, Run};
use souk_store::teller::{HoldRequest, Receipt};
use std::time::Duration;

const IBAN: &str = "DE89 3704 0044 0532 0130 00";

struct Market {
    world: World,
    seller: Company,
    buyer: Company,
}

impl Market {
    /// A seller that has sold for `credits`, of which nothing is payable yet.
    async fn sold(credits: i64) -> Market {
        let world = World::new().await;
        let (seller, buyer) = (world.company("seller").await, world.company("buyer").await);
        let grants = format!("/admin/companies/{}/credits/grants", buyer.id);
        world
            .post(
                &world.platform,
                &grants,
                json!({"credits": credits, "reason": "x"}),
            )
            .await
            .expect(201);
        let market = Market {
            world,
            seller,
            buyer,
        };
        market.charge(credits).await;
        market
    }

    async fn charge(&self, credits: i64) {
        let buyer = CompanyId::parse(&self.buyer.id).unwrap();
        let execution = ExecutionId::generate_at(now());
        let request = HoldRequest {
            execution: execution.clone(),
            buyer: buyer.clone(),
            amount: Credits::new(credits).unwrap(),
            expires_at: now().after(Duration::from_secs(60)),
        };
        let hold = self.world.teller.hold(request).await.unwrap();
        let run = Run {
            id: execution,
            company: buyer,
            seller: CompanyId::parse(&self.seller.id).unwrap(),
            product: Product::Asset(AssetId::generate()),
            purchase: None,
            price: None,
            actor: KeyId::generate().into(),
            request: RequestId::generate_at(now()),
            outcome: Outcome::Succeeded,
            billing: Billing::Charged,
            rows: 1,
            bytes: 1,
            started_at: now(),
            duration_us: 1,
        };
        let receipt = Receipt {
            run,
            idempotency: None,
        };
        self.world.teller.post(hold, receipt).await.unwrap();
    }

    /// Lets everything earned so far become payable.
    async fn mature(&self) {
        let later = now().after(Duration::from_secs(1));
        earnings::mature(&self.world.db, later, now())
            .await
            .unwrap();
    }

    async fn set_method(&self) {
        let body =
            json!({"type": "bank_account", "account_holder": "Seller Inc.", "destination": IBAN});
        let path = self.seller.path("/payout-method");
        self.world
            .put(&self.seller.key, &path, body)
            .await
            .expect(200);
    }

    async fn ask(&self, key: &str, body: Value) -> Answer {
        let path = self.seller.path("/payouts");
        self.world
            .post_keyed(&self.seller.key, &path, key, body)
            .await
    }

    async fn advance(&self, id: &str, body: Value) -> Answer {
        let path = format!("/admin/payouts/{id}");
        self.world.patch(&self.world.platform, &path, body).await
    }

    /// Pending, payable, in payout, paid; their sum is what was earned.
    async fn earnings(&self) -> [f64; 4] {
        let earnings = self
            .world
            .get(&self.seller.key, &self.seller.path("/earnings"))
            .await
            .expect(200);
        let part = |name: &str| earnings.at(&format!("/data/{name}_usd")).as_f64().unwrap();
        let parts = [
            part("pending"),
            part("payable"),
            part("in_payout"),
            part("paid"),
        ];
        assert_eq!(parts.iter().sum::<f64>(), part("earned"));
        assert_eq!(earnings.at("/data/seller_share_percent"), 80);
        parts
    }
}

/// Earnings are pending, become payable, are asked for and paid; the statement shows the payout once.
#[tokio::test]
async fn earnings_are_paid_out() {
    let market = Market::sold(100).await;
    assert_eq!(market.earnings().await, [40.0, 0.0, 0.0, 0.0]);
    market.mature().await;
    market.mature().await;
    assert_eq!(market.earnings().await, [0.0, 40.0, 0.0, 0.0]);
    market.set_method().await;

    let asked = market
        .ask("one", json!({"amount_usd": 25.5}))
        .await
        .expect(201);
    let id = asked.text("/data/id");
    assert_eq!(
        (
            asked.at("/data/amount_usd"),
            asked.at("/data/status"),
            asked.at("/data/destination_last4"),
            asked.at("/data/paid_at")
        ),
        (
            &json!(25.5),
            &json!("requested"),
            &json!("3000"),
            &Value::Null
        )
    );
    let again = market
        .ask("one", json!({"amount_usd": 25.5}))
        .await
        .expect(201);
    assert_eq!(again.text("/data/id"), id);
    assert_eq!(market.earnings().await, [0.0, 14.5, 25.5, 0.0]);

    market
        .advance(&id, json!({"status": "paid"}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    market
        .advance(&id, json!({"status": "processing"}))
        .await
        .expect(200);
    let paid = json!({"status": "paid", "reference": "transfer 9"});
    let attempt = || market.advance(&id, paid.clone());
    let (first, second) = tokio::join!(attempt(), attempt());
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    assert_eq!(market.earnings().await, [0.0, 14.5, 0.0, 25.5]);
    let shown = market
        .world
        .get(
            &market.seller.key,
            &market.seller.path(&format!("/payouts/{id}")),
        )
        .await
        .expect(200);
    assert_eq!(shown.at("/data/status"), "paid");
    assert!(shown.at("/data/paid_at").is_string());

    let rest = market.ask("two", json!({})).await.expect(201);
    assert_eq!(rest.at("/data/amount_usd"), 14.5);
    let statement = market
        .world
        .get(
            &market.seller.key,
            &market.seller.path("/credits/transactions?type=payout"),
        )
        .await
        .expect(200);
    assert_eq!(
        (
            statement.at("/meta/total"),
            statement.at("/data/0/amount_usd_cents"),
            statement.at("/data/1/amount_usd_cents")
        ),
        (&json!(2), &json!(-1450), &json!(-2550))
    );
    market.world.assert_books().await;
}

/// A payout that fails or is cancelled gives the money back, once, and it can be asked for again.
#[tokio::test]
async fn a_failed_payout_returns_the_money() {
    let market = Market::sold(100).await;
    market.mature().await;
    market.set_method().await;
    for (key, end) in [
        (
            "one",
            json!({"status": "failed", "failure_reason": "no such account"}),
        ),
        ("two", json!({"status": "cancelled"})),
    ] {
        let asked = market.ask(key, json!({})).await.expect(201);
        let id = asked.text("/data/id");
        assert_eq!(market.earnings().await, [0.0, 0.0, 40.0, 0.0]);
        let ended = market.advance(&id, end.clone()).await.expect(200);
        assert_eq!(ended.at("/data/status"), &end["status"]);
        assert_eq!(
            ended.at("/data/failure_reason"),
            end.get("failure_reason").unwrap_or(&Value::Null)
        );
        assert_eq!(market.earnings().await, [0.0, 40.0, 0.0, 0.0]);
        for again in [
            end,
            json!({"status": "paid", "reference": "x"}),
            json!({"status": "processing"}),
        ] {
            market
                .advance(&id, again)
                .await
                .expect_error(409, "INVALID_STATE");
        }
        market.world.assert_books().await;
    }
    let asked = market.ask("three", json!({})).await.expect(201);
    let id = asked.text("/data/id");
    market
        .advance(&id, json!({"status": "processing"}))
        .await
        .expect(200);
    market
        .advance(&id, json!({"status": "cancelled"}))
        .await
        .expect_error(409, "INVALID_STATE");
    assert_eq!(market.earnings().await, [0.0, 0.0, 40.0, 0.0]);
}

/// What is payable is paid out once, whoever asks at once; too little, or nowhere to go, is refused.
#[tokio::test]
async fn no_more_than_is_payable_is_paid_out() {
    let market = Market::sold(60).await;
    market.mature().await;
    market
        .ask("early", json!({}))
        .await
        .expect_error(409, "PAYOUT_METHOD_MISSING");
    market.set_method().await;
    let path = market.seller.path("/payouts");
    let unkeyed = market
        .world
        .post(&market.seller.key, &path, json!({}))
        .await;
    assert_eq!(
        unkeyed.expect_error(400, "INVALID_REQUEST").field(),
        "Idempotency-Key"
    );
    for amount in [json!(9.99), json!(-10), json!(10.001)] {
        let refused = market.ask("bad", json!({"amount_usd": amount})).await;
        assert_eq!(
            refused.expect_error(400, "VALIDATION_ERROR").field(),
            "amount_usd"
        );
    }
    let much = market.ask("much", json!({"amount_usd": 24.01})).await;
    let much = much.expect_error(409, "PAYABLE_TOO_LOW");
    assert_eq!(much.at("/error/details/payable_usd"), 24);

    let body = json!({"amount_usd": 15});
    let (first, second) =
        tokio::join!(market.ask("a", body.clone()), market.ask("b", body.clone()));
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409]);
    market
        .ask("rest", json!({}))
        .await
        .expect_error(409, "PAYABLE_TOO_LOW");
    assert_eq!(market.earnings().await, [0.0, 9.0, 15.0, 0.0]);
    market.world.assert_books().await;
}

/// A destination is sealed: its owner sees the end of it, staff who transfers sees all of it, and a payout keeps the one it was asked for with.
#[tokio::test]
async fn destinations_are_masked_and_kept() {
    let market = Market::sold(100).await;
    market.mature().await;
    let (world, seller) = (&market.world, &market.seller);
    let path = seller.path("/payout-method");
    world
        .get(&seller.key, &path)
        .await
        .expect_error(404, "PAYOUT_METHOD_NOT_FOUND");
    for (kind, destination, field) in [
        ("cheque", "somewhere", "type"),
        ("bank_account", "12345", "destination"),
        ("paypal", "nobody.example", "destination"),
        ("stripe_connect", "123456789", "destination"),
    ] {
        let body = json!({"type": kind, "account_holder": "S", "destination": destination});
        let refused = world.put(&seller.key, &path, body).await;
        assert_eq!(refused.expect_error(400, "VALIDATION_ERROR").field(), field);
    }
    market.set_method().await;
    let shown = world.get(&seller.key, &path).await.expect(200);
    assert_eq!(
        (
            shown.at("/data/destination"),
            shown.at("/data/destination_last4")
        ),
        (&json!("****3000"), &json!("3000"))
    );
    let id = market
        .ask("one", json!({}))
        .await
        .expect(201)
        .text("/data/id");
    let paypal = json!({"type": "paypal", "account_holder": "S", "destination": "s@example.com"});
    world.put(&seller.key, &path, paypal).await.expect(200);

    let inspect = format!("/admin/payouts/{id}");
    world
        .get(&seller.key, &inspect)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    let inspected = world.get(&world.platform, &inspect).await.expect(200);
    assert_eq!(
        (
            inspected.at("/data/destination"),
            inspected.at("/data/destination_type"),
            inspected.at("/data/account_holder")
        ),
        (&json!(IBAN), &json!("bank_account"), &json!("Seller Inc."))
    );
    let waiting = world
        .get(&world.platform, "/admin/payouts?status=requested")
        .await
        .expect(200);
    assert_eq!(waiting.at("/data/0/id"), &json!(id));
    assert!(!waiting.body.to_string().contains("3704"));
    world
        .get(
            &market.buyer.key,
            &market.buyer.path(&format!("/payouts/{id}")),
        )
        .await
        .expect_error(404, "PAYOUT_NOT_FOUND");
    let mut read = world.db.read().await.unwrap();
    let row: (String,) = sqlx::query_as("SELECT destination FROM payouts")
        .fetch_one(&mut *read)
        .await
        .unwrap();
    assert!(!row.0.contains(&IBAN.replace(' ', "")) && row.0.len() > 60);
}

/// A seller refunds what it can still give back; when its share was paid out, that is for the platform to decide.
#[tokio::test]
async fn a_sellers_refund_needs_cover() {
    let market = Market::sold(100).await;
    market.mature().await;
    market.set_method().await;
    // 40 are earned; with 10 left of them, and 4 more that are not payable yet.
    market
        .ask("most", json!({"amount_usd": 30}))
        .await
        .expect(201);
    market.world.grant(&market.buyer, 10).await;
    market.charge(10).await;
    let earned = |page: &Answer, amount: i64| {
        let lines = page.at("/data").as_array().unwrap();
        let line = lines
            .iter()
            .find(|line| line["amount_usd_cents"] == amount)
            .unwrap();
        line["id"].as_str().unwrap().to_owned()
    };
    let (world, seller) = (&market.world, &market.seller);
    let page = world
        .get(
            &seller.key,
            &seller.path("/credits/transactions?type=earning"),
        )
        .await
        .expect(200);
    let refund = |id: &str| seller.path(&format!("/credits/transactions/{id}/refund"));
    let (large, small) = (refund(&earned(&page, 4_000)), refund(&earned(&page, 400)));
    let reason = json!({"reason": "wrong"});
    let refused = world
        .post(&seller.key, &large, reason.clone())
        .await
        .expect_error(409, "REFUND_NOT_COVERED");
    assert_eq!(
        (
            refused.at("/error/details/required_usd"),
            refused.at("/error/details/available_usd")
        ),
        (&json!(40), &json!(14))
    );
    assert_eq!(market.earnings().await, [4.0, 10.0, 30.0, 0.0]);
    world
        .post(&seller.key, &small, reason.clone())
        .await
        .expect(201);
    assert_eq!(market.earnings().await, [0.0, 10.0, 30.0, 0.0]);
    world
        .post(&seller.key, &small, reason.clone())
        .await
        .expect_error(409, "INVALID_STATE");

    // Half of it is pending and half payable: both together cover it.
    market.charge(10).await;
    market.mature().await;
    market
        .ask("rest", json!({"amount_usd": 12}))
        .await
        .expect(201);
    market.world.grant(&market.buyer, 100).await;
    market.charge(5).await;
    let page = world
        .get(
            &seller.key,
            &seller.path("/credits/transactions?type=earning"),
        )
        .await
        .expect(200);
    let last = refund(&earned(&page, 400));
    assert_eq!(market.earnings().await, [2.0, 2.0, 42.0, 0.0]);
    world
        .post(&seller.key, &last, reason.clone())
        .await
        .expect(201);
    assert_eq!(market.earnings().await, [0.0, 0.0, 42.0, 0.0]);

    let (large, staff) = (large.as_str(), &world.platform);
    world
        .post(&seller.key, large, reason.clone())
        .await
        .expect_error(409, "REFUND_NOT_COVERED");
    world.post(staff, large, reason).await.expect(201);
    assert_eq!(market.earnings().await, [0.0, -40.0, 42.0, 0.0]);
    world.assert_books().await;
}
