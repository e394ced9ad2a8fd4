//! Prices of products: which one holds, and what those that have ended cost.

use crate::support::{open, stores};
use crate::{NOW, after, both, company};
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::money::{Credits, UsdCents};
use souk_domain::prices::Validity;
use souk_domain::products::ProductStatus;
use souk_domain::time::Timestamp;
use souk_store::prices::{self, NewPrice};
use souk_store::{Db, StoreError, marketplace, products};
use sqlx::{AssertSqlSafe, Executor};
use std::time::{Duration, Instant};

/// When the price of [`priced`] begins that is planned.
const PLANNED_IN: i64 = 1_000;

/// A product on sale of which so many prices have ended, the last of them now, and one is planned.
async fn priced(db: &Db, owner: &CompanyId, name: &str, ended: i64) -> AssetId {
    let (asset, _) = both(db, owner, name, name, NOW).await;
    let planned = NewPrice {
        company: owner,
        product: asset.as_str(),
        credits: Credits::ZERO,
        usd: UsdCents::ZERO,
        discount_percent: None,
        original_credits: None,
        validity: Validity {
            from: after(PLANNED_IN),
            to: None,
        },
        created_by: "key_1",
    };
    let made = db.write(async |tx| -> Result<(), StoreError> {
        products::set_status(tx, owner, &asset, ProductStatus::Published, NOW).await?;
        sqlx::query(
            "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $4)
             INSERT INTO prices (price_id, company_id, product_id, price_credits, price_cents, effective_from, effective_to, created_by,
                                 created_at, updated_at)
             SELECT CAST($1 AS TEXT) || '_' || i, CAST($2 AS TEXT), CAST($1 AS TEXT), 1, 50, $3 - i, $3 - i + 1, 'key_1', 0, 0 FROM n",
        )
        .bind(asset.as_str())
        .bind(owner.as_str())
        .bind(NOW.micros())
        .bind(ended)
        .execute(&mut **tx)
        .await?;
        prices::insert(tx, &planned.price(NOW)).await?;
        Ok(())
    });
    made.await.unwrap();
    asset
}

/// How long it takes at best to be told this of a product that is [`priced`].
async fn fastest(db: &Db, question: &str, reader: &CompanyId, asset: &AssetId) -> Duration {
    let (id, mut fastest) = (asset.as_str(), Duration::MAX);
    let mut read = db.read().await.unwrap();
    for _ in 0..10 {
        let begun = Instant::now();
        match question {
            "active" => {
                let active = prices::active(&mut read, id, NOW).await.unwrap();
                assert_eq!(active, None);
            }
            "active of many" => {
                let active = prices::active_of(&mut read, std::iter::once(id), NOW).await;
                assert!(active.unwrap().is_empty());
            }
            "next change" => {
                let next = prices::next_change(&mut read, id, NOW).await.unwrap();
                assert_eq!(next, Some(after(PLANNED_IN)));
            }
            "holding from now" => {
                let holding = prices::holding_from(&mut read, id, NOW).await.unwrap();
                assert_eq!(holding.len(), 1);
            }
            _ => {
                let listing = marketplace::get(&mut read, reader, id, NOW).await;
                assert_eq!(listing.unwrap().unwrap().price, None);
            }
        }
        fastest = fastest.min(begun.elapsed());
    }
    fastest
}

/// Prices that have ended are passed over: of a product with very many of them everything is told about as fast as of one that has had a single
/// price. It took hundreds of times as long.
#[tokio::test]
async fn ended_prices_take_nobodys_time() {
    const ENDED: i64 = 50_000;
    const TIMES_MAX: u32 = 25;
    /// On a machine that does other things, too.
    const TRIES: usize = 5;
    for store in stores().await {
        let (db, owner) = (&store.db, company(&store.db, "acme").await);
        let many = priced(db, &owner, "many", ENDED).await;
        let few = priced(db, &owner, "few", 1).await;
        for question in [
            "active",
            "active of many",
            "next change",
            "holding from now",
            "on sale",
        ] {
            let mut seen = Vec::new();
            for _ in 0..TRIES {
                let of_few = fastest(db, question, &owner, &few).await;
                let of_many = fastest(db, question, &owner, &many).await;
                seen.push((of_many, of_few));
                if of_many < TIMES_MAX * of_few {
                    break;
                }
            }
            assert!(
                seen.len() < TRIES,
                "{} {question}: of many, and of few: {seen:?}",
                store.name
            );
        }
    }
}

/// What is planned holds when its time has come, and what has ended is counted from when it did.
#[tokio::test]
async fn prices_hold_when_it_is_their_time() {
    for store in stores().await {
        let (db, owner) = (&store.db, company(&store.db, "acme").await);
        let asset = priced(db, &owner, "asset", 20).await;
        let (id, mut read) = (asset.as_str(), db.read().await.unwrap());
        for (at, holds, next) in [
            (-15, Some(1), Some(-14)),
            (-1, Some(1), Some(0)),
            (0, None, Some(PLANNED_IN)),
            (PLANNED_IN - 1, None, Some(PLANNED_IN)),
            (PLANNED_IN, Some(0), None),
            (PLANNED_IN + 1, Some(0), None),
        ] {
            let (at, what) = (after(at), format!("{} {at}", store.name));
            let active = prices::active(&mut read, id, at).await.unwrap();
            let credits = active.as_ref().map(|price| price.credits.get());
            assert_eq!(credits, holds, "{what}");
            let all = prices::active_of(&mut read, [id, "ast_other"].into_iter(), at).await;
            assert_eq!(all.unwrap().remove(id), active, "{what}");
            let listing = marketplace::get(&mut read, &owner, id, at).await.unwrap();
            let expected = active.as_ref().map(|price| price.credits);
            assert_eq!(listing.unwrap().price, expected, "{what}");
            let changes = prices::next_change(&mut read, id, at).await.unwrap();
            assert_eq!(changes, next.map(after), "{what}");
        }
        for (since, now, expected) in [(-5, 0, 5), (-5, -1, 4), (-100, 0, 20), (0, 2_000, 0)] {
            let ended = prices::ended_since(&mut read, id, after(since), after(now)).await;
            assert_eq!(ended.unwrap(), expected, "{} {since} {now}", store.name);
        }
    }
}

/// In a store from before it was written which prices end by themselves, discounts that run, are planned and are over are known, and so is the price behind
/// each, also where another one is planned behind that; what was planned or changed by somebody stays that, also where it costs the same.
#[tokio::test]
async fn discounts_of_yesterdays_store_are_known() {
    const BACK: &str = "
        DROP TABLE prices;
        CREATE TABLE prices (
            price_id               TEXT     NOT NULL PRIMARY KEY,
            company_id             TEXT     NOT NULL,
            product_id             TEXT     NOT NULL,
            price_credits          BIGINT   NOT NULL,
            price_cents            BIGINT   NOT NULL,
            discount_percent       BIGINT,
            original_price_credits BIGINT,
            effective_from         BIGINT   NOT NULL,
            effective_to           BIGINT,
            created_by             TEXT     NOT NULL,
            created_at             BIGINT   NOT NULL,
            updated_at             BIGINT   NOT NULL
        );
        DELETE FROM schema_migrations WHERE version = 60;";
    /// Product, credits, begin, end, when it was written; and what is known of it: its end, and the row that it is again.
    type Row = (
        &'static str,
        i64,
        i64,
        Option<i64>,
        i64,
        Option<i64>,
        Option<usize>,
    );
    const ROWS: [Row; 32] = [
        ("runs", 10, 1, Some(5), 1, None, None),
        ("runs", 5, 5, Some(50), 5, Some(50), None),
        ("runs", 10, 50, None, 5, None, Some(0)),
        ("planned", 10, 1, Some(20), 1, None, None),
        ("planned", 5, 20, Some(50), 6, Some(50), None),
        ("planned", 10, 50, None, 6, None, Some(3)),
        ("asked", 10, 1, Some(5), 1, None, None),
        ("asked", 5, 5, Some(50), 5, None, None),
        ("asked", 10, 50, None, 7, None, None),
        ("before another", 10, 1, Some(5), 1, None, None),
        ("before another", 5, 5, Some(50), 5, Some(50), None),
        ("before another", 10, 50, Some(60), 5, None, Some(9)),
        ("before another", 20, 60, None, 2, None, None),
        ("in a row", 10, 1, Some(5), 1, None, None),
        ("in a row", 5, 5, Some(50), 5, Some(50), None),
        ("in a row", 10, 50, Some(60), 5, None, Some(13)),
        ("in a row", 7, 60, Some(70), 8, Some(70), None),
        ("in a row", 10, 70, None, 8, None, Some(13)),
        ("within", 10, 1, Some(5), 1, None, None),
        ("within", 5, 5, Some(20), 5, Some(50), None),
        ("within", 4, 20, Some(30), 6, Some(30), None),
        ("within", 5, 30, Some(50), 6, None, Some(19)),
        ("within", 10, 50, None, 5, None, None),
        ("ends", 10, 1, Some(5), 1, None, None),
        ("ends", 5, 5, Some(50), 5, Some(50), None),
        ("ends", 10, 50, Some(70), 5, Some(70), None),
        ("dearer", 10, 1, Some(5), 1, None, None),
        ("dearer", 5, 5, Some(50), 5, Some(50), None),
        ("dearer", 12, 50, Some(60), 5, None, None),
        ("dearer", 20, 60, None, 2, None, None),
        ("gap", 3, 20, Some(30), 1, Some(30), None),
        ("gap", 4, 40, None, 2, None, None),
    ];
    for store in stores().await {
        let owner = company(&store.db, "acme").await;
        let mut sql = BACK.to_owned();
        for (number, (product, credits, from, to, at, ..)) in ROWS.iter().enumerate() {
            let to = to.map_or("NULL".to_owned(), |to| to.to_string());
            sql += &format!(
                "INSERT INTO prices (price_id, company_id, product_id, price_credits, price_cents, effective_from, effective_to, created_by,
                                     created_at, updated_at)
                 VALUES ('prc_{number}', '{owner}', '{product}', {credits}, {credits} * 50, {from}, {to}, 'key_1', {at}, {at});"
            );
        }
        let write = store.db.write(async |tx| -> Result<_, StoreError> {
            let run = (&mut **tx).execute(sqlx::raw_sql(AssertSqlSafe(sql.clone())));
            run.await.unwrap();
            Ok(())
        });
        write.await.unwrap();
        store.db.close().await;
        let db = open(&store.url).await;
        let mut read = db.read().await.unwrap();
        let mut products: Vec<&str> = ROWS.iter().map(|row| row.0).collect();
        products.dedup();
        for product in products {
            let start = Timestamp::from_micros(0);
            let all = prices::holding_from(&mut read, product, start).await;
            let known = all.unwrap().into_iter().map(|price| {
                let resumes = price.resumes.map(|id| id.to_string());
                (price.ends_at.map(Timestamp::micros), resumes)
            });
            let expected = ROWS.iter().filter(|row| row.0 == product);
            let expected = expected.map(|row| (row.5, row.6.map(|row| format!("prc_{row}"))));
            assert_eq!(
                known.collect::<Vec<_>>(),
                expected.collect::<Vec<_>>(),
                "{} {product}",
                store.name
            );
        }
    }
}
