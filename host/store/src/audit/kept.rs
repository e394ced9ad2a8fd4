//! How much of the audit log is kept: for so long, and of one company so much.

use crate::db::{Db, Write};
use crate::error::StoreError;
use crate::fields::Fields;
use souk_domain::ids::CompanyId;
use souk_domain::time::{DAY, HOUR, Timestamp};
use std::time::Duration;

/// Two years: longer than the disputes that it is read for.
pub const KEPT: Duration = Duration::from_secs(730 * DAY.as_secs());
/// Of one company: a hundred thousand lines or so, which are counted while somebody waits.
pub const BYTES_KEPT: i64 = 128 << 20;
/// A commit of so many holds nobody up, also where they are long: what is deleted is overwritten.
const SWEPT_AT_ONCE: i64 = 100;

/// Forgets some of what is older than [`KEPT`]. `false`: there is nothing left of it.
pub async fn sweep(write: &mut Write, now: Timestamp) -> Result<bool, StoreError> {
    let swept = sqlx::query(
        "DELETE FROM audit_log
         WHERE (act_id, line) IN (SELECT act_id, line FROM audit_log WHERE at < $1 ORDER BY at LIMIT $2)",
    )
    .bind(now.before(KEPT).micros())
    .bind(SWEPT_AT_ONCE)
    .execute(&mut **write)
    .await?;
    Ok(swept.rows_affected() > 0)
}

/// Forgets the oldest lines of companies that have more than so many bytes of them and got some lately; those of a transaction together.
pub async fn keep_newest(db: &Db, bytes_max: i64, now: Timestamp) -> Result<(), StoreError> {
    for company in grown(db, now.before(HOUR)).await? {
        let Some(last) = beyond(db, &company, bytes_max).await? else {
            continue;
        };
        while db
            .write(async |write| forget_until(write, &company, last).await)
            .await?
        {}
    }
    Ok(())
}

/// Companies that have got lines since then.
async fn grown(db: &Db, since: Timestamp) -> Result<Vec<CompanyId>, StoreError> {
    // Not by the column itself: for its order SQLite would go through an index of all lines.
    let rows =
        sqlx::query("SELECT DISTINCT company_id || '' AS company_id FROM audit_log WHERE at >= $1")
            .bind(since.micros())
            .fetch_all(&mut *db.read().await?)
            .await?;
    // What is nobody's is the platform's.
    let companies = rows
        .iter()
        .filter_map(|row| row.id_opt::<CompanyId>("company_id").transpose());
    companies.collect()
}

/// When the newest line was written that is beyond so many bytes of a company.
async fn beyond(
    db: &Db,
    company: &CompanyId,
    bytes_max: i64,
) -> Result<Option<Timestamp>, StoreError> {
    let mut read = db.read().await?;
    let all = sqlx::query(
        "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes FROM audit_log WHERE company_id = $1",
    )
    .bind(company.as_str())
    .fetch_one(&mut *read)
    .await?;
    if all.number("bytes")? <= bytes_max {
        return Ok(None);
    }
    let row = sqlx::query(
        "SELECT MAX(at) AS last_at
         FROM (SELECT at, CAST(SUM(bytes) OVER (ORDER BY at DESC) AS BIGINT) AS with_newer
               FROM audit_log
               WHERE company_id = $1) AS lines
         WHERE with_newer > $2",
    )
    .bind(company.as_str())
    .bind(bytes_max)
    .fetch_one(&mut *read)
    .await?;
    row.time_opt("last_at")
}

/// Forgets some of a company's lines up to then. `false`: there is nothing left of them.
async fn forget_until(
    write: &mut Write,
    company: &CompanyId,
    last: Timestamp,
) -> Result<bool, StoreError> {
    let forgotten = sqlx::query(
        "DELETE FROM audit_log
         WHERE (act_id, line) IN (SELECT act_id, line FROM audit_log WHERE company_id = $1 AND at <= $2 ORDER BY at LIMIT $3)",
    )
    .bind(company.as_str())
    .bind(last.micros())
    .bind(SWEPT_AT_ONCE)
    .execute(&mut **write)
    .await?;
    Ok(forgotten.rows_affected() > 0)
}
