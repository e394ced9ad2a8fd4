//! How long runs took, as counts: of each product and UTC date how many took at most so long. A percentile of millions of runs is read from some
//! hundred rows.
//!
//! Counts are complete but for the last moment before a crash, and a little behind: the recorder writes them. Of dates that are not kept any more
//! one row of each product is left, of the date zero and without a run, which says when the newest run began. Start reading at [`at_most`] and [`keep`].

use crate::bulk::Bulk;
use crate::days;
use crate::db::{Db, Write};
use crate::error::StoreError;
use crate::executions::Ended;
use crate::fields::Fields;
use crate::sales::Span;
use souk_domain::ids::CompanyId;
use souk_domain::products::Product;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::BTreeMap;

/// Of one company's products together: fifty of them whose runs take sixty different times each day of a year.
pub const ROWS_KEPT: i64 = 1_000_000;
/// A commit of so many holds nobody up.
const FORGOTTEN_AT_ONCE: usize = 256;
/// So many are looked for at once.
const FOUND_AT_ONCE: i64 = 4_096;

/// Steps between a duration and its double: what is told of one is at most a 32nd above it.
const STEPS_LOG2: u32 = 5;

/// Where the steps of the migration end: far beyond any deadline.
const STEP_LOG2_MAX: u32 = 31;

/// The smallest of the told durations that is not below this one; below 64 us each is told as it is. The migration that counted the runs of before
/// does the same in SQL.
pub(crate) fn at_most(duration_us: i64) -> i64 {
    let duration = duration_us.max(0).cast_unsigned();
    let magnitude = duration.checked_ilog2().unwrap_or(0);
    let step = 1_u64 << magnitude.saturating_sub(STEPS_LOG2).min(STEP_LOG2_MAX);
    duration.next_multiple_of(step).cast_signed()
}

/// Runs of a product on a date that took about as long.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TimeKey {
    pub product: Product,
    /// Midnight UTC.
    pub day: i64,
    pub at_most_us: i64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TimeCounts {
    pub runs: i64,
    pub last_at: i64,
}

/// One run as it is counted here.
#[derive(Debug, Clone)]
pub(crate) struct Timed<'a> {
    pub product: &'a Product,
    /// Midnight UTC.
    pub day: i64,
    pub at_most_us: i64,
    pub counts: TimeCounts,
}

impl<'a> Timed<'a> {
    pub(crate) fn of(ended: &Ended<'a>) -> Timed<'a> {
        Timed {
            product: ended.product,
            day: ended.started_at.day_start().micros(),
            at_most_us: at_most(ended.duration_us),
            counts: TimeCounts {
                runs: 1,
                last_at: ended.started_at.micros(),
            },
        }
    }
}

impl TimeCounts {
    pub(crate) fn add(&mut self, other: &TimeCounts) {
        self.runs += other.runs;
        self.last_at = self.last_at.max(other.last_at);
    }
}

static ADD: Bulk = Bulk::new(
    "INSERT INTO usage_times (product_id, day, at_most_us, runs, last_at)
     SELECT column1, column2, column3, column4, column5",
    5,
    "WHERE column1 IS NOT NULL
     ON CONFLICT (product_id, day, at_most_us) DO UPDATE
     SET runs = usage_times.runs + excluded.runs,
         last_at = CASE WHEN excluded.last_at > usage_times.last_at THEN excluded.last_at ELSE usage_times.last_at END",
);

/// Adds counts. `times` has no key twice and is sorted, so that hosts which share a store lock rows in one order.
pub(crate) async fn add(
    db: &mut AnyConnection,
    times: &[(TimeKey, TimeCounts)],
) -> Result<(), StoreError> {
    ADD.run(db, times, |values, row| {
        let (key, counts) = (row.map(|row| &row.0), row.map(|row| &row.1));
        values
            .text(key.map(|key| key.product.id()))
            .number(key.map(|key| key.day))
            .number(key.map(|key| key.at_most_us))
            .number(counts.map(|counts| counts.runs))
            .number(counts.map(|counts| counts.last_at));
    })
    .await?;
    Ok(())
}

/// What all but the slowest twentieth of a product's runs in the span took at most, in microseconds: at most a 32nd above the nearest rank.
/// `None` without one.
pub async fn p95_us(
    db: &mut AnyConnection,
    product: &str,
    span: Span,
) -> Result<Option<i64>, StoreError> {
    let rows = sqlx::query(
        "SELECT at_most_us, CAST(SUM(runs) AS BIGINT) AS runs
         FROM usage_times
         WHERE product_id = $1 AND day >= $2 AND day < $3 AND runs > 0
         GROUP BY at_most_us
         ORDER BY at_most_us",
    )
    .bind(product)
    .bind(span.from.micros())
    .bind(span.to.micros())
    .fetch_all(db)
    .await?;
    let mut counts = Vec::with_capacity(rows.len());
    for row in &rows {
        counts.push((row.number("at_most_us")?, row.number("runs")?));
    }
    let all: i64 = counts.iter().map(|(_, runs)| runs).sum();
    let mut passed = 0;
    let found = counts.iter().find(|(_, runs)| {
        passed += runs;
        passed * 100 >= all * 95
    });
    Ok(found.map(|(at_most_us, _)| *at_most_us))
}

/// When the newest run of a product began.
pub async fn last_at(
    db: &mut AnyConnection,
    product: &str,
) -> Result<Option<Timestamp>, StoreError> {
    let row = sqlx::query(
        "SELECT MAX(last_at) AS last_at
         FROM usage_times
         WHERE product_id = $1 AND day = (SELECT MAX(day) FROM usage_times WHERE product_id = $1)",
    )
    .bind(product)
    .fetch_one(db)
    .await?;
    row.time_opt("last_at")
}

/// Forgets what is older than dates are kept ([`days::DAYS_KEPT`]), or than the newest so many rows of a company's products, but for when the newest
/// run of each began. The rows of the date that comes last stay together.
pub async fn keep(db: &Db, rows_max: i64, now: Timestamp) -> Result<(), StoreError> {
    for company in sellers(db).await? {
        let Some(kept_from) = kept_from(db, &company, rows_max, now).await? else {
            continue;
        };
        while forget_some(db, &company, kept_from).await? {}
    }
    Ok(())
}

async fn sellers(db: &Db) -> Result<Vec<CompanyId>, StoreError> {
    let rows = sqlx::query("SELECT DISTINCT company_id FROM products")
        .fetch_all(&mut *db.read().await?)
        .await?;
    rows.iter().map(|row| row.id("company_id")).collect()
}

/// From which date on a company's are kept, if there are older ones.
async fn kept_from(
    db: &Db,
    company: &CompanyId,
    rows_max: i64,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let rows = sqlx::query(
        "SELECT t.day AS day, COUNT(*) AS counted
         FROM products p
         JOIN usage_times t ON t.product_id = p.id
         WHERE p.company_id = $1 AND t.day > 0
         GROUP BY t.day
         ORDER BY t.day DESC",
    )
    .bind(company.as_str())
    .fetch_all(&mut *db.read().await?)
    .await?;
    let (mut counted, mut kept_from) = (0, days::kept_since(now));
    let mut oldest = None;
    for row in &rows {
        let day = row.time("day")?;
        if counted < rows_max {
            counted += row.number("counted")?;
            if counted >= rows_max {
                kept_from = kept_from.max(day);
            }
        }
        oldest = Some(day);
    }
    Ok(oldest
        .filter(|oldest| *oldest < kept_from)
        .map(|_| kept_from))
}

/// Forgets some rows of a company's products of before, a few in a transaction. `false`: there is nothing left of them.
async fn forget_some(
    db: &Db,
    company: &CompanyId,
    kept_from: Timestamp,
) -> Result<bool, StoreError> {
    let mut forgotten = 0;
    let found = before(db, company, kept_from).await?;
    for found in found.chunks(FORGOTTEN_AT_ONCE) {
        forgotten += db.write(async |write| forget(write, found).await).await?;
    }
    Ok(forgotten > 0)
}

/// Which row it is.
struct Place {
    product: String,
    day: i64,
    at_most_us: i64,
}

/// Some rows of a company's products of before.
async fn before(
    db: &Db,
    company: &CompanyId,
    kept_from: Timestamp,
) -> Result<Vec<Place>, StoreError> {
    let rows = sqlx::query(
        "SELECT t.product_id AS product_id, t.day AS day, t.at_most_us AS at_most_us
         FROM products p
         JOIN usage_times t ON t.product_id = p.id
         WHERE p.company_id = $1 AND t.day > 0 AND t.day < $2
         LIMIT $3",
    )
    .bind(company.as_str())
    .bind(kept_from.micros())
    .bind(FOUND_AT_ONCE)
    .fetch_all(&mut *db.read().await?)
    .await?;
    let place = |row: &AnyRow| {
        Ok(Place {
            product: row.text("product_id")?,
            day: row.number("day")?,
            at_most_us: row.number("at_most_us")?,
        })
    };
    rows.iter().map(place).collect()
}

// CAST: SQLite finds rows by all three columns then, and not by the first alone.
static FORGET: Bulk = Bulk::new(
    "DELETE FROM usage_times
     WHERE (product_id, day, at_most_us) IN (SELECT CAST(column1 AS TEXT), CAST(column2 AS BIGINT), CAST(column3 AS BIGINT)",
    3,
    ") RETURNING product_id, last_at",
);

async fn forget(write: &mut Write, found: &[Place]) -> Result<usize, StoreError> {
    let rows = FORGET
        .fetch(write, found, |values, row| {
            values
                .text(row.map(|row| row.product.as_str()))
                .number(row.map(|row| row.day))
                .number(row.map(|row| row.at_most_us));
        })
        .await?;
    let mut newest: BTreeMap<String, i64> = BTreeMap::new();
    for row in &rows {
        let last_at = newest.entry(row.text("product_id")?).or_default();
        *last_at = row.number("last_at")?.max(*last_at);
    }
    let newest: Vec<(String, i64)> = newest.into_iter().collect();
    ADD.run(write, &newest, |values, row| {
        values
            .text(row.map(|(product, _)| product.as_str()))
            .number(row.map(|_| 0))
            .number(row.map(|_| 0))
            .number(row.map(|_| 0))
            .number(row.map(|(_, last_at)| *last_at));
    })
    .await?;
    Ok(rows.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Db, OpenOptions};
    use std::collections::BTreeMap;

    /// A told duration is never below the run's, at most a 32nd above it, and told as itself again; longer runs are told no shorter.
    #[test]
    fn durations_are_told_closely() {
        let mut before = 0;
        let long = (0..200).map(|place| 1_000_003_i64 * place * place * place / 7);
        for duration in (0..5_000).chain(long.skip(40)) {
            let told = at_most(duration);
            assert!(told >= duration && told >= before, "{duration}: {told}");
            assert!(told - duration <= duration / 32 + 1, "{duration}: {told}");
            assert_eq!(at_most(told), told);
            before = told;
        }
        assert_eq!([1, 63, 64, 65, 66].map(at_most), [1, 63, 64, 66, 66]);
        assert_eq!(
            [128, 129, 1_000, 123_456].map(at_most),
            [128, 132, 1_008, 124_928]
        );
        at_most(i64::MAX / 2);
    }

    /// Runs that an older version recorded are counted by the migration as they would be today.
    #[tokio::test]
    async fn runs_of_before_are_counted_alike() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("a.db").display());
        let db = Db::open(&OpenOptions::new(url)).await.unwrap();
        let migration = include_str!("../migrations/0037_usage_times.sql");
        let (_, insert) = migration.split_once("INSERT").unwrap();
        let durations: Vec<i64> = (0..300).map(|place| place * place * place * 97).collect();
        let counted = db.write(async |write| -> Result<_, StoreError> {
            for (number, duration) in durations.iter().enumerate() {
                let row = "INSERT INTO executions (id, company_id, seller_id, product_type, product_id, status, billing, credits,
                                                   rows_returned, bytes_returned, started_at, duration_us)
                           VALUES ($1, 'c', 's', 'asset', 'p', 'succeeded', 'free', 0, 0, 0, 86400000005, $2)";
                let row = sqlx::query(row).bind(number.to_string()).bind(duration);
                row.execute(&mut **write).await?;
            }
            let insert = format!("INSERT{insert}");
            sqlx::query(sqlx::AssertSqlSafe(insert)).execute(&mut **write).await?;
            let rows = sqlx::query("SELECT day, at_most_us, runs FROM usage_times ORDER BY at_most_us");
            let rows = rows.fetch_all(&mut **write).await?;
            let row = |row| -> Result<_, StoreError> {
                Ok((Fields::number(row, "day")?, Fields::number(row, "at_most_us")?, Fields::number(row, "runs")?))
            };
            rows.iter().map(row).collect::<Result<Vec<(i64, i64, i64)>, _>>()
        });
        let mut expected = BTreeMap::new();
        for duration in &durations {
            *expected.entry(at_most(*duration)).or_insert(0) += 1;
        }
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(at_most_us, runs)| (86_400_000_000, at_most_us, runs))
            .collect();
        assert_eq!(counted.await.unwrap(), expected);
    }
}
