//! What kept answers take on the disk that the ledger is on.

use crate::support::{
    Store, Undone, assert_answers_counted, assert_settled, later, market, stores,
};
use souk_domain::ids::{CompanyId, ExecutionId};
use souk_domain::time::Timestamp;
use souk_store::executions::Billing;
use souk_store::idempotency::{
    self, ANSWER_BYTES_MAX, CLAIM_BYTES, COMPANY_BYTES_MAX, Claim, KeptAnswer, Scope, Ticket,
};
use souk_store::teller::{IdempotencyEntry, Receipt, Teller};
use souk_store::{StoreError, db};
use sqlx::Row;

async fn claim(store: &Store, company: &CompanyId, key: &str, at: Timestamp, max: i64) -> Claim {
    let scope = Scope {
        company: company.clone(),
        route: "/runs",
        key: key.to_owned(),
    };
    let claimed = store.db.write(async |write| {
        match idempotency::claim(write, scope, "f", at, later(at, 60), max).await {
            Ok(Claim::Full) => Err(Undone::Done(Claim::Full)),
            claimed => Ok(claimed?),
        }
    });
    match claimed.await {
        Ok(claim) | Err(Undone::Done(claim)) => claim,
        Err(Undone::Store(error)) => panic!("{error}"),
    }
}

fn granted(claim: Claim) -> Ticket {
    match claim {
        Claim::Granted(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

async fn complete(store: &Store, ticket: &Ticket, body: &str, until: Timestamp) {
    let answer = KeptAnswer::of(201, None, body.as_bytes(), None);
    store
        .db
        .write(async |write| -> Result<_, StoreError> {
            assert!(
                idempotency::complete(write, ticket, &answer, until)
                    .await
                    .unwrap()
            );
            Ok(())
        })
        .await
        .unwrap();
}

/// Of a large answer only the run is kept, and the run is charged once; a small one is kept whole.
#[tokio::test]
async fn a_large_answer_is_known_by_its_run() {
    for store in stores().await {
        let market = market(&store.db, 100).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let now = db::now();
        for (key, length, is_kept) in [
            ("largest", ANSWER_BYTES_MAX, true),
            ("larger", ANSWER_BYTES_MAX + 1, false),
        ] {
            let ticket = granted(claim(&store, &market.buyer, key, now, COMPANY_BYTES_MAX).await);
            let run = market.run(Billing::Charged);
            let execution: ExecutionId = run.id.clone();
            let hold = market.hold(&teller, 7, &run).await.unwrap();
            let body = vec![b'x'; length];
            let entry = IdempotencyEntry {
                ticket,
                answer: KeptAnswer::of(200, None, &body, Some(&execution)),
                expires_at: later(now, 86_400),
            };
            let receipt = Receipt {
                run,
                idempotency: Some(entry),
            };
            teller.post(hold, receipt).await.unwrap();
            match claim(&store, &market.buyer, key, now, COMPANY_BYTES_MAX).await {
                Claim::Done(answer) if is_kept => {
                    assert_eq!(answer.body.map(|body| body.len()), Some(length));
                    assert_eq!(answer.execution, None);
                }
                Claim::Done(answer) => {
                    assert_eq!((answer.body, answer.execution), (None, Some(execution)));
                }
                other => panic!("{other:?}"),
            }
        }
        let mut read = store.db.read().await.unwrap();
        let kept = sqlx::query("SELECT records, bytes FROM kept_answers WHERE company_id = $1")
            .bind(market.buyer.as_str())
            .fetch_one(&mut *read)
            .await
            .unwrap();
        let kept: (i64, i64) = (kept.get("records"), kept.get("bytes"));
        drop(read);
        let (one, other) = (CLAIM_BYTES, CLAIM_BYTES - ANSWER_BYTES_MAX as i64);
        assert_eq!(kept, (2, one + other));
        assert_eq!(teller.balance(&market.buyer).await.unwrap().posted, 86);
        assert_settled(&store.db, &teller).await;
    }
}

/// The answers of a company take what they may and no more, in flight and kept; another company has its own room. What lapses, fails or
/// grows old makes room again.
#[tokio::test]
async fn a_companys_answers_are_bounded() {
    for store in stores().await {
        let (one, other) = (market(&store.db, 0).await, market(&store.db, 0).await);
        let (one, other) = (&one.buyer, &other.buyer);
        let now = db::now();
        let max = 3 * CLAIM_BYTES;
        let first = granted(claim(&store, one, "1", now, max).await);
        let second = granted(claim(&store, one, "2", now, max).await);
        granted(claim(&store, one, "3", now, max).await);
        for _ in 0..3 {
            let refused = claim(&store, one, "4", now, max).await;
            assert!(matches!(refused, Claim::Full), "{refused:?}");
        }
        granted(claim(&store, other, "4", now, max).await);
        assert_answers_counted(&store.db).await;

        // A small answer takes little: two of them leave room for another.
        complete(&store, &first, "{}", later(now, 100)).await;
        let refused = claim(&store, one, "4", now, 3 * CLAIM_BYTES - 65_536).await;
        assert!(matches!(refused, Claim::Full), "{refused:?}");
        let fourth = granted(claim(&store, one, "4", now, max + 1_024).await);
        // What was answered is answered again, however full it is.
        let again = claim(&store, one, "1", now, 0).await;
        assert!(matches!(again, Claim::Done(_)), "{again:?}");
        store
            .db
            .write(async |write| -> Result<_, StoreError> {
                for ticket in [&second, &fourth, &first, &second] {
                    idempotency::release(write, ticket).await.unwrap();
                }
                Ok(())
            })
            .await
            .unwrap();
        assert_answers_counted(&store.db).await;
        // The third has lapsed, and is taken over.
        granted(claim(&store, one, "3", later(now, 61), max).await);
        assert_answers_counted(&store.db).await;

        store
            .db
            .write(async |write| -> Result<_, StoreError> {
                while idempotency::sweep(write, later(now, 1_000)).await.unwrap() {}
                Ok(())
            })
            .await
            .unwrap();
        assert_answers_counted(&store.db).await;
        let mut read = store.db.read().await.unwrap();
        let kept = idempotency::kept_in_all(&mut read).await.unwrap();
        assert_eq!((kept.records, kept.bytes, kept.bytes_of_largest), (0, 0, 0));
    }
}
