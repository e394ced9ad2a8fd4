//! Reserved credits: races, crashes, expiry, several hosts.

use crate::support::{assert_settled, credits, later, market, open, postgres, stores};
use futures_util::future::join_all;
use souk_store::executions::Billing;
use souk_store::reconciliation::reconcile;
use souk_store::teller::{Balance, HoldError, HoldRequest, PostError, Receipt, Teller};
use souk_store::{Fields, StoreError, db};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

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
        let left = teller.balance(&market.buyer).await.unwrap();
        assert_eq!(
            left,
            Balance {
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
            teller.balance(&market.buyer).await.unwrap(),
            Balance {
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
            expires_at: later(db::now(), 600),
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
                teller.balance(&market.buyer).await.unwrap(),
                Balance { posted: 9, held: 9 }
            );
            assert_eq!(
                reconcile(&db, later(db::now(), 601))
                    .await
                    .unwrap()
                    .orphan_holds,
                1
            );
            // Time passes.
            let expired = db.write(async |write| -> Result<_, StoreError> {
                let sql = "UPDATE holds SET expires_at = 1";
                sqlx::query(sql).execute(&mut **write).await?;
                Ok(())
            });
            expired.await.unwrap();
            let begun = Instant::now();
            while teller.balance(&market.buyer).await.unwrap().held > 0 {
                assert!(
                    begun.elapsed() < Duration::from_secs(60),
                    "the hold did not expire"
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        assert_eq!(
            teller.balance(&market.buyer).await.unwrap(),
            Balance { posted: 9, held: 0 },
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
    while teller.balance(&market.buyer).await.unwrap().held > 0 {
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
        teller.balance(&market.buyer).await.unwrap(),
        Balance {
            posted: 10,
            held: 0
        }
    );
    assert_settled(&store.db, &teller).await;
}

/// For whoever has gone before it was his turn nothing is reserved: where the store stood still there may be many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_reserved_for_whoever_has_gone() {
    const WAITING: &str = "
        SELECT COUNT(*) AS n
        FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let store = postgres().await;
    let market = market(&store.db, 10).await;
    let teller = Teller::open(&store.db).await.unwrap();
    let execute = async |sql: &'static str| {
        let executed = store.db.write(async |write| -> Result<(), StoreError> {
            sqlx::query(sql).execute(&mut **write).await?;
            Ok(())
        });
        executed.await.unwrap();
    };
    execute("CREATE TABLE reserved (id TEXT)").await;
    execute(
        "CREATE FUNCTION note_hold() RETURNS TRIGGER LANGUAGE plpgsql
         AS 'BEGIN INSERT INTO reserved VALUES (NEW.id); RETURN NEW; END'",
    )
    .await;
    execute("CREATE TRIGGER notes AFTER INSERT ON holds FOR EACH ROW EXECUTE FUNCTION note_hold()")
        .await;
    let number = async |sql: &'static str| {
        let mut read = store.db.read().await.unwrap();
        let row = sqlx::query(sql).fetch_one(&mut *read).await.unwrap();
        row.number("n").unwrap()
    };
    let runs: Vec<_> = (0..6).map(|_| market.run(Billing::Charged)).collect();
    let first = market.hold(&teller, 1, &runs[0]);
    let first = store.db.write(async |write| -> Result<_, StoreError> {
        sqlx::query("SELECT id FROM accounts ORDER BY id FOR UPDATE")
            .execute(&mut **write)
            .await?;
        // It waits for the account, and the others for it.
        let mut first = Box::pin(first);
        while number(WAITING).await == 0 {
            assert!(futures_util::poll!(&mut first).is_pending());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for run in &runs[1..] {
            let mut next = Box::pin(market.hold(&teller, 1, run));
            assert!(futures_util::poll!(&mut next).is_pending());
        }
        Ok(first)
    });
    let hold = first.await.unwrap().await.expect("reserved");
    teller.flush().await;
    assert_eq!(number("SELECT COUNT(*) AS n FROM reserved").await, 1);
    drop(hold);
    assert_settled(&store.db, &teller).await;
}

/// A server that was restarted has ended all of the teller's connections: whoever reserves or is charged then does not hear of that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_restarted_refuses_no_hold() {
    const END_ALL: &str = "
        SELECT CAST(COUNT(pg_terminate_backend(pid)) AS BIGINT)
        FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let store = postgres().await;
    let market = market(&store.db, 100).await;
    let teller = Teller::open(&store.db).await.unwrap();
    let admin = open(&store.url).await;
    for _ in 0..3 {
        // As many connections as it may have.
        join_all((0..16).map(|_| market.charge(&teller, 1))).await;
        let ended = admin.write(async |write| -> Result<(), StoreError> {
            sqlx::query(END_ALL).execute(&mut **write).await?;
            Ok(())
        });
        ended.await.unwrap();
        let run = market.run(Billing::Charged);
        let hold = market.hold(&teller, 1, &run).await;
        drop(hold.expect("reserved"));
    }
    assert_settled(&store.db, &teller).await;
    assert_eq!(teller.balance(&market.buyer).await.unwrap().posted, 52);
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
            teller.balance(&market.buyer).await.unwrap(),
            Balance {
                posted: 300 - charged,
                held: 0
            }
        );
        assert_settled(&store.db, teller).await;
    }
}
