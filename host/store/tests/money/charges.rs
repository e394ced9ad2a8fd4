//! What a charge books, and what happens when it cannot be booked.

use crate::support::{assert_settled, later, market, open, postgres, sqlite, stores};
use souk_domain::ids::CompanyId;
use souk_domain::time::DAY;
use souk_store::executions::{self, Billing, RecentUse};
use souk_store::ledger::{self, Account};
use souk_store::reconciliation::{FindingKind, reconcile};
use souk_store::refunds::refund;
use souk_store::statements::{self, LineFilter, LineType};
use souk_store::teller::{Balance, IdempotencyEntry, PostError, Receipt, Teller};
use souk_store::{Part, StoreError, db, idempotency};
use std::time::{Duration, Instant};

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
            teller.balance(&market.buyer).await.unwrap(),
            Balance {
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

        let (lines, total) = statements::list(
            &mut read,
            &market.buyer,
            &LineFilter::default(),
            Part::first(50),
        )
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
        let (lines, total) = statements::list(&mut read, &market.seller, &filter, Part::first(1))
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

/// What was given back on the last 30 dates is not spent, whenever it was charged; what was given back before them says nothing of them.
#[tokio::test]
async fn what_was_given_back_is_not_spent() {
    for store in stores().await {
        let market = market(&store.db, 100).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let now = db::now();
        let long_ago = now.before(DAY * 40);
        let mut charges = Vec::new();
        for (credits, started_at) in [(3, long_ago), (4, long_ago), (7, now), (5, now)] {
            let mut run = market.run(Billing::Charged);
            run.started_at = started_at;
            let hold = market.hold(&teller, credits, &run).await.unwrap();
            let idempotency = None;
            let posted = teller.post(hold, Receipt { run, idempotency }).await;
            charges.push(posted.unwrap().transaction.unwrap());
        }
        for (place, at, spent) in [(0, long_ago, 12), (2, now, 5), (3, now, 0), (1, now, -4)] {
            let charge = &charges[place];
            let refunded = store
                .db
                .write(async |write| refund(write, charge, None, "wrong", None, at).await);
            refunded.await.unwrap();
            let mut read = store.db.read().await.unwrap();
            let recent = executions::recent_use(&mut read, &market.buyer, now).await;
            let expected = RecentUse {
                executions: 2,
                endpoint_requests: 0,
                spent_credits: spent,
            };
            assert_eq!(recent.unwrap(), expected, "{}", store.name);
        }
        assert_settled(&store.db, &teller).await;
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
        if store.db.is_shared() {
            assert_eq!(failed, [4], "{results:?}");
            assert!(matches!(results[4], Err(PostError::NotBooked(_))));
            assert_settled(&store.db, &teller).await;
        } else {
            // It was answered when it was in the charge log, so it is set aside, for people to look at.
            assert_eq!(failed, [0; 0], "{results:?}");
            let books = reconcile(&store.db, db::now()).await.unwrap();
            let found: Vec<_> = books
                .findings
                .iter()
                .map(|finding| (finding.kind, finding.id.as_str(), finding.expected))
                .collect();
            assert_eq!(found, [(FindingKind::RefusedCharge, taken.as_str(), 1)]);
            assert_eq!((books.sum_all_accounts, books.transactions), (0, 11));
        }
        // All others are booked, and it goes on.
        let mut read = store.db.read().await.unwrap();
        let account = Account::Buyer(market.buyer.clone());
        let balance = ledger::balance(&mut read, &account).await.unwrap();
        assert_eq!(balance.get(), 90 * 50);
        drop(read);
        market.charge(&teller, 1).await;
    }
}

/// Where the store takes nothing any more while the charges of a batch are tried one by one, those that are left fail with the first that met that: whoever
/// is charged next would wait for all of their tries, each of which may take its time.
#[tokio::test]
async fn what_a_store_does_not_take_is_not_tried_for_each_of_a_batch() {
    const AWAY: i64 = 60;
    // One charge is tried for three quarters of a second; so many would take 45.
    const WITHIN: Duration = Duration::from_secs(20);
    let store = postgres().await;
    let market = market(&store.db, 1_000).await;
    let teller = Teller::open(&store.db).await.unwrap();
    for sql in [
        "CREATE FUNCTION refuse() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN
             IF NEW.rows_returned = 2 THEN RAISE EXCEPTION ''refused''; END IF;
             IF NEW.rows_returned = 3 THEN RAISE EXCEPTION ''away'' USING ERRCODE = ''53200''; END IF;
             RETURN NEW;
         END'",
        "CREATE TRIGGER refuses BEFORE INSERT ON executions FOR EACH ROW EXECUTE FUNCTION refuse()",
    ] {
        let made = store.db.write(async |write| -> Result<(), StoreError> {
            sqlx::query(sql).execute(&mut **write).await?;
            Ok(())
        });
        made.await.unwrap();
    }
    let mut posts = Vec::new();
    for number in 0..=AWAY {
        let mut run = market.run(Billing::Charged);
        run.rows = if number == 0 { 2 } else { 3 };
        let hold = market.hold(&teller, 1, &run).await.unwrap();
        let idempotency = None;
        posts.push(teller.post(hold, Receipt { run, idempotency }));
    }
    let begun = Instant::now();
    for told in futures_util::future::join_all(posts).await {
        assert!(matches!(told, Err(PostError::NotBooked(_))), "{told:?}");
    }
    assert_eq!(market.charge(&teller, 1).await.balance_credits, Some(999));
    assert!(begun.elapsed() < WITHIN, "{:?}", begun.elapsed());
    assert_settled(&store.db, &teller).await;
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
            store
                .db
                .write(async |write| {
                    idempotency::claim(
                        write,
                        scope(),
                        "f",
                        at,
                        until,
                        idempotency::COMPANY_BYTES_MAX,
                    )
                    .await
                })
                .await
                .unwrap()
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
            ticket: ticket.clone(),
            answer: idempotency::KeptAnswer::of(200, None, body.as_bytes(), None),
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
                assert_eq!(
                    (answer.status, answer.body.as_deref()),
                    (200, Some("{\"a\":1}"))
                )
            }
            other => panic!("{other:?}"),
        }
        assert_settled(&store.db, &teller).await;
        assert_eq!(teller.balance(&market.buyer).await.unwrap().posted, 8);
    }
}

/// A store that cannot grow any more gives errors, never a wrong balance; what was answered until then is booked when there is room.
#[tokio::test]
async fn a_full_store_charges_nothing() {
    let store = sqlite().await;
    let market = market(&store.db, 10_000).await;
    let teller = Teller::open(&store.db).await.unwrap();
    market.charge(&teller, 1).await;
    store.db.limit_pages(80).await.unwrap();
    let mut booked = 1;
    let mut failures = 0;
    while failures < 3 {
        let run = market.run(Billing::Charged);
        let hold = market.hold(&teller, 1, &run).await.unwrap();
        let idempotency = None;
        match teller.post(hold, Receipt { run, idempotency }).await {
            Ok(_) => booked += 1,
            Err(PostError::NotBooked(_)) => failures += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(booked < 9_000, "the limit has no effect");
    }
    let balance = Balance {
        posted: 10_000 - booked,
        held: 0,
    };
    assert_eq!(teller.balance(&market.buyer).await.unwrap(), balance);
    assert!(
        matches!(store.db.read().await, Err(StoreError::Unavailable(_))),
        "books that are behind are not shown"
    );
    drop(teller);
    store.db.close().await;

    let db = open(&store.url).await;
    let teller = Teller::open(&db).await.unwrap();
    assert_eq!(teller.balance(&market.buyer).await.unwrap(), balance);
    market.charge(&teller, 1).await;
    assert_settled(&db, &teller).await;
    db.close().await;
    let directory = std::path::Path::new(store.url.strip_prefix("sqlite:").unwrap()).parent();
    let left: Vec<_> = std::fs::read_dir(directory.unwrap())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("-charges-"))
        .collect();
    assert!(left.is_empty(), "a store at rest needs no log: {left:?}");
}
