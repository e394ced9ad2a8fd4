//! Payments that their payer has had taken back: what they bought goes with them, and comes back with them.

use super::Shop;
use crate::world::now;
use serde_json::{Value, json};
use souk_domain::ids::{CompanyId, ExecutionId};
use souk_domain::money::Credits;
use souk_domain::time::HOUR;
use souk_store::teller::HoldRequest;

/// Of `order`'s top-ups: 40 credits.
const CENTS: i64 = 2_000;

impl Shop {
    /// An event by which a top-up was paid, with this payment.
    fn paid(&self, id: &str, top_up: &str, payment: &str) -> Value {
        let mut event = self
            .stripe
            .event(id, "checkout.session.completed", top_up, "paid");
        event["data"]["object"]["payment_intent"] = payment.into();
        event
    }

    /// A top-up that was paid with this payment.
    async fn bought(&self, payment: &str) -> String {
        let id = self.order(payment).await;
        let paid = self.paid(&format!("evt_{payment}"), &id, payment);
        self.tell_signed(&paid).await.expect(200);
        id
    }

    async fn dispute(&self, kind: &str, payment: &str, (cents, status): (i64, &str)) {
        let event = json!({
            "id": format!("evt_{kind}_{payment}"), "object": "event", "created": now().seconds(), "type": format!("charge.dispute.{kind}"),
            "data": {"object": {
                "id": format!("du_{payment}"), "object": "dispute", "amount": cents, "currency": "usd", "charge": "ch_1",
                "payment_intent": payment, "reason": "fraudulent", "status": status,
            }},
        });
        self.tell_signed(&event).await.expect(200);
    }

    /// What the statement says of disputes, the newest first.
    async fn adjustments(&self) -> Vec<Value> {
        let lines = self.acme.path("/credits/transactions?type=adjustment");
        let lines = self.world.get(&self.acme.key, &lines).await.expect(200);
        let amounts = lines.at("/data").as_array().unwrap().iter();
        amounts.map(|line| line["amount_credits"].clone()).collect()
    }
}

/// A payment that is taken back takes its credits with it, and one that comes back after all brings them: once, however often it is told.
#[tokio::test]
async fn disputes_take_credits_and_give_them_back() {
    let shop = Shop::open().await;
    shop.bought("pi_1").await;
    shop.bought("pi_2").await;
    // An inquiry moves no money.
    let inquiry = (CENTS, "warning_needs_response");
    shop.dispute("created", "pi_1", inquiry).await;
    assert_eq!(shop.balance().await, 80);
    for kind in ["created", "funds_withdrawn", "created"] {
        let open = (CENTS, "needs_response");
        shop.dispute(kind, "pi_1", open).await;
        assert_eq!(shop.balance().await, 40);
    }
    for _ in 0..2 {
        shop.dispute("closed", "pi_1", (CENTS, "won")).await;
        assert_eq!(shop.balance().await, 80);
    }
    shop.dispute("closed", "pi_2", (CENTS, "lost")).await;
    // A part of a payment.
    shop.bought("pi_3").await;
    shop.dispute("created", "pi_3", (500, "under_review")).await;
    assert_eq!(shop.balance().await, 70);
    assert_eq!(shop.adjustments().await, [-10, -40, 40, -40]);
    // What is no whole credits, or more than was bought, staff decides, and so of payments that nobody knows.
    let other = shop.bought("pi_4").await;
    for cents in [1_999, CENTS + 50] {
        let open = (cents, "needs_response");
        shop.dispute("created", &format!("{other}_{cents}"), open)
            .await;
    }
    shop.dispute("created", "pi_4", (1_999, "needs_response"))
        .await;
    assert_eq!(shop.balance().await, 110);
    shop.world.assert_books().await;
}

/// It does not matter which is told first: that a payment has come, that it was taken back, or that it is there again.
#[tokio::test]
async fn disputes_are_told_in_any_order() {
    let shop = Shop::open().await;
    let (lost, won) = (shop.order("one").await, shop.order("two").await);
    shop.dispute("created", "pi_1", (CENTS, "needs_response"))
        .await;
    assert_eq!(shop.balance().await, 0);
    let paid = shop.paid("evt_1", &lost, "pi_1");
    shop.tell_signed(&paid).await.expect(200);
    assert_eq!(
        (shop.balance().await, shop.adjustments().await),
        (0, vec![json!(-40)])
    );
    shop.dispute("closed", "pi_2", (CENTS, "won")).await;
    let paid = shop.paid("evt_2", &won, "pi_2");
    shop.tell_signed(&paid).await.expect(200);
    shop.dispute("created", "pi_2", (CENTS, "needs_response"))
        .await;
    assert_eq!(shop.balance().await, 40);
    // At once, and again.
    let both = shop.order("three").await;
    let paid = shop.paid("evt_3", &both, "pi_3");
    let open = (CENTS, "needs_response");
    let (told, (), ()) = tokio::join!(
        shop.tell_signed(&paid),
        shop.dispute("created", "pi_3", open),
        shop.dispute("funds_withdrawn", "pi_3", open),
    );
    told.expect(200);
    assert_eq!(shop.balance().await, 40);
    shop.world.assert_books().await;
}

/// What was spent is the platform's loss and not its sellers', what a run holds stays with that, and a dispute that is won makes good exactly what
/// was taken.
#[tokio::test]
async fn what_is_spent_is_not_taken_back() {
    let shop = Shop::open().await;
    let seller = shop.world.company("seller").await;
    let asset = shop.world.asset(&seller).await;
    shop.bought("pi_1").await;
    shop.world.charge(&shop.acme, &seller, &asset, 25).await;
    let run = |amount: i64| HoldRequest {
        execution: ExecutionId::generate_at(now()),
        buyer: CompanyId::parse(&shop.acme.id).unwrap(),
        amount: Credits::new(amount).unwrap(),
        expires_at: now().after(HOUR),
    };
    let held = shop.world.teller.hold(run(5)).await.unwrap();
    shop.dispute("created", "pi_1", (CENTS, "needs_response"))
        .await;
    assert_eq!(shop.adjustments().await, [-10]);
    drop(held);
    shop.world.teller.flush().await;
    assert_eq!(shop.balance().await, 5);
    shop.world.assert_books().await;

    shop.dispute("closed", "pi_1", (CENTS, "won")).await;
    assert_eq!(shop.balance().await, 15);
    let earned = seller.path("/earnings");
    let earned = shop.world.get(&seller.key, &earned).await.expect(200);
    assert_eq!(earned.at("/data/pending_usd"), 10);
    shop.world.assert_books().await;
    // What is there can be spent, to the last credit and no further.
    assert!(shop.world.teller.hold(run(16)).await.is_err());
    assert!(shop.world.teller.hold(run(15)).await.is_ok());
}
