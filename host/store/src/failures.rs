//! Why runs failed, for the seller of what was run: the newest of each seller, with what was said about it.
//!
//! Written behind the requests' backs with the records of failed runs (`teller/recorder.rs`); a seller whose products fail without end
//! keeps [`KEPT_MAX`] of them, and costs nobody else a place.

use crate::bulk::{Bulk, Script};
use crate::db::Write;
use crate::error::StoreError;
use crate::executions::{Outcome, Run};
use crate::fields::{Fields, without_nul};
use crate::lists::{List, Listed, Part, Values};
use souk_domain::ids::{CompanyId, ExecutionId, RequestId};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::BTreeSet;

/// Of each seller.
pub const KEPT_MAX: i64 = 1_000;
/// A message is a sentence.
const MESSAGE_CHARS_MAX: usize = 500;
/// The beginning of what a source or a connector has said: a panic's message, a statement's error.
const DETAIL_CHARS_MAX: usize = 2_000;

/// What was said about a run that failed.
#[derive(Debug, Clone)]
pub struct Reason {
    /// The kind of fault; absent where the request itself was wrong.
    pub reason: Option<&'static str>,
    /// The connector's own stable word for it.
    pub code: Option<String>,
    /// SQLSTATE or the like.
    pub source_code: Option<String>,
    /// As the caller was told.
    pub message: String,
    /// The source's or the connector's own words.
    pub detail: Option<String>,
}

/// A failed run, as its seller reads it.
#[derive(Debug, Clone)]
pub struct FailedExecution {
    pub execution_id: ExecutionId,
    /// Who asked.
    pub company_id: CompanyId,
    pub product_type: String,
    pub product_id: String,
    pub request_id: RequestId,
    pub class: String,
    pub blame: String,
    pub reason: Option<String>,
    pub code: Option<String>,
    pub source_code: Option<String>,
    pub message: String,
    pub detail: Option<String>,
    pub started_at: Timestamp,
    pub duration_us: i64,
}

static INSERT: Bulk = Bulk::new(
    "INSERT INTO failed_executions (execution_id, seller_id, company_id, product_type, product_id, request_id, class, reason, blame, code,
                                    source_code, message, detail, started_at, duration_us)
     SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, column12, column13,
            column14, column15",
    15,
    "WHERE column1 IS NOT NULL",
);

pub(crate) fn insert(script: &mut Script, failed: &[(&Run, &Reason)]) {
    script.add(&INSERT, failed, |values, row| {
        let (run, reason) = (row.map(|row| row.0), row.map(|row| row.1));
        let (class, blame) = match run.map(|run| &run.outcome) {
            Some(Outcome::Failed { code, blame }) => (Some(&**code), Some(&**blame)),
            _ => (None, None),
        };
        let cut = |text: &str, chars: usize| match text.char_indices().nth(chars) {
            Some((end, _)) => without_nul(&text[..end]),
            None => without_nul(text),
        };
        let code = reason.and_then(|reason| reason.code.as_deref());
        let code = code.map(|code| cut(code, MESSAGE_CHARS_MAX));
        let message = reason.map(|reason| cut(&reason.message, MESSAGE_CHARS_MAX));
        let detail = reason.and_then(|reason| reason.detail.as_deref());
        let detail = detail.map(|detail| cut(detail, DETAIL_CHARS_MAX));
        let source_code = reason.and_then(|reason| reason.source_code.as_deref());
        let source_code = source_code.map(|code| cut(code, MESSAGE_CHARS_MAX));
        values
            .text(run.map(|run| run.id.as_str()))
            .text(run.map(|run| run.seller.as_str()))
            .text(run.map(|run| run.company.as_str()))
            .text(run.map(|run| run.product.product_type().as_str()))
            .text(run.map(|run| run.product.id()))
            .text(run.map(|run| run.request.as_str()))
            .text(class)
            .text(reason.and_then(|reason| reason.reason))
            .text(blame)
            .text(code.as_deref())
            .text(source_code.as_deref())
            .text(message.as_deref())
            .text(detail.as_deref())
            .number(run.map(|run| run.started_at.micros()))
            .number(run.map(|run| run.duration_us));
    });
}

/// Deletes what each of these sellers has beyond its newest [`KEPT_MAX`].
pub(crate) async fn prune(
    write: &mut Write,
    sellers: &BTreeSet<&CompanyId>,
) -> Result<(), StoreError> {
    for seller in sellers {
        sqlx::query(
            "DELETE FROM failed_executions
             WHERE seller_id = $1
               AND started_at <= (SELECT started_at
                                  FROM failed_executions
                                  WHERE seller_id = $1
                                  ORDER BY started_at DESC, execution_id DESC
                                  LIMIT 1 OFFSET $2)",
        )
        .bind(seller.as_str())
        .bind(KEPT_MAX)
        .execute(&mut **write)
        .await?;
    }
    Ok(())
}

/// Which failures are asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    pub product: Option<&'a str>,
    pub request: Option<&'a str>,
    pub blame: Option<&'a str>,
}

static LIST: List = List::new(
    "execution_id, company_id, product_type, product_id, request_id, class, reason, blame, code, source_code, message, detail,
     started_at, duration_us",
    "FROM failed_executions
     WHERE seller_id = $1
       AND (CAST($2 AS TEXT) IS NULL OR product_id = $2)
       AND (CAST($3 AS TEXT) IS NULL OR request_id = $3)
       AND (CAST($4 AS TEXT) IS NULL OR blame = $4)",
    "started_at DESC, execution_id DESC",
    4,
);

/// The failed runs of a seller's products, newest first.
pub async fn list(
    db: &mut AnyConnection,
    seller: &CompanyId,
    filter: Filter<'_>,
    part: Part,
) -> Result<Listed<FailedExecution>, StoreError> {
    let bind = |values: &mut Values| {
        values
            .text(Some(seller.as_str()))
            .text(filter.product)
            .text(filter.request)
            .text(filter.blame);
    };
    LIST.fetch(db, part, bind, from_row).await
}

fn from_row(row: &AnyRow) -> Result<FailedExecution, StoreError> {
    Ok(FailedExecution {
        execution_id: row.id("execution_id")?,
        company_id: row.id("company_id")?,
        product_type: row.text("product_type")?,
        product_id: row.text("product_id")?,
        request_id: row.id("request_id")?,
        class: row.text("class")?,
        blame: row.text("blame")?,
        reason: row.text_opt("reason")?,
        code: row.text_opt("code")?,
        source_code: row.text_opt("source_code")?,
        message: row.text("message")?,
        detail: row.text_opt("detail")?,
        started_at: row.time("started_at")?,
        duration_us: row.number("duration_us")?,
    })
}
