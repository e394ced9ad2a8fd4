//! What a seller sold to others: runs and charges from the counts of each day, which are kept in the transactions that book the charges,
//! and refunds from the ledger. What a seller runs itself is no sale.
//!
//! A run counts on the UTC date on which it began, a refund on the date on which it was booked. Start reading at [`Sold`] and [`over`].

use crate::bulk::Bulk;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::lists::{self, Listed, Part, Values};
use souk_domain::ids::CompanyId;
use souk_domain::money::{CENTS_PER_CREDIT, SELLER_CENTS_PER_CREDIT, UsdCents};
use souk_domain::products::ProductType;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::HashMap;

/// From one midnight up to, not including, another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// What was sold, to whomever and of whatever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sold {
    /// Runs of assets that succeeded.
    pub executions: i64,
    /// Pages of endpoints that were answered.
    pub requests: i64,
    /// Runs of either that failed, which cost nothing.
    pub failed: i64,
    /// Of these, for what their caller sent or the host's own reasons.
    pub excused: i64,
    /// Of all runs together.
    pub duration_us: i64,
    /// Companies for which a run succeeded.
    pub buyers: i64,
    pub charged_credits: i64,
    pub refunded_credits: i64,
}

impl Sold {
    /// What was charged less what was given back. Below zero when older sales were refunded.
    pub fn revenue_credits(&self) -> i64 {
        self.charged_credits - self.refunded_credits
    }

    pub fn revenue(&self) -> UsdCents {
        UsdCents::new(self.revenue_credits() * CENTS_PER_CREDIT)
    }

    pub fn earnings(&self) -> UsdCents {
        UsdCents::new(self.revenue_credits() * SELLER_CENTS_PER_CREDIT)
    }

    pub fn platform_fee(&self) -> UsdCents {
        UsdCents::new(self.revenue().get() - self.earnings().get())
    }

    pub fn succeeded(&self) -> i64 {
        self.executions + self.requests
    }

    /// The runs that a success rate is of: those that what was sold could have answered.
    pub fn answerable(&self) -> i64 {
        self.succeeded() + self.failed - self.excused
    }
}

/// The sums over rows of `usage_days d`.
macro_rules! sums {
    () => {
        "CAST(COALESCE(SUM(CASE WHEN d.product_type = 'asset' THEN d.succeeded ELSE 0 END), 0) AS BIGINT) AS executions,
         CAST(COALESCE(SUM(CASE WHEN d.product_type = 'endpoint' THEN d.succeeded ELSE 0 END), 0) AS BIGINT) AS requests,
         CAST(COALESCE(SUM(d.failed), 0) AS BIGINT) AS failed,
         CAST(COALESCE(SUM(d.excused), 0) AS BIGINT) AS excused,
         CAST(COALESCE(SUM(d.duration_us), 0) AS BIGINT) AS duration_us,
         CAST(COALESCE(SUM(d.credits), 0) AS BIGINT) AS charged,
         COUNT(DISTINCT CASE WHEN d.succeeded > 0 THEN d.company_id END) AS buyers"
    };
}

static RUNS: Bulk = Bulk::new(
    concat!("SELECT v.column1 AS begins, ", sums!()),
    3,
    "LEFT JOIN usage_days d ON d.seller_id = v.column3 AND d.day >= v.column1 AND d.day < v.column2 AND d.company_id <> d.seller_id
     WHERE v.column1 IS NOT NULL
     GROUP BY v.column1",
);

static REFUNDS: Bulk = Bulk::new(
    "SELECT v.column1 AS begins, CAST(COALESCE(SUM(t.amount_credits), 0) AS BIGINT) AS refunded",
    3,
    "LEFT JOIN transactions t ON t.seller_id = v.column3 AND t.type = 'refund' AND t.created_at >= v.column1 AND t.created_at < v.column2
     WHERE v.column1 IS NOT NULL
     GROUP BY v.column1",
);

/// What was sold in each of the spans, of which no two begin together.
pub async fn over(
    db: &mut AnyConnection,
    seller: &CompanyId,
    spans: &[Span],
) -> Result<Vec<Sold>, StoreError> {
    let mut sold: HashMap<i64, Sold> = HashMap::new();
    for (bulk, is_refunds) in [(&RUNS, false), (&REFUNDS, true)] {
        let rows = bulk
            .fetch(db, spans, |values, span| {
                values
                    .number(span.map(|span| span.from.micros()))
                    .number(span.map(|span| span.to.micros()))
                    .text(span.map(|_| seller.as_str()));
            })
            .await?;
        for row in &rows {
            let one = sold.entry(row.number("begins")?).or_default();
            match is_refunds {
                true => one.refunded_credits = row.number("refunded")?,
                false => *one = runs(row)?,
            }
        }
    }
    let of = |span: &Span| sold.get(&span.from.micros()).copied();
    Ok(spans
        .iter()
        .map(|span| of(span).unwrap_or_default())
        .collect())
}

fn runs(row: &AnyRow) -> Result<Sold, StoreError> {
    Ok(Sold {
        executions: row.number("executions")?,
        requests: row.number("requests")?,
        failed: row.number("failed")?,
        excused: row.number("excused")?,
        duration_us: row.number("duration_us")?,
        buyers: row.number("buyers")?,
        charged_credits: row.number("charged")?,
        refunded_credits: 0,
    })
}

/// A product that was sold, or given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoldProduct {
    pub id: String,
    pub product_type: ProductType,
    /// `None`: it is not there any more.
    pub name: Option<String>,
    pub sold: Sold,
}

/// By product, those with the highest revenue first.
pub async fn by_product(
    db: &mut AnyConnection,
    seller: &CompanyId,
    span: Span,
) -> Result<Vec<SoldProduct>, StoreError> {
    let groups = grouped(db, seller, span, &BY_PRODUCT).await?;
    let products = groups.into_iter().map(|group| {
        let kind = group.kind.unwrap_or_default();
        Ok(SoldProduct {
            product_type: ProductType::parse(&kind)
                .ok_or_else(|| corrupt("product_type", format!("{kind:?}")))?,
            id: group.id,
            name: group.name,
            sold: group.sold,
        })
    });
    products.collect()
}

/// A company that bought, or was given back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buyer {
    pub id: String,
    pub name: Option<String>,
    pub sold: Sold,
}

/// By buyer, those with the highest revenue first.
pub async fn by_buyer(
    db: &mut AnyConnection,
    seller: &CompanyId,
    span: Span,
) -> Result<Vec<Buyer>, StoreError> {
    let groups = grouped(db, seller, span, &BY_BUYER).await?;
    let buyers = groups.into_iter().map(|group| Buyer {
        id: group.id,
        name: group.name,
        sold: group.sold,
    });
    Ok(buyers.collect())
}

/// What sales are grouped by. Its statements read from `$2` up to, not including, `$3`.
struct Grouping {
    runs: &'static str,
    refunds: &'static str,
    names: &'static Bulk,
}

static BY_PRODUCT: Grouping = Grouping {
    runs: concat!(
        "SELECT d.product_id AS id, MAX(d.product_type) AS kind, ",
        sums!(),
        " FROM usage_days d
          WHERE d.seller_id = $1 AND d.day >= $2 AND d.day < $3 AND d.company_id <> d.seller_id
          GROUP BY d.product_id"
    ),
    // A refund of a transaction that names no product is in no group.
    refunds: "SELECT product_id AS id, MAX(product_type) AS kind, CAST(SUM(amount_credits) AS BIGINT) AS refunded
         FROM transactions
         WHERE seller_id = $1 AND type = 'refund' AND created_at >= $2 AND created_at < $3
           AND product_id IS NOT NULL AND product_type IS NOT NULL
         GROUP BY product_id",
    names: &PRODUCT_NAMES,
};

static BY_BUYER: Grouping = Grouping {
    runs: concat!(
        "SELECT d.company_id AS id, CAST(NULL AS TEXT) AS kind, ",
        sums!(),
        " FROM usage_days d
          WHERE d.seller_id = $1 AND d.day >= $2 AND d.day < $3 AND d.company_id <> d.seller_id
          GROUP BY d.company_id"
    ),
    refunds: "SELECT company_id AS id, CAST(NULL AS TEXT) AS kind, CAST(SUM(amount_credits) AS BIGINT) AS refunded
         FROM transactions
         WHERE seller_id = $1 AND type = 'refund' AND created_at >= $2 AND created_at < $3
         GROUP BY company_id",
    names: &COMPANY_NAMES,
};

#[derive(Default)]
struct Group {
    id: String,
    /// Of products.
    kind: Option<String>,
    name: Option<String>,
    sold: Sold,
}

/// Those with the highest revenue first, then the most used.
async fn grouped(
    db: &mut AnyConnection,
    seller: &CompanyId,
    span: Span,
    by: &Grouping,
) -> Result<Vec<Group>, StoreError> {
    let mut groups: HashMap<String, Group> = HashMap::new();
    for (sql, is_refunds) in [(by.runs, false), (by.refunds, true)] {
        let rows = sqlx::query(sql)
            .bind(seller.as_str())
            .bind(span.from.micros())
            .bind(span.to.micros())
            .fetch_all(&mut *db)
            .await?;
        for row in &rows {
            let id = row.text("id")?;
            let group = groups.entry(id.clone()).or_default();
            group.id = id;
            group.kind = row.text_opt("kind")?;
            match is_refunds {
                true => group.sold.refunded_credits = row.number("refunded")?,
                false => group.sold = runs(row)?,
            }
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    let ids: Vec<&str> = groups.iter().map(|group| &*group.id).collect();
    let mut names = names(db, by.names, &ids).await?;
    for group in &mut groups {
        group.name = names.remove(&group.id);
    }
    groups.sort_by(|a, b| order(&a.sold, &a.id).cmp(&order(&b.sold, &b.id)));
    Ok(groups)
}

/// The highest revenue first, then the most used.
fn order<'a>(sold: &Sold, id: &'a str) -> (i64, i64, &'a str) {
    (-sold.revenue_credits(), -sold.succeeded(), id)
}

static PRODUCT_NAMES: Bulk = Bulk::new(
    "SELECT v.column1 AS id, p.name AS name",
    1,
    "LEFT JOIN products p ON p.id = v.column1
     WHERE v.column1 IS NOT NULL",
);

static COMPANY_NAMES: Bulk = Bulk::new(
    "SELECT v.column1 AS id, c.name AS name",
    1,
    "LEFT JOIN companies c ON c.id = v.column1
     WHERE v.column1 IS NOT NULL",
);

async fn names(
    db: &mut AnyConnection,
    bulk: &Bulk,
    ids: &[&str],
) -> Result<HashMap<String, String>, StoreError> {
    let rows = bulk
        .fetch(db, ids, |values, id| {
            values.text(id.copied());
        })
        .await?;
    let mut names = HashMap::new();
    for row in &rows {
        if let Some(name) = row.text_opt("name")? {
            names.insert(row.text("id")?, name);
        }
    }
    Ok(names)
}

/// How the companies that buy come and go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Customers {
    /// For which a run succeeded in the span.
    pub total: i64,
    /// Of these, those that never used anything of the seller's before the span.
    pub new: i64,
    /// Used something in the span before, of the same length, and nothing in this one.
    pub churned: i64,
}

pub async fn customers(
    db: &mut AnyConnection,
    seller: &CompanyId,
    span: Span,
    before: Span,
) -> Result<Customers, StoreError> {
    let row = sqlx::query(
        "SELECT CAST(COALESCE(SUM(is_here), 0) AS BIGINT) AS total,
                CAST(COALESCE(SUM(CASE WHEN is_here = 1 AND first_day >= $2 THEN 1 ELSE 0 END), 0) AS BIGINT) AS fresh,
                CAST(COALESCE(SUM(CASE WHEN is_here = 0 AND was_here = 1 THEN 1 ELSE 0 END), 0) AS BIGINT) AS churned
         FROM (SELECT MIN(day) AS first_day,
                      MAX(CASE WHEN day >= $2 AND day < $3 THEN 1 ELSE 0 END) AS is_here,
                      MAX(CASE WHEN day >= $4 AND day < $5 THEN 1 ELSE 0 END) AS was_here
               FROM usage_days
               WHERE seller_id = $1 AND day < $3 AND company_id <> seller_id AND succeeded > 0
               GROUP BY company_id) AS c",
    )
    .bind(seller.as_str())
    .bind(span.from.micros())
    .bind(span.to.micros())
    .bind(before.from.micros())
    .bind(before.to.micros())
    .fetch_one(db)
    .await?;
    Ok(Customers {
        total: row.number("total")?,
        new: row.number("fresh")?,
        churned: row.number("churned")?,
    })
}

/// How a company's assets do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetSales {
    pub id: String,
    pub name: String,
    pub status: String,
    pub sold: Sold,
    /// Executions of the span before.
    pub executions_before: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssetOrder {
    Name,
    Executions,
    Revenue,
    Buyers,
    SuccessRate,
    Duration,
}

/// The company's assets with what others did with them in the span. Archived ones are listed when they sold something in it.
pub async fn assets(
    db: &mut AnyConnection,
    seller: &CompanyId,
    (span, before): (Span, Span),
    order: AssetOrder,
    is_descending: bool,
    part: Part,
) -> Result<Listed<AssetSales>, StoreError> {
    const COLUMNS: &str = "a.id, a.name, a.status, CAST(COALESCE(u.succeeded, 0) AS BIGINT) AS executions, CAST(0 AS BIGINT) AS requests,
        CAST(COALESCE(u.failed, 0) AS BIGINT) AS failed,
        CAST(COALESCE(u.excused, 0) AS BIGINT) AS excused, CAST(COALESCE(u.duration_us, 0) AS BIGINT) AS duration_us,
        CAST(COALESCE(u.buyers, 0) AS BIGINT) AS buyers, CAST(COALESCE(u.charged, 0) AS BIGINT) AS charged,
        CAST(COALESCE(r.refunded, 0) AS BIGINT) AS refunded, CAST(COALESCE(b.succeeded, 0) AS BIGINT) AS former";
    const FROM: &str = "
        FROM products a
        LEFT JOIN (SELECT product_id, SUM(succeeded) AS succeeded, SUM(failed) AS failed,
                          SUM(excused) AS excused, SUM(duration_us) AS duration_us, SUM(credits) AS charged, COUNT(DISTINCT CASE WHEN succeeded > 0 THEN company_id END) AS buyers
                   FROM usage_days
                   WHERE seller_id = $1 AND day >= $2 AND day < $3 AND company_id <> seller_id
                   GROUP BY product_id) u ON u.product_id = a.id
        LEFT JOIN (SELECT product_id, SUM(succeeded) AS succeeded
                   FROM usage_days
                   WHERE seller_id = $1 AND day >= $4 AND day < $5 AND company_id <> seller_id
                   GROUP BY product_id) b ON b.product_id = a.id
        LEFT JOIN (SELECT product_id, SUM(amount_credits) AS refunded
                   FROM transactions
                   WHERE seller_id = $1 AND type = 'refund' AND created_at >= $2 AND created_at < $3
                   GROUP BY product_id) r ON r.product_id = a.id
        WHERE a.company_id = $1 AND a.product_type = 'asset'
          AND (a.status <> 'archived' OR u.product_id IS NOT NULL OR r.product_id IS NOT NULL)";
    let by = match order {
        AssetOrder::Name => "LOWER(a.name)",
        AssetOrder::Executions => "COALESCE(u.succeeded, 0)",
        AssetOrder::Revenue => "COALESCE(u.charged, 0) - COALESCE(r.refunded, 0)",
        AssetOrder::Buyers => "COALESCE(u.buyers, 0)",
        // Parts of a million, in whole numbers on both stores; what never ran comes after what always fails.
        AssetOrder::SuccessRate => {
            "COALESCE(CAST(u.succeeded AS BIGINT) * 1000000 / NULLIF(CAST(u.succeeded + u.failed - u.excused AS BIGINT), 0), -1)"
        }
        AssetOrder::Duration => {
            "COALESCE(CAST(u.duration_us AS BIGINT) / NULLIF(CAST(u.succeeded + u.failed AS BIGINT), 0), -1)"
        }
    };
    let way = if is_descending { "DESC" } else { "ASC" };
    let bind = |values: &mut Values| {
        values
            .text(Some(seller.as_str()))
            .number(Some(span.from.micros()))
            .number(Some(span.to.micros()))
            .number(Some(before.from.micros()))
            .number(Some(before.to.micros()));
    };
    let read = |row: &AnyRow| {
        Ok(AssetSales {
            id: row.text("id")?,
            name: row.text("name")?,
            status: row.text("status")?,
            sold: Sold {
                refunded_credits: row.number("refunded")?,
                ..runs(row)?
            },
            executions_before: row.number("former")?,
        })
    };
    let order = format!("{by} {way}, a.id");
    lists::sorted(db, (COLUMNS, FROM, &order), 5, part, bind, read).await
}
