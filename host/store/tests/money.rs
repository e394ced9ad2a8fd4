//! Money in the store: nothing is lost, doubled or overspent, on both backends, whatever is interleaved or crashes.

mod support;

use proptest::prelude::*;
use souk_domain::ids::{CompanyId, ExecutionId};
use souk_store::executions::{self, Billing, Outcome, RecentUse};
use souk_store::ledger::{self, Account, Entry, Transaction, TransactionType};
use souk_store::reconciliation::reconcile;
use souk_store::refunds::{RefundError, refund};
use souk_store::statements::{self, LineFilter, LineType};
use souk_store::teller::{
    HoldError, HoldRequest, IdempotencyEntry, PostError, Receipt, Standing, Teller,
};
use souk_store::{StoreError, db, idempotency};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use support::{
    Market, assert_settled, credits, grant, later, market, open, postgres, sqlite, stores,
};

/// A charge takes from the buyer, gives 80 percent to the seller and 20 to the platform, and is on both statements.
#[tokio::test]
async fn charges_are_split_and_stated() {
    for store in stores().await {
        let market = market(&store.db, 100).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let first = market.charge(&teller, 3).await;
        let second = market.charge(&teller, 7).await;
        assert_eq!(
            (first.balance_credits, second.balance_credits),
            (Some(97), Some(90)),
            "{}",
            store.name
        );
        assert_eq!(
            teller.standing(&market.buyer).await.unwrap(),
            Standing {
                posted: 90,
                held: 0
            }
        );

        let mut read = store.db.read().await.unwrap();
        let balance = async |read: &mut souk_store::Read, account| {
            ledger::balance(read, &account).await.unwrap().get()
        };
        assert_eq!(
            balance(&mut read, Account::Buyer(market.buyer.clone())).await,
            90 * 50
        );
        assert_eq!(
            balance(&mut read, Account::SellerPending(market.seller.clone())).await,
            10 * 40
        );
        assert_eq!(balance(&mut read, Account::PlatformRevenue).await, 10 * 10);
        assert_eq!(balance(&mut read, Account::PlatformPromo).await, -100 * 50);

        let (lines, total) =
            statements::list(&mut read, &market.buyer, &LineFilter::default(), 0, 50)
                .await
                .unwrap();
        let seen: Vec<_> = lines
            .iter()
            .map(|line| {
                (
                    line.kind,
                    line.credits,
                    line.amount.get(),
                    line.transaction.balance_after,
                )
            })
            .collect();
        assert_eq!(total, 3);
        assert_eq!(
            seen,
            [
                (LineType::Charge, -7, -350, Some(90)),
                (LineType::Charge, -3, -150, Some(97)),
                (LineType::Grant, 100, 5_000, Some(100))
            ]
        );
        let filter = LineFilter {
            kind: Some(LineType::Earning),
            ..LineFilter::default()
        };
        let (lines, total) = statements::list(&mut read, &market.seller, &filter, 0, 1)
            .await
            .unwrap();
        assert_eq!(
            (
                total,
                lines[0].credits,
                lines[0].amount.get(),
                lines[0].transaction.balance_after
            ),
            (2, 7, 280, None)
        );
        let by_id = statements::get(&mut read, &market.seller, &lines[0].id)
            .await
            .unwrap()
            .expect("found");
        assert_eq!(by_id, lines[0]);
        assert!(
            statements::get(&mut read, &CompanyId::generate(), &lines[0].id)
                .await
                .unwrap()
                .is_none()
        );

        let recent = executions::recent_use(&mut read, &market.buyer, db::now())
            .await
            .unwrap();
        assert_eq!(
            recent,
            RecentUse {
                executions: 2,
                endpoint_requests: 0,
                spent_credits: 10
            }
        );
        let earnings = statements::earnings(&mut read, &market.seller)
            .await
            .unwrap();
        assert_eq!(
            (
                earnings.gross_credits,
                earnings.earned.get(),
                earnings.pending.get(),
                earnings.paid.get()
            ),
            (10, 400, 400, 0)
        );
        drop(read);
        assert_settled(&store.db, &teller).await;
    }
}

/// Of 1,000 concurrent runs for the last 37 credits exactly 37 are admitted, and never is more spent than there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_race_for_the_last_credits() {
    for store in stores().await {
        let market = Arc::new(market(&store.db, 37).await);
        let teller = Teller::open(&store.db).await.unwrap();
        let tasks: Vec<_> = (0..1_000)
            .map(|number| {
                let (teller, market) = (teller.clone(), market.clone());
                tokio::spawn(async move {
                    let run = market.run(Billing::Charged);
                    match market.hold(&teller, 1, &run).await {
                        Err(HoldError::Insufficient { .. }) => false,
                        Err(error) => panic!("{error}"),
                        Ok(hold) if number % 3 == 0 => {
                            tokio::task::yield_now().await;
                            teller.void(hold, "the source failed");
                            false
                        }
                        Ok(hold) => {
                            let posted = teller
                                .post(
                                    hold,
                                    Receipt {
                                        run,
                                        idempotency: None,
                                    },
                                )
                                .await
                                .unwrap();
                            assert!(posted.balance_credits.unwrap() >= 0);
                            true
                        }
                    }
                })
            })
            .collect();
        let mut charged = 0;
        for task in tasks {
            charged += i64::from(task.await.unwrap());
        }
        teller.flush().await;
        let left = teller.standing(&market.buyer).await.unwrap();
        assert_eq!(
            left,
            Standing {
                posted: 37 - charged,
                held: 0
            },
            "{}",
            store.name
        );
        for _ in 0..left.posted {
            market.charge(&teller, 1).await;
        }
        let run = market.run(Billing::Charged);
        let refused = market.hold(&teller, 1, &run).await.unwrap_err();
        assert!(
            matches!(
                refused,
                HoldError::Insufficient {
                    balance: 0,
                    held: 0,
                    ..
                }
            ),
            "{refused}"
        );
        assert_settled(&store.db, &teller).await;
    }
}

/// A hold counts against everyone else until it is dropped, whichever way that happens.
#[tokio::test]
async fn dropped_holds_are_voided() {
    for store in stores().await {
        let market = market(&store.db, 10).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let run = market.run(Billing::Charged);
        let hold = market.hold(&teller, 6, &run).await.unwrap();
        let other = market.run(Billing::Charged);
        let refused = market.hold(&teller, 6, &other).await.unwrap_err();
        match refused {
            HoldError::Insufficient {
                required,
                balance,
                held,
            } => assert_eq!((required, balance, held), (credits(6), 4, 6)),
            error => panic!("{error}"),
        }
        drop(hold);
        teller.flush().await;
        let hold = market.hold(&teller, 10, &other).await.unwrap();
        teller.void(hold, "test");
        // A caller that is cancelled while it waits for its hold leaves nothing held either.
        for _ in 0..20 {
            let another = market.run(Billing::Charged);
            let mut waiting = Box::pin(market.hold(&teller, 10, &another));
            let _ = futures_util::poll!(&mut waiting);
            drop(waiting);
            teller.flush().await;
        }
        teller.flush().await;
        assert_eq!(
            teller.standing(&market.buyer).await.unwrap(),
            Standing {
                posted: 10,
                held: 0
            },
            "{}",
            store.name
        );
        assert_settled(&store.db, &teller).await;
    }
}

/// After a crash the credits that runs in flight held are available again: at once on a store of one's own, after expiry on a shared one.
#[tokio::test]
async fn a_crash_voids_holds() {
    for store in stores().await {
        let market = market(&store.db, 10).await;
        let teller = Teller::open(&store.db).await.unwrap();
        market.charge(&teller, 1).await;
        let run = market.run(Billing::Charged);
        let request = HoldRequest {
            execution: run.id.clone(),
            buyer: market.buyer.clone(),
            amount: credits(9),
            expires_at: db::now().after(Duration::from_millis(500)),
        };
        let hold = teller.hold(request.clone()).await.unwrap();
        // A crash drops nothing.
        std::mem::forget(hold);
        drop(teller);
        store.db.close().await;
        drop(store.db);
        let db = open(&store.url).await;
        let teller = Teller::open(&db).await.unwrap();
        if db.is_shared() {
            assert_eq!(
                teller.standing(&market.buyer).await.unwrap(),
                Standing { posted: 9, held: 9 }
            );
            assert_eq!(
                reconcile(&db, later(db::now(), 1))
                    .await
                    .unwrap()
                    .orphan_holds,
                1
            );
            let begun = Instant::now();
            while teller.standing(&market.buyer).await.unwrap().held > 0 {
                assert!(
                    begun.elapsed() < Duration::from_secs(10),
                    "the hold did not expire"
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        assert_eq!(
            teller.standing(&market.buyer).await.unwrap(),
            Standing { posted: 9, held: 0 },
            "{}",
            store.name
        );
        market.charge(&teller, 9).await;
        assert_settled(&db, &teller).await;
    }
}

/// A run that posts after its hold has expired is not charged, and says so.
#[tokio::test]
async fn expired_holds_cannot_be_posted() {
    let store = postgres().await;
    let market = market(&store.db, 10).await;
    let teller = Teller::open(&store.db).await.unwrap();
    let run = market.run(Billing::Charged);
    let expires_at = db::now().after(Duration::from_millis(100));
    let request = HoldRequest {
        execution: run.id.clone(),
        buyer: market.buyer.clone(),
        amount: credits(4),
        expires_at,
    };
    let hold = teller.hold(request).await.unwrap();
    while teller.standing(&market.buyer).await.unwrap().held > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let refused = teller
        .post(
            hold,
            Receipt {
                run,
                idempotency: None,
            },
        )
        .await
        .unwrap_err();
    assert!(matches!(refused, PostError::Expired), "{refused}");
    assert_eq!(
        teller.standing(&market.buyer).await.unwrap(),
        Standing {
            posted: 10,
            held: 0
        }
    );
    assert_settled(&store.db, &teller).await;
}

/// Two hosts that share a store and charge the same buyer at once never overspend, and lose nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_charge_one_buyer() {
    let store = postgres().await;
    let other = open(&store.url).await;
    let market = Arc::new(market(&store.db, 300).await);
    let tellers = [
        Teller::open(&store.db).await.unwrap(),
        Teller::open(&other).await.unwrap(),
    ];
    let charged = Arc::new(AtomicI64::new(0));
    let tasks: Vec<_> = (0..32)
        .map(|number| {
            let (teller, market, charged) =
                (tellers[number % 2].clone(), market.clone(), charged.clone());
            tokio::spawn(async move {
                for amount in [1, 2, 3, 4, 5] {
                    let run = market.run(Billing::Charged);
                    match market.hold(&teller, amount, &run).await {
                        Ok(hold) => {
                            teller
                                .post(
                                    hold,
                                    Receipt {
                                        run,
                                        idempotency: None,
                                    },
                                )
                                .await
                                .unwrap();
                            charged.fetch_add(amount, Ordering::SeqCst);
                        }
                        Err(HoldError::Insufficient { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let charged = charged.load(Ordering::SeqCst);
    assert!(charged > 290 && charged <= 300, "{charged}");
    for teller in &tellers {
        assert_eq!(
            teller.standing(&market.buyer).await.unwrap(),
            Standing {
                posted: 300 - charged,
                held: 0
            }
        );
        assert_settled(&store.db, teller).await;
    }
}

/// One charge that the store refuses fails alone; those that shared its commit are booked.
#[tokio::test]
async fn a_bad_charge_fails_alone() {
    for store in stores().await {
        let market = market(&store.db, 100).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let mut duplicate = market.run(Billing::Charged);
        let first = market.hold(&teller, 1, &duplicate).await.unwrap();
        teller
            .post(
                first,
                Receipt {
                    run: duplicate.clone(),
                    idempotency: None,
                },
            )
            .await
            .unwrap();
        let taken = duplicate.id.clone();
        let mut posts = Vec::new();
        for number in 0..10 {
            let mut run = market.run(Billing::Charged);
            let hold = market.hold(&teller, 1, &run).await.unwrap();
            if number == 4 {
                run.id = taken.clone();
            }
            posts.push(teller.post(
                hold,
                Receipt {
                    run: run.clone(),
                    idempotency: None,
                },
            ));
            duplicate = run;
        }
        let results = futures_util::future::join_all(posts).await;
        let failed: Vec<_> = (0..10).filter(|number| results[*number].is_err()).collect();
        assert_eq!(failed, [4], "{}: {results:?}", store.name);
        assert!(matches!(results[4], Err(PostError::NotBooked(_))));
        assert_settled(&store.db, &teller).await;
        assert_eq!(
            teller.standing(&market.buyer).await.unwrap(),
            Standing {
                posted: 90,
                held: 0
            }
        );
    }
}

/// The answer to a request with an idempotency key is kept in the commit of its charge; a claim that was taken over is not charged.
#[tokio::test]
async fn answers_are_kept_with_their_charge() {
    for store in stores().await {
        let market = market(&store.db, 10).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let now = db::now();
        let scope = || idempotency::Scope {
            company: market.buyer.clone(),
            route: "/x/{id}",
            key: "k".into(),
        };
        let claim = async |at, until| {
            let mut write = store.db.write().await.unwrap();
            let claim = idempotency::claim(&mut write, scope(), "f", at, until)
                .await
                .unwrap();
            write.commit().await.unwrap();
            claim
        };
        let idempotency::Claim::Granted(lapsed) = claim(now, later(now, 1)).await else {
            panic!("granted")
        };
        assert!(matches!(
            claim(now, later(now, 1)).await,
            idempotency::Claim::InFlight
        ));
        let idempotency::Claim::Granted(ticket) = claim(later(now, 2), later(now, 60)).await else {
            panic!("taken over")
        };
        let entry = |ticket: &idempotency::Ticket, body: &str| IdempotencyEntry {
            company: ticket.scope.company.clone(),
            route: ticket.scope.route.to_owned(),
            key: ticket.scope.key.clone(),
            ticket: ticket.id.clone(),
            status: 200,
            location: None,
            body: body.to_owned(),
            expires_at: later(now, 86_400),
        };
        let post = async |ticket, body: &str| {
            let run = market.run(Billing::Charged);
            let hold = market.hold(&teller, 2, &run).await.unwrap();
            teller
                .post(
                    hold,
                    Receipt {
                        run,
                        idempotency: Some(entry(ticket, body)),
                    },
                )
                .await
        };
        assert!(
            matches!(post(&lapsed, "late").await, Err(PostError::Superseded)),
            "{}",
            store.name
        );
        post(&ticket, "{\"a\":1}").await.unwrap();
        match claim(later(now, 3), later(now, 60)).await {
            idempotency::Claim::Done(answer) => {
                assert_eq!((answer.status, answer.body.as_str()), (200, "{\"a\":1}"))
            }
            other => panic!("{other:?}"),
        }
        assert_settled(&store.db, &teller).await;
        assert_eq!(teller.standing(&market.buyer).await.unwrap().posted, 8);
    }
}

/// A refund gives everything back by new entries, once, and only by whom it concerns.
#[tokio::test]
async fn charges_are_refunded_once() {
    for store in stores().await {
        let market = market(&store.db, 10).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let charge = market.charge(&teller, 4).await.transaction.unwrap();
        let attempt = async |seller: Option<&CompanyId>| {
            let mut write = store.db.write().await.unwrap();
            let refunded =
                refund(&mut write, &charge, seller, "wrong data", None, db::now()).await?;
            write.commit().await?;
            Ok::<_, RefundError>(refunded)
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
            teller.standing(&market.buyer).await.unwrap(),
            Standing {
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
        let (lines, _) = statements::list(&mut read, &market.seller, &LineFilter::default(), 0, 10)
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

/// An event of a payment provider is booked once, and nobody but the teller may take from a buyer.
#[tokio::test]
async fn bookings_are_guarded() {
    for store in stores().await {
        let buyer = CompanyId::generate();
        let top_up = async || {
            let mut write = store.db.write().await.unwrap();
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
            ledger::append(&mut write, event, &[entry]).await?;
            write.commit().await
        };
        top_up().await.unwrap();
        assert!(
            matches!(top_up().await, Err(StoreError::Conflict)),
            "{}",
            store.name
        );
        let mut write = store.db.write().await.unwrap();
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
        assert!(ledger::append(&mut write, taking, &[entry]).await.is_err());
        drop(write);
        let teller = Teller::open(&store.db).await.unwrap();
        assert_eq!(
            teller.standing(&buyer).await.unwrap(),
            Standing { posted: 5, held: 0 }
        );
        assert_settled(&store.db, &teller).await;
    }
}

/// The store itself refuses a buyer's balance below zero, whatever the code above it believes.
#[tokio::test]
async fn the_store_refuses_negative_balances() {
    for store in stores().await {
        let market = market(&store.db, 3).await;
        let mut write = store.db.write().await.unwrap();
        let sql = "UPDATE accounts SET balance_cents = balance_cents - 151 WHERE kind = 'buyer' AND company_id = $1";
        let refused = sqlx::query(sql)
            .bind(market.buyer.as_str())
            .execute(&mut *write)
            .await;
        assert!(refused.is_err(), "{}", store.name);
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
            let mut write = store.db.write().await.unwrap();
            sqlx::query(sql).execute(&mut *write).await.unwrap();
            write.commit().await.unwrap();
            let found = reconcile(&store.db, db::now()).await.unwrap();
            assert!(!found.findings.is_empty(), "{}: {sql}", store.name);
        }
    }
}

/// Free runs are counted completely and recorded without making anybody wait.
#[tokio::test]
async fn free_runs_are_counted() {
    for store in stores().await {
        let market = market(&store.db, 0).await;
        let teller = Teller::open(&store.db).await.unwrap();
        for _ in 0..700 {
            teller.record(market.run(Billing::Owner));
        }
        let mut failed = market.run(Billing::Failed);
        failed.outcome = Outcome::Failed {
            code: "SOURCE_ERROR".into(),
            blame: "source".into(),
        };
        teller.record(failed.clone());
        teller.flush().await;
        let mut read = store.db.read().await.unwrap();
        let days = executions::product_days(
            &mut read,
            market.product.id(),
            db::now().day_start(),
            later(db::now(), 86_400),
        )
        .await
        .unwrap();
        assert_eq!(
            (
                days.len(),
                days[0].succeeded,
                days[0].failed,
                days[0].credits
            ),
            (1, 700, 1, 0),
            "{}",
            store.name
        );
        let recorded = executions::latest_of_product(&mut read, market.product.id(), 1_000)
            .await
            .unwrap();
        assert_eq!(recorded.len() as u64 + teller.records_dropped(), 701);
        let read_back = executions::get(&mut read, &market.seller, &failed.id)
            .await
            .unwrap()
            .expect("failures are kept first");
        assert_eq!(
            (read_back.status.as_str(), read_back.error_code.as_deref()),
            ("failed", Some("SOURCE_ERROR"))
        );
        assert!(
            executions::get(&mut read, &CompanyId::generate(), &failed.id)
                .await
                .unwrap()
                .is_none()
        );
    }
}

/// A store that cannot grow any more gives errors, never a wrong balance, and goes on when there is room again.
#[tokio::test]
async fn a_full_disk_charges_nothing() {
    let store = sqlite().await;
    let market = market(&store.db, 10_000).await;
    let teller = Teller::open(&store.db).await.unwrap();
    market.charge(&teller, 1).await;
    let limit = async |sql: &'static str| {
        let mut write = store.db.write().await.unwrap();
        sqlx::query(sql).fetch_all(&mut *write).await.unwrap();
        write.commit().await.unwrap();
    };
    limit("PRAGMA max_page_count = 80").await;
    let mut booked = 1;
    let mut failures = 0;
    while failures < 3 {
        let run = market.run(Billing::Charged);
        let hold = market.hold(&teller, 1, &run).await.unwrap();
        let entry = None;
        match teller
            .post(
                hold,
                Receipt {
                    run,
                    idempotency: entry,
                },
            )
            .await
        {
            Ok(_) => booked += 1,
            Err(PostError::NotBooked(_)) => failures += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(booked < 9_000, "the limit has no effect");
    }
    assert_eq!(
        teller.standing(&market.buyer).await.unwrap(),
        Standing {
            posted: 10_000 - booked,
            held: 0
        }
    );
    limit("PRAGMA max_page_count = 1000000").await;
    market.charge(&teller, 1).await;
    assert_eq!(
        teller.standing(&market.buyer).await.unwrap(),
        Standing {
            posted: 10_000 - booked - 1,
            held: 0
        }
    );
    assert_settled(&store.db, &teller).await;
}

/// One step of the model test.
#[derive(Debug, Clone)]
enum Step {
    Grant {
        buyer: usize,
        amount: i64,
    },
    Hold {
        buyer: usize,
        amount: i64,
    },
    /// The number of an open hold, modulo how many there are.
    Post {
        hold: usize,
    },
    Void {
        hold: usize,
    },
    Refund {
        charge: usize,
    },
    /// The process dies: all holds are gone.
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0..3_usize, 1..50_i64).prop_map(|(buyer, amount)| Step::Grant { buyer, amount }),
        6 => (0..3_usize, 0..30_i64).prop_map(|(buyer, amount)| Step::Hold { buyer, amount }),
        4 => any::<usize>().prop_map(|hold| Step::Post { hold }),
        2 => any::<usize>().prop_map(|hold| Step::Void { hold }),
        2 => any::<usize>().prop_map(|charge| Step::Refund { charge }),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 1..60)
}

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
});

fn model_config() -> ProptestConfig {
    use proptest::test_runner::FileFailurePersistence::Direct;
    ProptestConfig {
        cases: 24,
        failure_persistence: Some(Box::new(Direct("tests/money.regressions"))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(model_config())]

    /// Whatever is interleaved, the store agrees with a model that a child could keep with pebbles.
    #[test]
    fn the_ledger_agrees_with_a_simple_model(steps in steps()) {
        RUNTIME.block_on(async {
            let store = sqlite().await;
            let (url, mut db) = (store.url.clone(), store.db.clone());
            let _files = store.without_db();
            let mut teller = Teller::open(&db).await.unwrap();
            let sellers = market(&db, 0).await;
            let buyers: Vec<Market> = (0..3)
                .map(|_| Market { buyer: CompanyId::generate(), seller: sellers.seller.clone(), product: sellers.product.clone(), key: sellers.key.clone() })
                .collect();
            let mut model: HashMap<usize, Standing> = HashMap::new();
            let mut holds = Vec::new();
            let mut charges = Vec::new();
            for step in steps {
                match step {
                    Step::Grant { buyer, amount } => {
                        grant(&db, &buyers[buyer].buyer, amount).await;
                        model.entry(buyer).or_default().posted += amount;
                    }
                    Step::Hold { buyer, amount } => {
                        let run = buyers[buyer].run(Billing::Charged);
                        let standing = model.entry(buyer).or_default();
                        match buyers[buyer].hold(&teller, amount, &run).await {
                            Ok(hold) => {
                                assert!(standing.available() >= amount);
                                standing.held += amount;
                                holds.push((buyer, amount, run, hold));
                            }
                            Err(_) => assert!(standing.available() < amount),
                        }
                    }
                    Step::Post { hold } if !holds.is_empty() => {
                        let (buyer, amount, run, hold) = holds.swap_remove(hold % holds.len());
                        let posted = teller.post(hold, Receipt { run, idempotency: None }).await.unwrap();
                        let standing = model.entry(buyer).or_default();
                        standing.held -= amount;
                        standing.posted -= amount;
                        if let Some(transaction) = posted.transaction {
                            assert_eq!(posted.balance_credits, Some(standing.posted));
                            charges.push((buyer, amount, transaction, false));
                        } else {
                            assert_eq!(amount, 0);
                        }
                    }
                    Step::Void { hold } if !holds.is_empty() => {
                        let (buyer, amount, _, hold) = holds.swap_remove(hold % holds.len());
                        drop(hold);
                        model.entry(buyer).or_default().held -= amount;
                    }
                    Step::Refund { charge } if !charges.is_empty() => {
                        let index = charge % charges.len();
                        let (buyer, amount, transaction, refunded) = &mut charges[index];
                        let mut write = db.write().await.unwrap();
                        match refund(&mut write, transaction, None, "test", None, db::now()).await {
                            Ok(_) => {
                                assert!(!*refunded);
                                write.commit().await.unwrap();
                                *refunded = true;
                                model.entry(*buyer).or_default().posted += *amount;
                            }
                            Err(RefundError::Refunded) => assert!(*refunded),
                            Err(error) => panic!("{error}"),
                        }
                    }
                    Step::Crash => {
                        holds.drain(..).for_each(|(_, _, _, hold)| std::mem::forget(hold));
                        db.close().await;
                        drop((db, teller));
                        db = open(&url).await;
                        teller = Teller::open(&db).await.unwrap();
                        model.values_mut().for_each(|standing| standing.held = 0);
                    }
                    _ => {}
                }
                for (buyer, standing) in &model {
                    assert_eq!(teller.standing(&buyers[*buyer].buyer).await.unwrap(), *standing);
                }
            }
            holds.clear();
            assert_settled(&db, &teller).await;
        });
    }
}

/// Prints how many charges a second one commit after the other can carry; asserts only that they all arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn throughput() {
    for store in stores().await {
        let market = Arc::new(market(&store.db, 10_000_000).await);
        let teller = Teller::open(&store.db).await.unwrap();
        for (clients, each) in [(1, 300), (16, 200), (64, 200)] {
            let begun = Instant::now();
            let tasks: Vec<_> = (0..clients)
                .map(|_| {
                    let (teller, market) = (teller.clone(), market.clone());
                    tokio::spawn(async move {
                        for _ in 0..each {
                            market.charge(&teller, 1).await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            let seconds = begun.elapsed().as_secs_f64();
            let total = f64::from(clients * each);
            println!(
                "{}: {clients} clients: {:.0} charges/s, {:.2} ms each",
                store.name,
                total / seconds,
                seconds * 1_000.0 * f64::from(clients) / total
            );
        }
        assert_settled(&store.db, &teller).await;
        assert_eq!(
            teller.standing(&market.buyer).await.unwrap().posted,
            10_000_000 - 300 - 3_200 - 12_800
        );
    }
}

/// Reserving costs next to nothing where the host has its store to itself.
#[tokio::test]
async fn holds_in_memory_are_cheap() {
    let store = sqlite().await;
    let market = market(&store.db, 1_000).await;
    let teller = Teller::open(&store.db).await.unwrap();
    let request = HoldRequest {
        execution: ExecutionId::generate_at(db::now()),
        buyer: market.buyer.clone(),
        amount: credits(1),
        expires_at: later(db::now(), 60),
    };
    let begun = Instant::now();
    const TIMES: u32 = 10_000;
    for _ in 0..TIMES {
        drop(teller.hold(request.clone()).await.unwrap());
    }
    println!("hold and void: {:?} each", begun.elapsed() / TIMES);
}
