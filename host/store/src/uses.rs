//! What was done with one product, by whomever: runs from the counts of each day, and refunds from the ledger. How long runs took is told by
//! `times`.
//!
//! A run counts on the UTC date on which it began, a refund on the date on which it was booked. What the seller runs itself counts as a
//! run, and neither as a buyer nor as income. Start reading at [`Uses`] and [`over`].

use crate::error::StoreError;
use crate::fields::Fields;
use crate::sales::Span;
use souk_domain::ids::CompanyId;
use souk_domain::money::{SELLER_CENTS_PER_CREDIT, UsdCents};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

/// What was done with a product in a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uses {
    pub succeeded: i64,
    pub failed: i64,
    /// Of the failed ones, for what their caller sent or the host's own reasons.
    pub excused: i64,
    /// Of all these, by the seller itself.
    pub own_succeeded: i64,
    pub own_failed: i64,
    pub own_excused: i64,
    /// Rows of released results.
    pub rows: i64,
    /// Of all runs together, and of them by the seller itself.
    pub duration_us: i64,
    pub own_duration_us: i64,
    /// Other companies for which a run succeeded.
    pub buyers: i64,
    pub charged_credits: i64,
    pub refunded_credits: i64,
}

impl Uses {
    pub fn runs(&self) -> i64 {
        self.succeeded + self.failed
    }

    /// The runs that a success rate is of: those that the product could have answered.
    pub fn answerable(&self) -> i64 {
        self.runs() - self.excused
    }

    pub fn own_answerable(&self) -> i64 {
        self.own_runs() - self.own_excused
    }

    pub fn own_runs(&self) -> i64 {
        self.own_succeeded + self.own_failed
    }

    /// What was charged less what was given back.
    pub fn earned_credits(&self) -> i64 {
        self.charged_credits - self.refunded_credits
    }

    /// The seller's share of it.
    pub fn earnings(&self) -> UsdCents {
        UsdCents::new(self.earned_credits() * SELLER_CENTS_PER_CREDIT)
    }
}

/// The sums over rows of `usage_days d`.
macro_rules! sums {
    () => {
        "CAST(COALESCE(SUM(d.succeeded), 0) AS BIGINT) AS succeeded,
         CAST(COALESCE(SUM(d.failed), 0) AS BIGINT) AS failed,
         CAST(COALESCE(SUM(d.excused), 0) AS BIGINT) AS excused,
         CAST(COALESCE(SUM(CASE WHEN d.company_id = d.seller_id THEN d.succeeded ELSE 0 END), 0) AS BIGINT) AS own_succeeded,
         CAST(COALESCE(SUM(CASE WHEN d.company_id = d.seller_id THEN d.failed ELSE 0 END), 0) AS BIGINT) AS own_failed,
         CAST(COALESCE(SUM(CASE WHEN d.company_id = d.seller_id THEN d.excused ELSE 0 END), 0) AS BIGINT) AS own_excused,
         CAST(COALESCE(SUM(d.rows_returned), 0) AS BIGINT) AS rows_returned,
         CAST(COALESCE(SUM(d.duration_us), 0) AS BIGINT) AS duration_us,
         CAST(COALESCE(SUM(CASE WHEN d.company_id = d.seller_id THEN d.duration_us ELSE 0 END), 0) AS BIGINT) AS own_duration_us,
         COUNT(DISTINCT CASE WHEN d.succeeded > 0 AND d.company_id <> d.seller_id THEN d.company_id END) AS buyers,
         CAST(COALESCE(SUM(d.credits), 0) AS BIGINT) AS charged"
    };
}

/// Of the whole span.
pub async fn over(
    db: &mut AnyConnection,
    seller: &CompanyId,
    product: &str,
    span: Span,
) -> Result<Uses, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        sums!(),
        ", CAST((SELECT COALESCE(SUM(t.amount_credits), 0)
                 FROM transactions t
                 WHERE t.seller_id = $4 AND t.type = 'refund' AND t.product_id = $1 AND t.created_at >= $2 AND t.created_at < $3
           ) AS BIGINT) AS refunded
         FROM usage_days d
         WHERE d.product_id = $1 AND d.day >= $2 AND d.day < $3"
    ))
    .bind(product)
    .bind(span.from.micros())
    .bind(span.to.micros())
    .bind(seller.as_str())
    .fetch_one(db)
    .await?;
    Ok(Uses {
        refunded_credits: row.number("refunded")?,
        ..runs(&row)?
    })
}

/// By UTC date, ascending; dates without a run are left out. Refunds are not looked for.
pub async fn by_day(
    db: &mut AnyConnection,
    product: &str,
    span: Span,
) -> Result<Vec<(Timestamp, Uses)>, StoreError> {
    let rows = sqlx::query(concat!(
        "SELECT d.day, ",
        sums!(),
        " FROM usage_days d
          WHERE d.product_id = $1 AND d.day >= $2 AND d.day < $3
          GROUP BY d.day
          ORDER BY d.day"
    ))
    .bind(product)
    .bind(span.from.micros())
    .bind(span.to.micros())
    .fetch_all(db)
    .await?;
    let days = rows.iter().map(|row| Ok((row.time("day")?, runs(row)?)));
    days.collect()
}

fn runs(row: &AnyRow) -> Result<Uses, StoreError> {
    Ok(Uses {
        succeeded: row.number("succeeded")?,
        failed: row.number("failed")?,
        excused: row.number("excused")?,
        own_succeeded: row.number("own_succeeded")?,
        own_failed: row.number("own_failed")?,
        own_excused: row.number("own_excused")?,
        rows: row.number("rows_returned")?,
        duration_us: row.number("duration_us")?,
        own_duration_us: row.number("own_duration_us")?,
        buyers: row.number("buyers")?,
        charged_credits: row.number("charged")?,
        refunded_credits: 0,
    })
}

/// Who has a product on a list of their own, or bought it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interest {
    pub favorites: i64,
    /// Companies with an active purchase.
    pub purchases: i64,
}

pub async fn interest(db: &mut AnyConnection, product: &str) -> Result<Interest, StoreError> {
    let row = sqlx::query(
        "SELECT (SELECT COUNT(*) FROM favorites WHERE product_id = $1) AS favorites,
                (SELECT COUNT(*) FROM purchases WHERE product_id = $1 AND status = 'active') AS purchases",
    )
    .bind(product)
    .fetch_one(db)
    .await?;
    Ok(Interest {
        favorites: row.number("favorites")?,
        purchases: row.number("purchases")?,
    })
}
