//! The newest runs of each seller's products, those that succeeded and those that failed.
//!
//! What a run was is in its own row ([`crate::executions`]), and why it failed in [`crate::failures`]. Here stands only which ones are a seller's
//! newest, written behind the requests' backs and at a bounded pace ([`Noted`]): an index by seller over all runs would cost each charge 2 us.

use crate::bulk::{Bulk, Script, Style};
use crate::db::{Db, Write};
use crate::error::StoreError;
use crate::executions::{self, Execution, Outcome, Run};
use crate::fields::Fields;
use crate::lists::{List, Listed, Part, Values};
use hashbrown::HashMap;
use souk_domain::ids::{CompanyId, ExecutionId};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::HashSet;

/// Of each seller, those that succeeded and those that failed each. Some more are kept for a while.
pub const KEPT_MAX: i64 = 1_000;
/// Of one seller that succeeded, between two flushes: it shall not take others' places.
const OF_SELLER_MAX: usize = 16;
/// Of all sellers between two flushes.
const AT_ONCE_MAX: usize = 512;
/// Rows in one transaction: charges wait for the same writer.
const ROWS_PER_COMMIT: usize = 128;
/// What is too old is looked for now and then only.
const FLUSHES_PER_PRUNE: u32 = 64;

/// Runs that were seen since the last flush.
#[derive(Default)]
pub(crate) struct Noted {
    sellers: HashMap<CompanyId, Vec<Note>>,
    count: usize,
}

struct Note {
    id: ExecutionId,
    started_at: Timestamp,
    failed: bool,
}

impl Noted {
    pub(crate) fn add(&mut self, run: &Run) {
        if self.count >= AT_ONCE_MAX {
            return;
        }
        let notes = match self.sellers.get_mut(&run.seller) {
            Some(notes) => notes,
            None => self.sellers.entry(run.seller.clone()).or_default(),
        };
        let failed = run.outcome != Outcome::Succeeded;
        // Failed ones are bounded where their records are, and are what somebody looks for.
        if failed || notes.len() < OF_SELLER_MAX {
            self.count += 1;
            notes.push(Note {
                id: run.id.clone(),
                started_at: run.started_at,
                failed,
            });
        }
    }
}

/// Sellers that may have more than is kept.
#[derive(Default)]
pub(crate) struct Unpruned {
    sellers: HashSet<CompanyId>,
    flushes: u32,
}

static INSERT: Bulk = Bulk::new(
    "INSERT INTO recent_executions (seller_id, started_at, execution_id, failed)
     SELECT column1, column2, column3, column4",
    4,
    "WHERE column1 IS NOT NULL",
);

/// Writes what was noted; now and then it deletes what became too old.
pub(crate) async fn write(
    db: &Db,
    noted: Noted,
    unpruned: &mut Unpruned,
) -> Result<(), StoreError> {
    let notes = noted.sellers.iter();
    let rows: Vec<(&CompanyId, &Note)> = notes
        .flat_map(|(seller, notes)| notes.iter().map(move |note| (seller, note)))
        .collect();
    for rows in rows.chunks(ROWS_PER_COMMIT) {
        db.write(async |write| {
            let mut script = Script::new(Style::Separate);
            script.add(&INSERT, rows, |values, row| {
                values
                    .text(row.map(|(seller, _)| seller.as_str()))
                    .number(row.map(|(_, note)| note.started_at.micros()))
                    .text(row.map(|(_, note)| note.id.as_str()))
                    .number(row.map(|(_, note)| i64::from(note.failed)));
            });
            script.run(write).await
        })
        .await?;
    }
    unpruned.sellers.extend(noted.sellers.into_keys());
    unpruned.flushes += 1;
    if unpruned.flushes >= FLUSHES_PER_PRUNE {
        unpruned.flushes = 0;
        for seller in std::mem::take(&mut unpruned.sellers) {
            db.write(async |write| prune(write, &seller).await).await?;
        }
    }
    Ok(())
}

async fn prune(write: &mut Write, seller: &CompanyId) -> Result<(), StoreError> {
    for failed in [0_i64, 1] {
        sqlx::query(
            "DELETE FROM recent_executions
             WHERE seller_id = $1
               AND failed = $2
               AND started_at <= (SELECT started_at
                                  FROM recent_executions
                                  WHERE seller_id = $1 AND failed = $2
                                  ORDER BY started_at DESC, execution_id DESC
                                  LIMIT 1 OFFSET $3)",
        )
        .bind(seller.as_str())
        .bind(failed)
        .bind(KEPT_MAX)
        .execute(&mut **write)
        .await?;
    }
    Ok(())
}

/// A run as its seller reads it: what it was, and what was said if it failed.
#[derive(Debug, Clone)]
pub struct RecentExecution {
    pub execution: Execution,
    /// The kind of fault.
    pub reason: Option<String>,
    /// As the caller was told.
    pub message: Option<String>,
    /// The source's or the connector's own words.
    pub detail: Option<String>,
}

/// Which runs are asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    pub product: Option<&'a str>,
    pub request: Option<&'a str>,
    /// `succeeded` or `failed`.
    pub status: Option<&'a str>,
}

static LIST: List = List::new(
    "e.id, e.company_id, e.seller_id, e.product_type, e.product_id, e.purchase_id, e.transaction_id, e.api_key_id, e.request_id, e.status,
     e.billing, e.error_code, e.blame, e.credits, e.rows_returned, e.bytes_returned, e.started_at, e.duration_us, f.reason, f.message, f.detail",
    "FROM recent_executions r
     JOIN executions e ON e.id = r.execution_id
     LEFT JOIN failed_executions f ON f.execution_id = r.execution_id
     WHERE r.seller_id = $1
       AND (CAST($2 AS TEXT) IS NULL OR e.product_id = $2)
       AND (CAST($3 AS TEXT) IS NULL OR e.request_id = $3)
       AND (CAST($4 AS TEXT) IS NULL OR e.status = $4)",
    "r.started_at DESC, r.execution_id DESC",
    4,
);

/// The newest runs of a seller's products, newest first.
pub async fn list(
    db: &mut AnyConnection,
    seller: &CompanyId,
    filter: Filter<'_>,
    part: Part,
) -> Result<Listed<RecentExecution>, StoreError> {
    let bind = |values: &mut Values| {
        values
            .text(Some(seller.as_str()))
            .text(filter.product)
            .text(filter.request)
            .text(filter.status);
    };
    LIST.fetch(db, part, bind, from_row).await
}

fn from_row(row: &AnyRow) -> Result<RecentExecution, StoreError> {
    Ok(RecentExecution {
        execution: executions::from_row(row)?,
        reason: row.text_opt("reason")?,
        message: row.text_opt("message")?,
        detail: row.text_opt("detail")?,
    })
}
