//! What companies have taken of what they share in the store: all together, and the one that has most. For metrics: each look reads a whole
//! table, and is for every few minutes. Each statement is whole: `tests/dialect.rs` reads them, and tries them at both stores.

use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use crate::connectors::PLATFORM;
use crate::{Fields, StoreError};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    pub in_all: i64,
    pub by_largest: i64,
}

/// Data connections that are not deleted.
pub async fn connections(db: &mut AnyConnection) -> Result<Taken, StoreError> {
    let row = sqlx::query(
        "SELECT CAST(COALESCE(SUM(taken), 0) AS BIGINT) AS in_all, CAST(COALESCE(MAX(taken), 0) AS BIGINT) AS by_largest
         FROM (SELECT COUNT(*) AS taken FROM connections WHERE deleted_at IS NULL GROUP BY company_id) AS shares",
    )
    .fetch_one(db)
    .await?;
    taken(&row)
}

/// Bytes of the versions of connectors that companies have uploaded.
pub async fn connector_bytes(db: &mut AnyConnection) -> Result<Taken, StoreError> {
    let row = sqlx::query(
        "SELECT CAST(COALESCE(SUM(taken), 0) AS BIGINT) AS in_all, CAST(COALESCE(MAX(taken), 0) AS BIGINT) AS by_largest
         FROM (SELECT SUM(size_bytes) AS taken FROM connectors WHERE scope <> $1 GROUP BY scope) AS shares",
    )
    .bind(PLATFORM)
    .fetch_one(db)
    .await?;
    taken(&row)
}

/// Bytes of companies' files.
pub async fn file_bytes(db: &mut AnyConnection) -> Result<Taken, StoreError> {
    let row = sqlx::query(
        "SELECT CAST(COALESCE(SUM(taken), 0) AS BIGINT) AS in_all, CAST(COALESCE(MAX(taken), 0) AS BIGINT) AS by_largest
         FROM (SELECT SUM(size_bytes) AS taken FROM files GROUP BY company_id) AS shares",
    )
    .fetch_one(db)
    .await?;
    taken(&row)
}

fn taken(row: &AnyRow) -> Result<Taken, StoreError> {
    Ok(Taken {
        in_all: row.number("in_all")?,
        by_largest: row.number("by_largest")?,
    })
}
