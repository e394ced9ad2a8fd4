//! What a charge books, and what happens when it cannot be booked.

use crate::support::{assert_settled, company, later, market, open, sqlite, stores};
use souk_domain::actors::Actor;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::products::Product;
use souk_domain::time::HOUR;
use souk_store::executions::{self, Billing, Outcome, RecentUse};
use souk_store::failures::{self, Reason};
use souk_store::ledger::{self, Account};
use souk_store::recent;
use souk_store::reconciliation::{FindingKind, reconcile};
use souk_store::statements::{self, LineFilter, LineType};
use souk_store::teller::{Asked, Balance, IdempotencyEntry, PostError, Receipt, Teller};
use souk_store::{Db, Part, StoreError, db, idempotency, keys};
use sqlx::{AssertSqlSafe, Row};

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

/// Free runs are counted completely, whichever threads they ran on, and recorded without making anybody wait.
#[tokio::test]
async fn free_runs_are_counted() {
    for store in stores().await {
        let market = market(&store.db, 0).await;
        let teller = Teller::open(&store.db).await.unwrap();
        std::thread::scope(|scope| {
            for _ in 0..7 {
                scope.spawn(|| {
                    (0..100).for_each(|_| teller.record(&market.run(Billing::Owner)));
                });
            }
        });
        let mut failed = market.run(Billing::Failed);
        failed.outcome = Outcome::Failed {
            code: "SOURCE_ERROR".into(),
            blame: "source".into(),
        };
        teller.record(&failed);
        teller.flush().await;
        let mut read = store.db.read().await.unwrap();
        let counted = sqlx::query(
            "SELECT CAST(SUM(succeeded) AS BIGINT) AS succeeded, CAST(SUM(failed) AS BIGINT) AS failed,
                    CAST(SUM(credits) AS BIGINT) AS credits
             FROM usage_days WHERE product_id = $1",
        )
        .bind(market.product.id())
        .fetch_one(&mut *read)
        .await
        .unwrap();
        let counted: [i64; 3] = ["succeeded", "failed", "credits"].map(|name| counted.get(name));
        assert_eq!(counted, [700, 1, 0], "{}", store.name);
        let recorded: i64 =
            sqlx::query("SELECT COUNT(*) AS value FROM executions WHERE product_id = $1")
                .bind(market.product.id())
                .fetch_one(&mut *read)
                .await
                .unwrap()
                .get("value");
        assert_eq!(recorded as u64 + teller.records_dropped(), 701);
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

async fn change(db: &Db, sql: &str) {
    db.write(async |write| -> Result<_, StoreError> {
        let statement = sqlx::query(AssertSqlSafe(sql.to_owned()));
        statement.execute(&mut **write).await?;
        Ok(())
    })
    .await
    .unwrap();
}

async fn number(db: &Db, sql: &str) -> i64 {
    let mut read = db.read().await.unwrap();
    let row = sqlx::query(AssertSqlSafe(sql.to_owned()));
    row.fetch_one(&mut *read).await.unwrap().get("value")
}

/// Counts are written a few at a time, so that charges go between. When the store refuses some, they are kept with those that come after them, and
/// what was written before them is not written again.
#[tokio::test]
async fn counts_are_written_in_parts() {
    const PRODUCTS: i64 = 1_000;
    /// The place of the one that is refused, in the order in which they are written.
    const REFUSED: i64 = 600;
    const HOURS: i64 = 400;
    for store in stores().await {
        let market = market(&store.db, 0).await;
        let founded = company(&store.db, "acme").await;
        let teller = Teller::open(&store.db).await.unwrap();
        let products = (0..PRODUCTS).map(|_| Product::Asset(AssetId::generate()));
        let mut products: Vec<_> = products.collect();
        products.sort_unstable_by(|one, other| one.id().cmp(other.id()));
        let refused = products[REFUSED as usize].id();
        let not_both = format!(
            "CREATE UNIQUE INDEX not_both ON usage_days (product_type) WHERE product_id IN ('{}', '{refused}')",
            products[0].id()
        );
        change(&store.db, &not_both).await;
        let now = db::now();
        for product in &products {
            let mut run = market.run(Billing::Owner);
            run.product = product.clone();
            run.started_at = now;
            teller.record(&run);
        }
        let actor = Actor::from(founded.key.id.clone());
        for hour in 0..HOURS as u32 {
            teller.count_use(Asked {
                actor: &actor,
                company: &founded.company.id,
                route: "/assets",
                at: now.before(HOUR * hour),
                failed: false,
            });
        }
        teller.flush().await;
        let written = number(&store.db, "SELECT COUNT(*) AS value FROM usage_days").await;
        assert!(
            (1..=REFUSED).contains(&written),
            "{}: {written}",
            store.name
        );

        change(&store.db, "DROP INDEX not_both").await;
        for _ in 0..2 {
            teller.flush().await;
        }
        for (expected, sql) in [
            (PRODUCTS, "SELECT COUNT(*) AS value FROM usage_days"),
            (
                PRODUCTS,
                "SELECT CAST(SUM(succeeded) AS BIGINT) AS value FROM usage_days",
            ),
            (
                PRODUCTS,
                "SELECT CAST(SUM(runs) AS BIGINT) AS value FROM usage_times",
            ),
            (
                HOURS,
                "SELECT CAST(SUM(requests) AS BIGINT) AS value FROM key_usage",
            ),
            (
                HOURS,
                "SELECT CAST(SUM(requests) AS BIGINT) AS value FROM company_months",
            ),
        ] {
            assert_eq!(
                number(&store.db, sql).await,
                expected,
                "{}: {sql}",
                store.name
            );
        }
        let mut read = store.db.read().await.unwrap();
        let key = keys::get(&mut read, &founded.company.id, &founded.key.id).await;
        let key = key.unwrap().expect("found");
        assert_eq!(key.usage_count, HOURS, "{}", store.name);
        let first = now.before(HOUR * (HOURS as u32 - 1));
        assert_eq!(
            (key.first_used_at, key.last_used_at),
            (Some(first), Some(now))
        );
    }
}

/// However often one seller's products fail, the failures of another one are recorded.
#[tokio::test]
async fn sellers_leave_each_other_room_for_records() {
    for store in stores().await {
        let market = market(&store.db, 0).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let failed = |seller: &CompanyId| {
            let mut run = market.run(Billing::Failed);
            run.seller = seller.clone();
            run.outcome = Outcome::Failed {
                code: "source".into(),
                blame: "source".into(),
            };
            run
        };
        for _ in 0..700 {
            teller.record(&failed(&market.seller));
        }
        let other = failed(&market.buyer);
        teller.record(&other);
        teller.flush().await;
        let mut read = store.db.read().await.unwrap();
        let recorded = executions::get(&mut read, &market.buyer, &other.id).await;
        assert!(recorded.unwrap().is_some(), "{}", store.name);
        // All are there, or counted among those that are not.
        let kept: i64 =
            sqlx::query("SELECT COUNT(*) AS value FROM executions WHERE product_id = $1")
                .bind(market.product.id())
                .fetch_one(&mut *read)
                .await
                .unwrap()
                .get("value");
        assert_eq!(
            kept as u64 + teller.records_dropped(),
            701,
            "{}",
            store.name
        );
    }
}

/// Why runs failed is there for their seller and nobody else: with all its words, and no more of them than are kept.
#[tokio::test]
async fn a_seller_reads_why_its_runs_failed() {
    for store in stores().await {
        let market = market(&store.db, 0).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let fail = |minute: u64, message: String| {
            let mut run = market.run(Billing::Failed);
            run.started_at = later(run.started_at, 60 * minute);
            run.outcome = Outcome::Failed {
                code: "source".into(),
                blame: "source".into(),
            };
            let reason = Reason {
                reason: Some("rate_limited"),
                code: Some("too_fast".into()),
                source_code: None,
                message,
                detail: Some("x".repeat(10_000)),
            };
            teller.record_failed(&run, reason);
            run
        };
        // Within what one seller may have of a flush.
        let (flushes, each) = (10u64, 105u64);
        let mut last = None;
        for flush in 0..flushes {
            for place in 0..each {
                last = Some(fail(flush * each + place, format!("{flush} {place}")));
            }
            teller.flush().await;
        }
        let last = last.unwrap();
        let mut read = store.db.read().await.unwrap();
        let (all, part) = (failures::Filter::default(), Part::first(100));
        let (listed, total) = failures::list(&mut read, &market.seller, all, part)
            .await
            .unwrap();
        assert_eq!(total, failures::KEPT_MAX, "{}", store.name);
        let newest = &listed[0];
        assert_eq!(newest.execution_id, last.id);
        assert_eq!(
            (newest.message.as_str(), newest.code.as_deref()),
            ("9 104", Some("too_fast"))
        );
        assert_eq!(newest.detail.as_ref().map(String::len), Some(2_000));
        let of_request = failures::Filter {
            request: Some(last.request.as_str()),
            ..all
        };
        let found = failures::list(&mut read, &market.seller, of_request, part).await;
        assert!(
            found
                .unwrap()
                .0
                .iter()
                .any(|one| one.execution_id == last.id)
        );
        let foreign = failures::list(&mut read, &market.buyer, all, part).await;
        assert_eq!(foreign.unwrap().1, 0);
    }
}

/// A seller's newest runs are one list, charged, free and failed; nobody else's. Of those that succeeded and of those that failed the newest are kept.
#[tokio::test]
async fn a_seller_lists_its_newest_runs() {
    for store in stores().await {
        let market = market(&store.db, 100).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let charged = market.charge(&teller, 3).await.transaction.unwrap();
        let mut failed = market.run(Billing::Failed);
        failed.outcome = Outcome::Failed {
            code: "source".into(),
            blame: "source".into(),
        };
        let reason = Reason {
            reason: Some("timeout"),
            code: None,
            source_code: None,
            message: "the source was silent".to_owned(),
            detail: None,
        };
        teller.record_failed(&failed, reason);
        teller.flush().await;
        let list = async |seller: &CompanyId, filter: recent::Filter<'_>| {
            let mut read = store.db.read().await.unwrap();
            let listed = recent::list(&mut read, seller, filter, Part::first(10)).await;
            listed.unwrap()
        };
        let all = recent::Filter::default();
        let (listed, total) = list(&market.seller, all).await;
        assert_eq!((listed.len(), total), (2, 2), "{}", store.name);
        assert_eq!(listed[0].execution.id, failed.id);
        assert_eq!(listed[0].message.as_deref(), Some("the source was silent"));
        let sold = &listed[1];
        assert_eq!(sold.execution.transaction_id.as_ref(), Some(&charged));
        assert_eq!((sold.execution.credits, &sold.message), (3, &None));
        assert_eq!(list(&market.buyer, all).await.1, 0);

        let mut begun = failed.started_at;
        for flush in 0..80 {
            for place in 0..20 {
                let mut run = market.run(Billing::Owner);
                run.started_at = later(run.started_at, 60 + 20 * flush + place);
                if place == 0 {
                    begun = run.started_at;
                }
                teller.record(&run);
            }
            teller.flush().await;
        }
        let succeeded = recent::Filter {
            status: Some("succeeded"),
            ..all
        };
        let (listed, total) = list(&market.seller, succeeded).await;
        let kept = recent::KEPT_MAX..recent::KEPT_MAX + 200;
        assert!(kept.contains(&total), "{}: {total}", store.name);
        assert!(listed[0].execution.started_at >= begun);
        let failures = recent::Filter {
            status: Some("failed"),
            ..all
        };
        assert_eq!(list(&market.seller, failures).await.1, 1);
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
