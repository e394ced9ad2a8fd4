//! Events are written with what causes them, once, to whom they matter.

use crate::support::{self, credits, grant, open, roll_back, stores};
use crate::{data, market, top_up, webhook, written};
use futures_util::future::join_all;
use souk_domain::webhooks::EventType;
use souk_store::deliveries::DeliveryStatus;
use souk_store::payouts::{self, Method, PayoutStatus};
use souk_store::purchases::{self, NewPurchase, PurchaseStatus};
use souk_store::teller::Teller;
use souk_store::top_ups;
use souk_store::webhooks::{self, DisabledReason};
use souk_store::{StoreError, Write, db, ledger};

/// Fifty charges at once that together cross the threshold write one event, with the balance that the crossing charge left; a grant arms it
/// again; the threshold is the company's, from the next charge on.
#[tokio::test]
async fn low_credits_are_told_once_per_crossing() {
    for store in stores().await {
        let (market, hook) = market(&store, 130, &[EventType::CreditsLow]).await;
        let teller = Teller::open(&store.db).await.unwrap();
        // On a shared store another host charges the same buyer.
        let other = match store.name {
            "sqlite" => teller.clone(),
            _ => Teller::open(&open(&store.url).await).await.unwrap(),
        };
        let tellers = [&teller, &other];
        join_all((0..50).map(|charge| market.charge(tellers[charge % 2], 1))).await;
        let told = written(&store.db, &hook).await;
        assert_eq!(told.len(), 1, "{}: {told:#?}", store.name);
        let event = data(&told[0]);
        assert_eq!(
            (
                event["balance_credits"].as_i64(),
                event["threshold_credits"].as_i64(),
                event["company_id"].as_str(),
            ),
            (Some(99), Some(100), Some(market.buyer.as_str())),
            "{}",
            store.name
        );

        market.charge(&teller, 5).await;
        grant(&store.db, &market.buyer, 25).await;
        assert_eq!(
            written(&store.db, &hook).await.len(),
            1,
            "neither further down nor up"
        );
        market.charge(&teller, 1).await;
        assert_eq!(
            written(&store.db, &hook).await.len(),
            2,
            "100 is not low, 99 is"
        );

        for (threshold, charge, expected) in [(Some(90), 9, 2), (Some(90), 1, 3), (Some(0), 80, 3)]
        {
            store
                .db
                .write(async |write| ledger::set_low_at(write, &market.buyer, threshold).await)
                .await
                .unwrap();
            market.charge(&other, charge).await;
            let told = written(&store.db, &hook).await.len();
            assert_eq!(told, expected, "{}: {threshold:?}", store.name);
        }
        // A host that opens the store anew knows what was chosen.
        store
            .db
            .write(async |write| ledger::set_low_at(write, &market.buyer, Some(5)).await)
            .await
            .unwrap();
        if store.name == "sqlite" {
            teller.flush().await;
            store.db.close().await;
            let again = open(&store.url).await;
            let teller = Teller::open(&again).await.unwrap();
            assert_eq!(market.charge(&teller, 6).await.balance_credits, Some(3));
            assert_eq!(written(&again, &hook).await.len(), 4);
        }
    }
}

/// Without an active webhook that wants the type nothing is written, and what is rolled back was never told.
#[tokio::test]
async fn events_are_written_with_their_cause_or_not_at_all() {
    for store in stores().await {
        let (market, hook) = market(&store, 0, &[EventType::PayoutPaid]).await;
        let settle = async |commit: bool| {
            let id = top_up(&store.db, &market).await;
            let settle = async |write: &mut Write| {
                let settled = top_ups::settle(write, &id, "r", None, db::now()).await;
                settled.map(|settled| settled.expect("it waits"))
            };
            match commit {
                true => store.db.write(settle).await.map(drop),
                false => roll_back(&store.db, settle).await.map(drop),
            }
            .unwrap();
        };
        settle(true).await;
        assert!(written(&store.db, &hook).await.is_empty(), "another type");
        let all = webhook(&store.db, &market.buyer, &[]).await;
        let other = webhook(&store.db, &market.seller, &[]).await;
        settle(false).await;
        assert!(written(&store.db, &all).await.is_empty(), "rolled back");
        settle(true).await;
        let told = written(&store.db, &all).await;
        assert_eq!(told.len(), 1);
        assert_eq!(data(&told[0])["credits"], 7);
        assert_eq!(data(&told[0])["amount_usd"], 3.5);
        store
            .db
            .write(async |write| {
                webhooks::disable(write, &all, DisabledReason::Request, db::now()).await
            })
            .await
            .unwrap();
        settle(true).await;
        let told = written(&store.db, &all).await;
        assert_eq!(told.len(), 1, "a disabled webhook is told nothing");
        assert_eq!(
            told[0].status,
            DeliveryStatus::Failed,
            "what waited is given up"
        );
        assert!(
            written(&store.db, &other).await.is_empty(),
            "another company"
        );
    }
}

/// A payout that is paid, one that has failed and one that staff has cancelled are told to the seller.
#[tokio::test]
async fn the_end_of_a_payout_is_told() {
    for store in stores().await {
        let (market, _) = market(&store, 300, &[EventType::CreditsLow]).await;
        let hook = webhook(&store.db, &market.seller, &[]).await;
        let teller = Teller::open(&store.db).await.unwrap();
        market.charge(&teller, 300).await;
        teller.flush().await;
        let now = store
            .db
            .write(async |write| -> Result<_, StoreError> {
                let now = support::later(db::now(), 1);
                support::mature(write, &market.seller, now, now)
                    .await
                    .unwrap();
                let method = Method {
                    kind: "paypal".into(),
                    account_holder: "S".into(),
                    sealed_destination: vec![1],
                    last4: "1234".into(),
                };
                payouts::set_method(write, &market.seller, &method, now)
                    .await
                    .unwrap();
                Ok(now)
            })
            .await
            .unwrap();
        for (status, reason) in [
            (PayoutStatus::Cancelled, None),
            (PayoutStatus::Failed, Some("account closed")),
            (PayoutStatus::Paid, None),
        ] {
            store
                .db
                .write(async |write| -> Result<_, StoreError> {
                    let minimum = souk_domain::money::UsdCents::new(1_000);
                    let payout =
                        payouts::request(write, &market.seller, None, minimum, &market.actor, now)
                            .await
                            .unwrap();
                    payouts::advance(
                        write,
                        &payout.id,
                        status,
                        Some("r"),
                        reason,
                        &market.actor,
                        now,
                    )
                    .await
                    .unwrap();
                    Ok(())
                })
                .await
                .unwrap();
        }
        let mut told: Vec<_> = written(&store.db, &hook).await;
        told.sort_by(|one, other| one.event_type.cmp(&other.event_type));
        let types: Vec<_> = told.iter().map(|told| told.event_type.as_str()).collect();
        let ends = ["payout.cancelled", "payout.failed", "payout.paid"];
        assert_eq!(types, ends, "{}", store.name);
        assert_eq!(data(&told[0])["amount_usd"], 120);
        assert_eq!(data(&told[1])["failure_reason"], "account closed");
        assert_eq!(data(&told[2])["amount_usd"], 120);
        assert_eq!(data(&told[2])["reference"], "r");
    }
}

/// A buyer who cancels and accepts again and again fills no queue but its own: the seller is told when the terms were last accepted an hour ago or
/// earlier.
#[tokio::test]
async fn renewals_in_a_row_are_told_to_the_buyer_only() {
    const TYPES: &[EventType] = &[EventType::PurchaseCreated];
    for store in stores().await {
        let (market, buyers) = market(&store, 0, TYPES).await;
        let sellers = webhook(&store.db, &market.seller, TYPES).await;
        let new = NewPurchase {
            buyer: &market.buyer,
            seller: &market.seller,
            product: &market.product,
            credits: credits(0),
            ai_training_allowed: false,
            accepted_by: "key_1",
        };
        let now = db::now();
        let bought = store
            .db
            .write(async |write| purchases::implicit(write, &new, now).await);
        let id = bought.await.unwrap().id;
        let told = async || {
            let (buyers, sellers) = (
                written(&store.db, &buyers).await,
                written(&store.db, &sellers).await,
            );
            (buyers.len(), sellers.len())
        };
        assert_eq!(told().await, (1, 1), "{}", store.name);
        let mut accepted_at = now;
        for (seconds, expected) in [(1, (2, 1)), (10, (3, 1)), (3_599, (4, 1)), (3_600, (5, 2))] {
            accepted_at = support::later(accepted_at, seconds);
            let renewed = store.db.write(async |write| -> Result<_, StoreError> {
                let (from, to) = (PurchaseStatus::Active, PurchaseStatus::Cancelled);
                assert!(purchases::set_status(write, &id, from, to).await?);
                purchases::renew(write, &id, &new, accepted_at).await
            });
            assert!(renewed.await.unwrap().is_some());
            assert_eq!(told().await, expected, "{} {seconds}", store.name);
        }
    }
}
