//! Which version of a connector is tried out on a share of the calls, beside the one at work. Whoever chooses what is at work ends it
//! ([`super::choose`]).

use souk_domain::time::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::{Fields, StoreError, Topic, Write};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    pub scope: String,
    pub name: String,
    pub version: String,
    /// The version at work that it is tried out beside: beside no other.
    pub beside_version: String,
    /// 1 to 99.
    pub share_percent: u8,
    /// Since when it has this share.
    pub since: Timestamp,
}

pub async fn all(db: &mut AnyConnection) -> Result<Vec<Canary>, StoreError> {
    let rows = sqlx::query(
        "SELECT scope, name, version, beside_version, share_percent, since \
         FROM connector_canaries \
         ORDER BY scope, name",
    )
    .fetch_all(db)
    .await?;
    rows.iter().map(canary).collect()
}

pub async fn of(
    db: &mut AnyConnection,
    scope: &str,
    name: &str,
) -> Result<Option<Canary>, StoreError> {
    let row = sqlx::query(
        "SELECT scope, name, version, beside_version, share_percent, since \
         FROM connector_canaries \
         WHERE scope = $1 AND name = $2",
    )
    .bind(scope)
    .bind(name)
    .fetch_optional(db)
    .await?;
    row.as_ref().map(canary).transpose()
}

/// Begins one, in the place of another one or with another share.
pub async fn begin(tx: &mut Write, canary: &Canary) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO connector_canaries (scope, name, version, beside_version, share_percent, since) \
         VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (scope, name) DO UPDATE SET version = excluded.version, beside_version = excluded.beside_version, \
         share_percent = excluded.share_percent, since = excluded.since",
    )
    .bind(canary.scope.as_str())
    .bind(canary.name.as_str())
    .bind(canary.version.as_str())
    .bind(canary.beside_version.as_str())
    .bind(i64::from(canary.share_percent))
    .bind(canary.since.micros())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Connector, &canary.scope);
    Ok(())
}

/// Whether there was one.
pub async fn end(tx: &mut Write, scope: &str, name: &str) -> Result<bool, StoreError> {
    let done = sqlx::query("DELETE FROM connector_canaries WHERE scope = $1 AND name = $2")
        .bind(scope)
        .bind(name)
        .execute(&mut **tx)
        .await?;
    tx.touch(Topic::Connector, scope);
    Ok(done.rows_affected() == 1)
}

fn canary(row: &AnyRow) -> Result<Canary, StoreError> {
    let share: i64 = row.try_get("share_percent")?;
    Ok(Canary {
        scope: row.try_get("scope")?,
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        beside_version: row.try_get("beside_version")?,
        share_percent: u8::try_from(share)
            .map_err(|_| StoreError::Corrupt(format!("a canary has a share of {share} percent")))?,
        since: row.time("since")?,
    })
}
