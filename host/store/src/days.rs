//! Which dates are kept of what a company runs: the newest ones, by date; of before, all dates of a month are in the row of its first.
//!
//! So nothing that was ever run is missing in a sum, and a company has no more rows by date than are kept, whatever it runs. Start reading at [`keep`].

use crate::bulk::{Bulk, Script, Style};
use crate::db::{Db, Write};
use crate::error::StoreError;
use crate::executions::{self, DayCounts, DayKey};
use crate::fields::{Fields, corrupt};
use crate::usage;
use souk_domain::ids::CompanyId;
use souk_domain::products::ProductType;
use souk_domain::time::{DAY, Timestamp};
use std::collections::BTreeMap;

/// A leap year, which is the longest period that is asked for, and a month.
pub const DAYS_KEPT: u32 = 400;
/// Of one company, by date and product: 820 products that it runs each day of a year.
pub const ROWS_KEPT: i64 = 300_000;
/// A commit of so many holds nobody up.
const SUMMED_AT_ONCE: i64 = 256;

/// From when on dates are kept, of whatever company.
pub(crate) fn kept_since(now: Timestamp) -> Timestamp {
    now.day_start().before(DAY * DAYS_KEPT)
}

/// Adds up by month what is older than [`DAYS_KEPT`], or than the newest so many rows, of companies that have sent anything this month. The rows of the
/// date that comes last stay together.
pub async fn keep(db: &Db, rows_max: i64, now: Timestamp) -> Result<(), StoreError> {
    for company in usage::active(db, now).await? {
        for month in due(db, &company, rows_max, now).await? {
            while db
                .write(async |write| add_up(write, &company, month).await)
                .await?
            {}
        }
    }
    Ok(())
}

/// A month, and from which of its dates on they are kept.
#[derive(Debug, Clone, Copy)]
struct Month {
    first: Timestamp,
    kept_from: Timestamp,
}

static DUE: Bulk = Bulk::new(
    "SELECT v.column2 AS month, v.column3 AS kept_from",
    3,
    "WHERE v.column1 IS NOT NULL
       AND EXISTS (SELECT 1
                   FROM usage_days d
                   WHERE d.company_id = v.column1 AND d.day > v.column2 AND d.day < v.column3)
     ORDER BY v.column2",
);

/// The months of a company that have dates which are not kept.
async fn due(
    db: &Db,
    company: &CompanyId,
    rows_max: i64,
    now: Timestamp,
) -> Result<Vec<Month>, StoreError> {
    let mut read = db.read().await?;
    let oldest = sqlx::query("SELECT MIN(day) AS day FROM usage_days WHERE company_id = $1")
        .bind(company.as_str())
        .fetch_one(&mut *read)
        .await?
        .time_opt("day")?;
    let Some(oldest) = oldest else {
        return Ok(Vec::new());
    };
    let beyond = sqlx::query(
        "SELECT day FROM usage_days WHERE company_id = $1 ORDER BY day DESC LIMIT 1 OFFSET $2",
    )
    .bind(company.as_str())
    .bind(rows_max - 1)
    .fetch_optional(&mut *read)
    .await?;
    let beyond = beyond.map(|row| row.time("day")).transpose()?;
    let kept_since = kept_since(now).max(beyond.unwrap_or_default());
    let mut months = Vec::new();
    let mut from = oldest;
    while from < kept_since {
        let (first, next) = from.month();
        let kept_from = next.min(kept_since);
        months.push(Month { first, kept_from });
        from = next;
    }
    let rows = DUE
        .fetch(&mut read, &months, |values, month| {
            values
                .text(month.map(|_| company.as_str()))
                .number(month.map(|month| month.first.micros()))
                .number(month.map(|month| month.kept_from.micros()));
        })
        .await?;
    let due = rows.iter().map(|row| {
        Ok(Month {
            first: row.time("month")?,
            kept_from: row.time("kept_from")?,
        })
    });
    due.collect()
}

/// Adds some rows of a month's later dates to those of its first. `false`: there is nothing left of them.
async fn add_up(write: &mut Write, company: &CompanyId, month: Month) -> Result<bool, StoreError> {
    let rows = sqlx::query(
        "DELETE FROM usage_days
         WHERE (company_id, day, product_id) IN (SELECT company_id, day, product_id
                                                 FROM usage_days
                                                 WHERE company_id = $1 AND day > $2 AND day < $3
                                                 ORDER BY day
                                                 LIMIT $4)
         RETURNING product_id, product_type, seller_id, succeeded, failed, excused, credits, rows_returned, duration_us",
    )
    .bind(company.as_str())
    .bind(month.first.micros())
    .bind(month.kept_from.micros())
    .bind(SUMMED_AT_ONCE)
    .fetch_all(&mut **write)
    .await?;
    let mut sums: BTreeMap<String, (DayKey, DayCounts)> = BTreeMap::new();
    for row in &rows {
        let (product, kind) = (row.text("product_id")?, row.text("product_type")?);
        let kind = ProductType::parse(&kind).ok_or_else(|| corrupt("product_type", &kind))?;
        let key = DayKey {
            company: company.clone(),
            day: month.first.micros(),
            product_id: product.clone(),
            product_type: kind.as_str(),
            seller: row.id("seller_id")?,
        };
        let sum = sums.entry(product);
        let (_, sum) = sum.or_insert_with(|| (key, DayCounts::default()));
        sum.add(&DayCounts {
            succeeded: row.number("succeeded")?,
            failed: row.number("failed")?,
            excused: row.number("excused")?,
            credits: row.number("credits")?,
            rows: row.number("rows_returned")?,
            duration_us: row.number("duration_us")?,
        });
    }
    let sums: Vec<(DayKey, DayCounts)> = sums.into_values().collect();
    let mut script = Script::new(Style::Separate);
    executions::add_days(&mut script, &sums);
    script.run(write).await?;
    Ok(!rows.is_empty())
}
