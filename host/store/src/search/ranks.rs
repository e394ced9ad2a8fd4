//! What is popular and what is trending: sums over the counts of each day, kept beside each product so that orders need not add them up.

use crate::bulk::Bulk;
use crate::db::Db;
use crate::error::StoreError;
use crate::fields::Fields;
use souk_domain::time::{DAY, Timestamp};
use sqlx::AnyConnection;
use std::collections::HashMap;

/// Dates of which runs make a product popular, today included.
pub const POPULAR_DAYS: u32 = 30;
/// Dates of which runs are compared with as many dates before them.
pub const TRENDING_DAYS: u32 = 7;
/// Products written in one transaction, so that charges get their turn.
const BATCH: usize = 256;
/// Fewer products are found quickly in any way.
const ANALYZED_FROM: i64 = 1_000;

type Ranks = HashMap<String, (i64, i64)>;

/// Counts anew, and writes what has changed. Reads every count of the last dates, some tenths of a second for a million of them: in the
/// background.
pub async fn rank(db: &Db, now: Timestamp) -> Result<(), StoreError> {
    let mut read = db.read().await?;
    let known = known(&mut read).await?;
    let mut counted = counted(&mut read, now).await?;
    drop(read);
    for product in known.keys() {
        counted.entry(product.clone()).or_insert((0, 0));
    }
    let changed = counted
        .into_iter()
        .filter(|(product, ranks)| known.get(product) != Some(ranks));
    let mut changed: Vec<_> = changed.collect();
    // In one order, so that hosts which share a store do not wait for each other in a circle.
    changed.sort_unstable();
    for changed in changed.chunks(BATCH) {
        db.write(async |write| put(write, changed).await).await?;
    }
    analyze(db).await
}

/// Tells the planner how many products have a category, a sport or a word. It takes whatever equals for few rows otherwise, `is_published = 1`
/// first of all. (PostgreSQL does so by itself, at times later.)
async fn analyze(db: &Db) -> Result<(), StoreError> {
    let known = sqlx::query("SELECT COUNT(*) AS known FROM search_products")
        .fetch_one(&mut *db.read().await?)
        .await?;
    if known.number("known")? < ANALYZED_FROM {
        return Ok(());
    }
    db.write(async |write| {
        for table in ["ANALYZE search_products", "ANALYZE search_terms"] {
            sqlx::query(table).execute(&mut **write).await?;
        }
        Ok(())
    })
    .await
}

/// Those that are not zero.
async fn known(db: &mut AnyConnection) -> Result<Ranks, StoreError> {
    let rows = sqlx::query(
        "SELECT product_id, popular, trending FROM search_products WHERE popular <> 0 OR trending <> 0",
    )
    .fetch_all(db)
    .await?;
    let ranks = rows.iter().map(|row| {
        let ranks = (row.number("popular")?, row.number("trending")?);
        Ok((row.text("product_id")?, ranks))
    });
    ranks.collect()
}

/// Runs by others than the seller that succeeded.
async fn counted(db: &mut AnyConnection, now: Timestamp) -> Result<Ranks, StoreError> {
    let today = now.day_start();
    let rows = sqlx::query(
        "SELECT product_id, CAST(SUM(succeeded) AS BIGINT) AS popular,
                CAST(SUM(CASE WHEN day >= $2 THEN succeeded WHEN day >= $3 THEN -succeeded ELSE 0 END) AS BIGINT) AS trending
         FROM usage_days
         WHERE day >= $1 AND company_id <> seller_id
         GROUP BY product_id",
    )
    .bind(today.before(DAY * (POPULAR_DAYS - 1)).micros())
    .bind(today.before(DAY * (TRENDING_DAYS - 1)).micros())
    .bind(today.before(DAY * (2 * TRENDING_DAYS - 1)).micros())
    .fetch_all(db)
    .await?;
    let ranks = rows.iter().map(|row| {
        let ranks = (row.number("popular")?, row.number("trending")?);
        Ok((row.text("product_id")?, ranks))
    });
    ranks.collect()
}

static PUT: Bulk = Bulk::new(
    "UPDATE search_products SET popular = v.column2, trending = v.column3",
    3,
    "WHERE search_products.product_id = v.column1",
);

async fn put(db: &mut AnyConnection, changed: &[(String, (i64, i64))]) -> Result<(), StoreError> {
    PUT.run(db, changed, |values, row| {
        values
            .text(row.map(|row| row.0.as_str()))
            .number(row.map(|row| row.1.0))
            .number(row.map(|row| row.1.1));
    })
    .await?;
    Ok(())
}
