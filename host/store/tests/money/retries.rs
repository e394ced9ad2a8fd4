//! Retried requests on hosts that share a store.

use crate::support::{assert_answers_counted, assert_settled, market, open, postgres};
use souk_store::executions::Billing;
use souk_store::idempotency::{self, Claim, KeptAnswer, Scope};
use souk_store::teller::{IdempotencyEntry, PostError, Receipt, Teller};
use souk_store::{Db, StoreError, Write, db};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Two hosts that are asked at once agree on who runs; the other says in flight, and then the answer of the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_run_a_retried_request_once() {
    let store = postgres().await;
    let hosts = [store.db.clone(), open(&store.url).await];
    let market = Arc::new(market(&store.db, 100).await);
    let teller = Teller::open(&store.db).await.unwrap();
    for round in 0..10 {
        let scope = || Scope {
            company: market.buyer.clone(),
            route: "/runs",
            key: format!("k{round}"),
        };
        let claim = |db: Db, fingerprint: &'static str| {
            let scope = scope();
            async move {
                let claim = db
                    .write(async |write| -> Result<_, StoreError> {
                        let until = db::now().after(Duration::from_secs(60));
                        let claim = idempotency::claim(
                            write,
                            scope,
                            fingerprint,
                            db::now(),
                            until,
                            idempotency::COMPANY_BYTES_MAX,
                        );
                        let claim = claim.await?;
                        Ok(claim)
                    })
                    .await?;
                Ok::<_, StoreError>(claim)
            }
        };
        let tasks: Vec<_> = (0..8)
            .map(|number| tokio::spawn(claim(hosts[number % 2].clone(), "same")))
            .collect();
        let mut tickets = Vec::new();
        for task in tasks {
            match task.await.unwrap().unwrap() {
                Claim::Granted(ticket) => tickets.push(ticket),
                Claim::InFlight => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(tickets.len(), 1, "round {round}");
        let ticket = tickets.remove(0);
        assert!(matches!(
            claim(hosts[1].clone(), "other").await.unwrap(),
            Claim::Reused
        ));

        let run = market.run(Billing::Charged);
        let hold = market.hold(&teller, 3, &run).await.unwrap();
        let entry = IdempotencyEntry {
            ticket: ticket.clone(),
            answer: KeptAnswer::of(200, None, format!("answer {round}").as_bytes(), None),
            expires_at: db::now().after(Duration::from_secs(3_600)),
        };
        let receipt = Receipt {
            run,
            idempotency: Some(entry),
        };
        teller.post(hold, receipt).await.unwrap();
        for host in &hosts {
            match claim(host.clone(), "same").await.unwrap() {
                Claim::Done(answer) => assert_eq!(answer.body, Some(format!("answer {round}"))),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(teller.balance(&market.buyer).await.unwrap().posted, 70);
    assert_settled(&store.db, &teller).await;
}

/// A run whose hold has expired is not charged, so its answer is not kept either: the same key runs anew.
#[tokio::test]
async fn an_expired_run_leaves_no_answer() {
    let store = postgres().await;
    let market = market(&store.db, 10).await;
    let teller = Teller::open(&store.db).await.unwrap();
    let claim = async || {
        let scope = Scope {
            company: market.buyer.clone(),
            route: "/runs",
            key: "k".into(),
        };
        let claim = store
            .db
            .write(async |write| -> Result<_, StoreError> {
                let until = db::now().after(Duration::from_secs(60));
                let claim = idempotency::claim(
                    write,
                    scope,
                    "f",
                    db::now(),
                    until,
                    idempotency::COMPANY_BYTES_MAX,
                )
                .await;
                Ok(claim)
            })
            .await
            .unwrap();
        claim.unwrap()
    };
    let Claim::Granted(ticket) = claim().await else {
        panic!("granted")
    };
    let run = market.run(Billing::Charged);
    let hold = market.hold(&teller, 3, &run).await.unwrap();
    store
        .db
        .write(async |write| -> Result<_, StoreError> {
            sqlx::query("UPDATE holds SET expires_at = 1")
                .execute(&mut **write)
                .await
                .unwrap();
            Ok(())
        })
        .await
        .unwrap();
    while teller.balance(&market.buyer).await.unwrap().held > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let entry = IdempotencyEntry {
        ticket: ticket.clone(),
        answer: KeptAnswer::of(200, None, b"not paid for", None),
        expires_at: db::now().after(Duration::from_secs(3_600)),
    };
    let receipt = Receipt {
        run,
        idempotency: Some(entry),
    };
    let refused = teller.post(hold, receipt).await.unwrap_err();
    assert!(matches!(refused, PostError::Expired), "{refused}");
    store
        .db
        .write(async |write| idempotency::release(write, &ticket).await)
        .await
        .unwrap();
    let again = claim().await;
    assert!(matches!(again, Claim::Granted(_)), "{again:?}");
    assert_settled(&store.db, &teller).await;
}

async fn claim(write: &mut Write, scope: Scope) -> Result<Claim, StoreError> {
    let until = db::now().after(Duration::from_secs(60));
    let max = idempotency::COMPANY_BYTES_MAX;
    idempotency::claim(write, scope, "f", db::now(), until, max).await
}

/// A claim whose commit is still on its way is taken back behind it, so that its key can be sent again; one that never came leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_is_taken_back_behind_its_commit() {
    let store = postgres().await;
    let market = market(&store.db, 100).await;
    for is_committed in [true, false] {
        let scope = Scope {
            company: market.buyer.clone(),
            route: "/runs",
            key: format!("k{is_committed}"),
        };
        let (claimed, is_claimed) = oneshot::channel();
        let (end, may_end) = oneshot::channel();
        let first = {
            let (db, scope) = (store.db.clone(), scope.clone());
            tokio::spawn(async move {
                db.write(async move |write| -> Result<(), StoreError> {
                    let Claim::Granted(ticket) = claim(write, scope).await? else {
                        panic!("it is the first")
                    };
                    claimed.send(ticket).unwrap();
                    may_end.await.unwrap();
                    match is_committed {
                        true => Ok(()),
                        false => Err(StoreError::Busy),
                    }
                })
                .await
            })
        };
        let ticket = is_claimed.await.unwrap();
        let taken_back = {
            let db = store.db.clone();
            tokio::spawn(async move {
                db.write(async |write| -> Result<_, StoreError> {
                    idempotency::take_back(write, &ticket).await
                })
                .await
            })
        };
        // Whoever does not wait has been by then.
        tokio::time::sleep(Duration::from_millis(300)).await;
        end.send(()).unwrap();
        assert_eq!(first.await.unwrap().is_ok(), is_committed);
        taken_back.await.unwrap().unwrap();
        let again = store
            .db
            .write(async |write| -> Result<_, StoreError> { claim(write, scope).await })
            .await
            .unwrap();
        assert!(matches!(again, Claim::Granted(_)), "{again:?}");
        assert_answers_counted(&store.db).await;
    }
}
