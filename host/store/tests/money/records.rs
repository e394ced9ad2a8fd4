//! Runs are counted completely and recorded, also those that nobody pays for, and their sellers read why some failed.

use crate::support::{assert_settled, company, later, market, stores};
use souk_domain::actors::Actor;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::products::Product;
use souk_domain::time::HOUR;
use souk_store::executions::{self, Billing, Outcome};
use souk_store::failures::{self, Reason};
use souk_store::idempotency::{KeptAnswer, Scope, Ticket};
use souk_store::recent::{self, RecentExecution};
use souk_store::teller::{Asked, IdempotencyEntry, PostError, Receipt, Teller};
use souk_store::{Db, Part, StoreError, db, keys};
use sqlx::{AssertSqlSafe, Row};

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
                admitted: true,
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

/// A run that could not be charged is among its seller's newest as one that failed, and keeps none that are written with it from there: it was noted as one
/// that would be charged.
#[tokio::test]
async fn a_run_that_could_not_be_charged_is_recorded() {
    for store in stores().await {
        let market = market(&store.db, 10).await;
        let teller = Teller::open(&store.db).await.unwrap();
        let mut run = market.run(Billing::Charged);
        let hold = market.hold(&teller, 2, &run).await.unwrap();
        let scope = Scope {
            company: market.buyer.clone(),
            route: "/x/{id}",
            key: "k".into(),
        };
        // Of a claim that nobody has any more.
        let ticket = Ticket {
            scope,
            id: "lapsed".into(),
        };
        let idempotency = Some(IdempotencyEntry {
            ticket,
            answer: KeptAnswer::of(200, None, b"{}", None),
            expires_at: later(db::now(), 60),
        });
        let receipt = Receipt {
            run: run.clone(),
            idempotency,
        };
        let refused = teller.post(hold, receipt).await;
        assert!(
            matches!(refused, Err(PostError::Superseded)),
            "{}: {refused:?}",
            store.name
        );
        run.billing = Billing::Failed;
        run.outcome = Outcome::Failed {
            code: "internal".into(),
            blame: "host".into(),
        };
        let reason = Reason {
            reason: None,
            code: None,
            source_code: None,
            message: "this host failed".to_owned(),
            detail: None,
        };
        teller.record_failed(&run, reason);
        let charged = market.charge(&teller, 3).await.transaction.unwrap();
        assert_settled(&store.db, &teller).await;

        let mut read = store.db.read().await.unwrap();
        let all = recent::Filter::default();
        let listed = recent::list(&mut read, &market.seller, all, Part::first(10)).await;
        let (listed, total) = listed.unwrap();
        assert_eq!((listed.len(), total), (2, 2), "{}", store.name);
        let failed = listed.iter().find(|one| one.execution.id == run.id);
        let failed = failed.expect("it is there");
        assert_eq!(failed.execution.status, "failed", "{}", store.name);
        assert_eq!(failed.execution.blame.as_deref(), Some("host"));
        assert_eq!(failed.message.as_deref(), Some("this host failed"));
        let is_sold = |one: &RecentExecution| one.execution.transaction_id == Some(charged.clone());
        assert!(listed.iter().any(is_sold), "{}", store.name);
        let counted = "SELECT CAST(SUM(failed) AS BIGINT) AS value FROM usage_days";
        drop(read);
        assert_eq!(number(&store.db, counted).await, 1, "{}", store.name);
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
