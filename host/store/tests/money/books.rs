//! Bookings other than charges, and the proof that the books are right.

use crate::support::{self, assert_settled, credits, market, roll_back, stores};
use souk_domain::ids::CompanyId;
use souk_store::ledger::{self, Account, Entry, Transaction, TransactionType};
use souk_store::maturity::{self, Seen};
use souk_store::reconciliation::reconcile;
use souk_store::refunds::{RefundError, refund};
use souk_store::statements::{self, LineFilter, LineType};
use souk_store::teller::{Balance, Teller};
use souk_store::{Part, StoreError, db};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A refund gives everything back by new entries, once, and only by whom it concerns.
#[tokio::test]
async fn charges_are_refunded_once() {
    for store in stores().await {
        let market = market(&store.db, 10).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let charge = market.charge(&teller, 4).await.transaction.unwrap();
        let attempt = async |seller: Option<&CompanyId>| {
            store
                .db
                .write(async |write| {
                    refund(write, &charge, seller, "wrong data", None, db::now()).await
                })
                .await
        };
        assert!(matches!(
            attempt(Some(&CompanyId::generate())).await,
            Err(RefundError::NotFound)
        ));
        let refunded = attempt(Some(&market.seller)).await.unwrap();
        assert_eq!(
            (refunded.credits, refunded.balance_after),
            (4, Some(10)),
            "{}",
            store.name
        );
        assert!(matches!(attempt(None).await, Err(RefundError::Refunded)));
        assert_eq!(
            teller.balance(&market.buyer).await.unwrap(),
            Balance {
                posted: 10,
                held: 0
            }
        );
        let mut read = store.db.read().await.unwrap();
        for account in [
            Account::SellerPending(market.seller.clone()),
            Account::PlatformRevenue,
        ] {
            assert_eq!(ledger::balance(&mut read, &account).await.unwrap().get(), 0);
        }
        let (lines, _) = statements::list(
            &mut read,
            &market.seller,
            &LineFilter::default(),
            Part::first(10),
        )
        .await
        .unwrap();
        let seen: Vec<_> = lines
            .iter()
            .map(|line| (line.kind, line.amount.get()))
            .collect();
        assert_eq!(seen, [(LineType::Refund, -160), (LineType::Earning, 160)]);
        drop(read);
        assert_settled(&store.db, &teller).await;
    }
}

/// What was added up before is not looked at again: charges since then change nothing, what has left since is not moved twice, and a refund leaves
/// its share for the next time.
#[tokio::test]
async fn what_was_seen_to_be_recent_stays() {
    for store in stores().await {
        let market = market(&store.db, 100).await;
        let teller = Teller::open(&store.db).await.unwrap();
        market.charge(&teller, 15).await;
        let pause = || tokio::time::sleep(Duration::from_millis(5));
        pause().await;
        let cutoff = db::now();
        pause().await;
        let refunded = market.charge(&teller, 3).await;
        teller.flush().await;
        let see = async || {
            let mut snapshot = store.db.snapshot().await.unwrap();
            let seen = Seen::of(&mut snapshot, &market.seller, cutoff, db::now());
            seen.await.unwrap()
        };
        let seen = see().await;
        market.charge(&teller, 1).await;
        teller.flush().await;
        let charge = refunded.transaction.as_ref().unwrap();
        let refund = store
            .db
            .write(async |write| refund(write, charge, None, "late", None, db::now()).await);
        refund.await.unwrap();
        let mature = async |seen: &Seen| {
            let moved = store.db.write(async |write| {
                maturity::mature(write, &market.seller, seen, db::now()).await
            });
            let moved = moved.await.unwrap();
            moved.map(|transaction| transaction.amount.get())
        };
        assert_eq!(mature(&seen).await, Some(480), "{}", store.name);
        // As if another host had seen the same.
        assert_eq!(mature(&seen).await, None, "{}", store.name);
        let anew = see().await;
        assert_eq!(mature(&anew).await, Some(120), "{}", store.name);
        assert_eq!(mature(&anew).await, None);
        assert_eq!(mature(&see().await).await, None);
        assert_settled(&store.db, &teller).await;
    }
}

/// Earnings of old charges become payable, once; recent ones stay pending, and a refund afterwards comes out of what is left.
#[tokio::test]
async fn earnings_mature_once() {
    for store in stores().await {
        let market = market(&store.db, 100).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let old = [
            market.charge(&teller, 10).await,
            market.charge(&teller, 5).await,
        ];
        teller.flush().await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        let cutoff = db::now();
        market.charge(&teller, 1).await;
        assert_eq!(
            maturity::sellers(&store.db).await.unwrap(),
            std::slice::from_ref(&market.seller)
        );
        let mature = async || {
            let moved = store
                .db
                .write(async |write| {
                    support::mature(write, &market.seller, cutoff, db::now()).await
                })
                .await
                .unwrap();
            moved.map(|transaction| transaction.amount.get())
        };
        assert_eq!(mature().await, Some(600), "{}", store.name);
        assert_eq!(mature().await, None);
        store
            .db
            .write(async |write| {
                refund(
                    write,
                    old[0].transaction.as_ref().unwrap(),
                    None,
                    "late",
                    None,
                    db::now(),
                )
                .await
            })
            .await
            .unwrap();
        let mut read = store.db.read().await.unwrap();
        let earnings = statements::earnings(&mut read, &market.seller)
            .await
            .unwrap();
        let seen = (
            earnings.gross_credits,
            earnings.pending.get(),
            earnings.payable.get(),
            earnings.paid.get(),
        );
        assert_eq!(seen, (6, 40, 200, 0), "{}", store.name);
        let (lines, _) = statements::list(
            &mut read,
            &market.seller,
            &LineFilter::default(),
            Part::first(10),
        )
        .await
        .unwrap();
        assert!(
            lines
                .iter()
                .all(|line| matches!(line.kind, LineType::Earning | LineType::Refund))
        );
        drop(read);
        assert_settled(&store.db, &teller).await;
    }
}

/// An event of a payment provider is booked once, and nobody but the teller may take from a buyer.
#[tokio::test]
async fn bookings_are_guarded() {
    for store in stores().await {
        let buyer = CompanyId::generate();
        let top_up = async || {
            store
                .db
                .write(async |write| {
                    let mut event = Transaction::new(
                        TransactionType::TopUp,
                        buyer.clone(),
                        5,
                        credits(5).cents(),
                        db::now(),
                    );
                    event.external_id = Some("evt_1".into());
                    let entry = Entry {
                        from: Account::Cash,
                        to: Account::Buyer(buyer.clone()),
                        amount: credits(5).cents(),
                    };
                    ledger::append(write, event, &[entry]).await?;
                    Ok(())
                })
                .await
        };
        top_up().await.unwrap();
        assert!(
            matches!(top_up().await, Err(StoreError::Conflict)),
            "{}",
            store.name
        );
        roll_back(&store.db, async |write| {
            let taking = Transaction::new(
                TransactionType::Adjustment,
                buyer.clone(),
                -1,
                credits(1).cents(),
                db::now(),
            );
            let entry = Entry {
                from: Account::Buyer(buyer.clone()),
                to: Account::Cash,
                amount: credits(1).cents(),
            };
            assert!(ledger::append(write, taking, &[entry]).await.is_err());
        })
        .await;
        let teller = Teller::open(&store.db).await.unwrap();
        assert_eq!(
            teller.balance(&buyer).await.unwrap(),
            Balance { posted: 5, held: 0 }
        );
        assert_settled(&store.db, &teller).await;
    }
}

/// The store itself refuses a buyer's balance below zero, whatever the code above it believes.
#[tokio::test]
async fn the_store_refuses_negative_balances() {
    for store in stores().await {
        let market = market(&store.db, 3).await;
        roll_back(&store.db, async |write| {
            let sql = "UPDATE accounts SET balance_cents = balance_cents - 151 WHERE kind = 'buyer' AND company_id = $1";
            let refused = sqlx::query(sql)
                .bind(market.buyer.as_str())
                .execute(&mut **write)
                .await;
            assert!(refused.is_err(), "{}", store.name);
        }).await;
    }
}

/// Reconciliation finds a balance that somebody changed by hand, and entries, runs and transactions that vanished.
#[tokio::test]
async fn tampering_is_found() {
    for sql in [
        "UPDATE accounts SET balance_cents = balance_cents + 1 WHERE kind = 'platform_revenue'",
        "DELETE FROM entries WHERE to_account = 'platform:revenue'",
        "DELETE FROM executions",
        "DELETE FROM transactions WHERE type = 'grant'",
        "DELETE FROM accounts WHERE kind = 'seller_pending'",
        "UPDATE executions SET credits = 1",
    ] {
        for store in stores().await {
            let market = market(&store.db, 10).await;
            let teller = Teller::open(&store.db).await.unwrap();
            market.charge(&teller, 4).await;
            assert!(reconcile(&store.db, db::now()).await.unwrap().is_balanced());
            store
                .db
                .write(async |write| -> Result<_, StoreError> {
                    sqlx::query(sql).execute(&mut **write).await.unwrap();
                    Ok(())
                })
                .await
                .unwrap();
            let found = reconcile(&store.db, db::now()).await.unwrap();
            assert!(!found.findings.is_empty(), "{}: {sql}", store.name);
        }
    }
}

/// Charges, refunds and maturing earnings of one seller at once never wait for each other in a circle, and every one is booked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refunds_and_charges_take_turns() {
    for store in stores().await {
        let market = Arc::new(market(&store.db, 10_000).await);
        let teller = Teller::open(&store.db).await.unwrap();
        let mut charges = Vec::new();
        for _ in 0..40 {
            charges.push(market.charge(&teller, 2).await.transaction.unwrap());
        }
        let done = Arc::new(AtomicBool::new(false));
        let buying: Vec<_> = (0..4)
            .map(|_| {
                let (market, teller, done) = (market.clone(), teller.clone(), done.clone());
                tokio::spawn(async move {
                    while !done.load(Ordering::SeqCst) {
                        market.charge(&teller, 1).await;
                    }
                })
            })
            .collect();
        let refunding: Vec<_> = charges
            .chunks(20)
            .map(|charges| {
                let (db, charges, name) = (store.db.clone(), charges.to_vec(), store.name);
                tokio::spawn(async move {
                    for charge in &charges {
                        db.write(async |write| -> Result<_, StoreError> {
                            let refunded = refund(write, charge, None, "test", None, db::now());
                            refunded
                                .await
                                .unwrap_or_else(|error| panic!("{name}: {error}"));
                            Ok(())
                        })
                        .await
                        .unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..20 {
            store
                .db
                .write(async |write| {
                    support::mature(write, &market.seller, db::now(), db::now()).await
                })
                .await
                .unwrap();
        }
        for task in refunding {
            task.await.unwrap();
        }
        done.store(true, Ordering::SeqCst);
        for task in buying {
            task.await.unwrap();
        }
        assert_settled(&store.db, &teller).await;
    }
}
