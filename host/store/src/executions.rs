//! Runs of products: one row each, and complete counts per product, caller and day.

use crate::bulk::{Bulk, Script};
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use serde::{Deserialize, Serialize};
use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, ExecutionId, PriceId, PurchaseId, RequestId, TransactionId};
use souk_domain::money::Credits;
use souk_domain::products::{Product, ProductType};
use souk_domain::time::{DAY, Timestamp};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::borrow::Cow;

/// One run of an asset or one request of an endpoint, as it is recorded. Its JSON is in the charge log, see `teller/bookings.rs`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    pub id: ExecutionId,
    /// Who asked, and pays if anyone does.
    pub company: CompanyId,
    pub seller: CompanyId,
    pub product: Product,
    pub purchase: Option<PurchaseId>,
    pub price: Option<PriceId>,
    /// In the log by the name that it had when only keys could ask.
    #[serde(rename = "key")]
    pub actor: Actor,
    pub request: RequestId,
    pub outcome: Outcome,
    pub billing: Billing,
    /// Rows and bytes of the released result.
    pub rows: i64,
    pub bytes: i64,
    pub started_at: Timestamp,
    pub duration_us: i64,
}

/// A run as it is counted: what its record would say of it, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    pub company: &'a CompanyId,
    pub seller: &'a CompanyId,
    pub product: &'a Product,
    pub outcome: &'a Outcome,
    pub rows: i64,
    pub started_at: Timestamp,
    pub duration_us: i64,
}

impl Ended<'_> {
    pub fn of(run: &Run) -> Ended<'_> {
        Ended {
            company: &run.company,
            seller: &run.seller,
            product: &run.product,
            outcome: &run.outcome,
            rows: run.rows,
            started_at: run.started_at,
            duration_us: run.duration_us,
        }
    }
}

/// What a failure's `blame` is when it says nothing of what was called: it was for what the caller sent, or for this host's own reasons.
const EXCUSES: [&str; 2] = ["caller", "host"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Succeeded,
    /// The public error code, and who is to blame (`source`, `connector`, `host`, `caller`).
    Failed {
        code: Cow<'static, str>,
        blame: Cow<'static, str>,
    },
}

/// Why a run costs something, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Billing {
    Charged,
    /// A call by the seller itself.
    Owner,
    Preview,
    Test,
    /// A page beyond the last row.
    Empty,
    /// A page whose rows the caller has already, as the source said.
    NotModified,
    /// The active price is zero.
    FreeProduct,
    /// It failed, so it costs nothing.
    Failed,
}

impl Billing {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Charged => "charged",
            Self::Owner => "owner",
            Self::Preview => "preview",
            Self::Test => "test",
            Self::Empty => "empty",
            Self::NotModified => "not_modified",
            Self::FreeProduct => "free",
            Self::Failed => "failed",
        }
    }
}

/// A run with what it cost.
#[derive(Debug, Clone)]
pub(crate) struct Row<'a> {
    pub run: &'a Run,
    pub transaction: Option<&'a TransactionId>,
    pub credits: Credits,
}

static INSERT: Bulk = Bulk::new(
    "INSERT INTO executions (id, company_id, seller_id, product_type, product_id, purchase_id, price_id, transaction_id,
                             api_key_id, request_id, status, billing, error_code, blame, credits, rows_returned, bytes_returned,
                             started_at, duration_us)
     SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, column12,
            column13, column14, column15, column16, column17, column18, column19",
    19,
    "WHERE column1 IS NOT NULL",
);

pub(crate) fn insert(script: &mut Script, rows: &[Row<'_>]) {
    script.add(&INSERT, rows, |values, row| {
        let run = row.map(|row| row.run);
        let (status, code, blame) = match run.map(|run| &run.outcome) {
            None => (None, None, None),
            Some(Outcome::Succeeded) => (Some("succeeded"), None, None),
            Some(Outcome::Failed { code, blame }) => {
                (Some("failed"), Some(&**code), Some(&**blame))
            }
        };
        values
            .text(run.map(|run| run.id.as_str()))
            .text(run.map(|run| run.company.as_str()))
            .text(run.map(|run| run.seller.as_str()))
            .text(run.map(|run| run.product.product_type().as_str()))
            .text(run.map(|run| run.product.id()))
            .text(
                run.and_then(|run| run.purchase.as_ref())
                    .map(PurchaseId::as_str),
            )
            .text(run.and_then(|run| run.price.as_ref()).map(PriceId::as_str))
            .text(
                row.and_then(|row| row.transaction)
                    .map(TransactionId::as_str),
            )
            .text(run.map(|run| run.actor.as_str()))
            .text(run.map(|run| run.request.as_str()))
            .text(status)
            .text(run.map(|run| run.billing.as_str()))
            .text(code)
            .text(blame)
            .number(row.map(|row| row.credits.get()))
            .number(run.map(|run| run.rows))
            .number(run.map(|run| run.bytes))
            .number(run.map(|run| run.started_at.micros()))
            .number(run.map(|run| run.duration_us));
    });
}

/// What a product was used by one caller on one day.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct DayKey {
    pub company: CompanyId,
    /// Midnight UTC.
    pub day: i64,
    pub product_id: String,
    pub product_type: &'static str,
    pub seller: CompanyId,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DayCounts {
    pub succeeded: i64,
    pub failed: i64,
    /// Of the failed ones, those that say nothing of what was called.
    pub excused: i64,
    pub credits: i64,
    pub rows: i64,
    pub duration_us: i64,
}

impl DayKey {
    pub(crate) fn of(run: &Run) -> Self {
        Self {
            company: run.company.clone(),
            day: run.started_at.day_start().micros(),
            product_id: run.product.id().to_owned(),
            product_type: run.product.product_type().as_str(),
            seller: run.seller.clone(),
        }
    }
}

impl DayCounts {
    pub(crate) fn add_run(&mut self, ended: &Ended<'_>, credits: Credits) {
        match ended.outcome {
            Outcome::Succeeded => self.succeeded += 1,
            Outcome::Failed { blame, .. } => {
                self.failed += 1;
                self.excused += i64::from(EXCUSES.contains(&&**blame));
            }
        }
        self.credits += credits.get();
        self.rows += ended.rows;
        self.duration_us += ended.duration_us;
    }

    pub(crate) fn add(&mut self, other: &DayCounts) {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.excused += other.excused;
        self.credits += other.credits;
        self.rows += other.rows;
        self.duration_us += other.duration_us;
    }
}

static ADD_DAYS: Bulk = Bulk::new(
    "INSERT INTO usage_days (company_id, day, product_id, product_type, seller_id, succeeded, failed, excused, credits, rows_returned, duration_us)
     SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11",
    11,
    "WHERE column1 IS NOT NULL
     ON CONFLICT (company_id, day, product_id) DO UPDATE
     SET succeeded = usage_days.succeeded + excluded.succeeded,
         failed = usage_days.failed + excluded.failed,
         excused = usage_days.excused + excluded.excused,
         credits = usage_days.credits + excluded.credits,
         rows_returned = usage_days.rows_returned + excluded.rows_returned,
         duration_us = usage_days.duration_us + excluded.duration_us",
);

/// Adds counts. `days` has no key twice and is sorted, so that hosts which share a store lock rows in one order.
pub(crate) fn add_days(script: &mut Script, days: &[(DayKey, DayCounts)]) {
    script.add(&ADD_DAYS, days, |values, row| {
        let (key, counts) = (row.map(|row| &row.0), row.map(|row| &row.1));
        values
            .text(key.map(|key| key.company.as_str()))
            .number(key.map(|key| key.day))
            .text(key.map(|key| key.product_id.as_str()))
            .text(key.map(|key| key.product_type))
            .text(key.map(|key| key.seller.as_str()))
            .number(counts.map(|counts| counts.succeeded))
            .number(counts.map(|counts| counts.failed))
            .number(counts.map(|counts| counts.excused))
            .number(counts.map(|counts| counts.credits))
            .number(counts.map(|counts| counts.rows))
            .number(counts.map(|counts| counts.duration_us));
    });
}

/// What a company used in the last 30 UTC dates, today included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecentUse {
    pub executions: i64,
    pub endpoint_requests: i64,
    /// Less what was refunded on these dates, which may have been charged before them: then it may be below zero.
    pub spent_credits: i64,
}

pub async fn recent_use(
    db: &mut AnyConnection,
    company: &CompanyId,
    now: Timestamp,
) -> Result<RecentUse, StoreError> {
    let from = now.day_start().before(DAY * 29);
    let rows = sqlx::query(
        "SELECT product_type, CAST(SUM(succeeded) AS BIGINT) AS runs, CAST(SUM(credits) AS BIGINT) AS credits
         FROM usage_days
         WHERE company_id = $1 AND day >= $2
         GROUP BY product_type",
    )
    .bind(company.as_str())
    .bind(from.micros())
    .fetch_all(&mut *db)
    .await?;
    let mut recent = RecentUse {
        spent_credits: -refunded_since(db, company, from).await?,
        ..RecentUse::default()
    };
    for row in &rows {
        let runs = row.number("runs")?;
        match ProductType::parse(&row.text("product_type")?) {
            Some(ProductType::Asset) => recent.executions += runs,
            Some(ProductType::Endpoint) => recent.endpoint_requests += runs,
            None => return Err(corrupt("product_type", "unknown")),
        }
        recent.spent_credits += row.number("credits")?;
    }
    Ok(recent)
}

/// Credits that a buyer was given back.
async fn refunded_since(
    db: &mut AnyConnection,
    company: &CompanyId,
    from: Timestamp,
) -> Result<i64, StoreError> {
    sqlx::query(
        "SELECT CAST(COALESCE(SUM(amount_credits), 0) AS BIGINT) AS credits
         FROM transactions
         WHERE company_id = $1 AND type = 'refund' AND created_at >= $2",
    )
    .bind(company.as_str())
    .bind(from.micros())
    .fetch_one(db)
    .await?
    .number("credits")
}

/// A recorded run, as read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub id: ExecutionId,
    pub company_id: CompanyId,
    pub seller_id: CompanyId,
    pub product_type: String,
    pub product_id: String,
    pub purchase_id: Option<PurchaseId>,
    pub transaction_id: Option<TransactionId>,
    pub actor: Option<Actor>,
    pub request_id: Option<RequestId>,
    /// `succeeded` or `failed`.
    pub status: String,
    pub billing: String,
    pub error_code: Option<String>,
    pub blame: Option<String>,
    pub credits: i64,
    pub rows: i64,
    pub bytes: i64,
    pub started_at: Timestamp,
    pub duration_us: i64,
}

/// A run that the company made or sold.
pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &ExecutionId,
) -> Result<Option<Execution>, StoreError> {
    let row = sqlx::query(
        "SELECT id, company_id, seller_id, product_type, product_id, purchase_id, transaction_id, api_key_id, request_id, status,
                billing, error_code, blame, credits, rows_returned, bytes_returned, started_at, duration_us
         FROM executions
         WHERE id = $1 AND (company_id = $2 OR seller_id = $2)",
    )
    .bind(id.as_str())
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

pub(crate) fn from_row(row: &AnyRow) -> Result<Execution, StoreError> {
    Ok(Execution {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        seller_id: row.id("seller_id")?,
        product_type: row.text("product_type")?,
        product_id: row.text("product_id")?,
        purchase_id: row.id_opt("purchase_id")?,
        transaction_id: row.id_opt("transaction_id")?,
        actor: row.id_opt("api_key_id")?,
        request_id: row.id_opt("request_id")?,
        status: row.text("status")?,
        billing: row.text("billing")?,
        error_code: row.text_opt("error_code")?,
        blame: row.text_opt("blame")?,
        credits: row.number("credits")?,
        rows: row.number("rows_returned")?,
        bytes: row.number("bytes_returned")?,
        started_at: row.time("started_at")?,
        duration_us: row.number("duration_us")?,
    })
}
