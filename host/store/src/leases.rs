//! Work that hosts share by leases: what alerts, publications and webhooks' deliveries have in common, each in a table of its own with
//! `claimed_by` and `lease_until`.

use souk_domain::ids::CompanyId;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use crate::{Fields, StoreError, Write};

/// A piece of work that may be attempted now, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due<I> {
    pub id: I,
    pub company: CompanyId,
}

/// By which a host takes a piece of work.
///
/// Claim several in the order of their ids: hosts that claim at once then do not wait for each other in a circle.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The host, since its start.
    pub by: &'a str,
    pub now: Timestamp,
    pub until: Timestamp,
}

/// `sql`: the `id` and `company_id` of what is due at `$1`, at most `$2` pieces of one company and `$3` in all.
pub(crate) async fn due<I>(
    db: &mut AnyConnection,
    sql: &'static str,
    now: Timestamp,
    per_company: i64,
    limit: i64,
) -> Result<Vec<Due<I>>, StoreError>
where
    I: std::str::FromStr,
    I::Err: std::fmt::Display,
{
    let rows = sqlx::query(sql)
        .bind(now.micros())
        .bind(per_company)
        .bind(limit)
        .fetch_all(db)
        .await?;
    let due = rows.iter().map(|row| {
        Ok(Due {
            id: row.id("id")?,
            company: row.id("company_id")?,
        })
    });
    due.collect()
}

/// `sql`: gives the piece `$1`, if it is due at `$3` and nobody else has it, to the host `$2` until `$4`, and returns what `read` reads. A host may have it
/// already without knowing, where the commit of its claim was not answered.
pub(crate) async fn claim<T>(
    write: &mut Write,
    sql: &'static str,
    id: &str,
    claim: &Claim<'_>,
    read: fn(&AnyRow) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let row = sqlx::query(sql)
        .bind(id)
        .bind(claim.by)
        .bind(claim.now.micros())
        .bind(claim.until.micros())
        .fetch_optional(&mut **write)
        .await?;
    row.as_ref().map(read).transpose()
}
