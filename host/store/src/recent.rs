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

/// Of each seller, those that succeeded and those that failed each. Some more are kept for a while.
pub const KEPT_MAX: i64 = 1_000;
/// Of one seller's that succeeded, between two flushes.
const OF_SELLER_MAX: usize = 16;
/// Of all sellers' that succeeded, between two flushes; of a seller who had none the first is noted all the same.
const AT_ONCE_MAX: usize = 512;
/// Rows in one transaction: charges wait for the same writer.
const ROWS_PER_COMMIT: usize = 128;
/// What is too old is looked for when a seller has so many new ones,
const PRUNED_AFTER: usize = 100;
/// of so many sellers at once.
const PRUNED_AT_ONCE: usize = 8;
/// Sellers whose new ones are counted.
const SELLERS_MAX: usize = 100_000;

/// Runs that were seen since the last flush. Failed ones are as many as have a record, which is bounded where those are kept.
#[derive(Default)]
pub(crate) struct Noted {
    sellers: HashMap<CompanyId, Notes>,
    succeeded: usize,
}

#[derive(Default)]
struct Notes {
    runs: Vec<Note>,
    succeeded: usize,
}

struct Note {
    id: ExecutionId,
    started_at: Timestamp,
    failed: bool,
}

impl Noted {
    pub(crate) fn add(&mut self, run: &Run) {
        let failed = run.outcome != Outcome::Succeeded;
        let note = || Note {
            id: run.id.clone(),
            started_at: run.started_at,
            failed,
        };
        self.note(&run.seller, failed, note);
    }

    /// What another thread has noted, within the same bounds.
    pub(crate) fn join(&mut self, other: Noted) {
        for (seller, notes) in other.sellers {
            for note in notes.runs {
                self.note(&seller, note.failed, || note);
            }
        }
    }

    fn note(&mut self, seller: &CompanyId, failed: bool, note: impl FnOnce() -> Note) {
        let notes = match self.sellers.get_mut(seller) {
            Some(notes) => notes,
            None => self.sellers.entry(seller.clone()).or_default(),
        };
        if !failed {
            let has_room = notes.succeeded < OF_SELLER_MAX && self.succeeded < AT_ONCE_MAX;
            if notes.succeeded > 0 && !has_room {
                return;
            }
            notes.succeeded += 1;
            self.succeeded += 1;
        }
        notes.runs.push(note());
    }
}

/// How many new ones sellers have since what is too old was deleted.
#[derive(Default)]
pub(crate) struct Unpruned(HashMap<CompanyId, usize>);

// A run whose charge fails was noted before it, and is noted again, as one that failed, with its record.
static INSERT: Bulk = Bulk::new(
    "INSERT INTO recent_executions (seller_id, started_at, execution_id, failed)
     SELECT column1, column2, column3, column4",
    4,
    "WHERE column1 IS NOT NULL
     ON CONFLICT (seller_id, started_at, execution_id) DO UPDATE SET failed = excluded.failed",
);

/// Writes what was noted, and deletes what became too old.
pub(crate) async fn write(
    db: &Db,
    noted: Noted,
    unpruned: &mut Unpruned,
) -> Result<(), StoreError> {
    let mut rows: Vec<(&CompanyId, &Note)> = Vec::new();
    for (seller, notes) in &noted.sellers {
        // No statement changes a row twice.
        let mut last: HashMap<&ExecutionId, &Note> = HashMap::new();
        for note in &notes.runs {
            let known = last.entry(&note.id).or_insert(note);
            if note.failed {
                *known = note;
            }
        }
        rows.extend(last.into_values().map(|note| (seller, note)));
    }
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
    let Unpruned(counts) = unpruned;
    for (seller, notes) in noted.sellers {
        if counts.len() < SELLERS_MAX || counts.contains_key(&seller) {
            *counts.entry(seller).or_default() += notes.runs.len();
        }
    }
    let due = counts.iter().filter(|(_, count)| **count >= PRUNED_AFTER);
    let due = due.map(|(seller, _)| seller.clone()).take(PRUNED_AT_ONCE);
    let due: Vec<CompanyId> = due.collect();
    if due.is_empty() {
        return Ok(());
    }
    db.write(async |write| {
        for seller in &due {
            prune(write, seller).await?;
        }
        Ok::<_, StoreError>(())
    })
    .await?;
    for seller in &due {
        counts.remove(seller);
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
