//! Answers kept for requests that carry an `Idempotency-Key`: claimed before the work, completed with its answer, released on failure.
//!
//! A claim that nobody completes (its host died) lapses at `expires_at`, like a hold; whoever works for longer than that renews it.
//!
//! What a company's answers take is bounded, and counted in its row of `kept_answers`, always last in a transaction (after the answers' own
//! rows, and after accounts) so that no two wait for each other: a claim reserves the largest answer, completing it gives back what the answer does not need.

use crate::bulk::Bulk;
use crate::error::StoreError;
use crate::{Fields, Write};
use souk_domain::ids::{CompanyId, ExecutionId};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use std::collections::BTreeMap;

/// Larger answers are not kept, only that the request was executed: pages and charts are large, and are read again at their source.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;
/// What a record takes beside its answer: its keys, its index entries, its share of a page.
pub const RECORD_BYTES: i64 = 512;
/// What a claim reserves.
pub const CLAIM_BYTES: i64 = RECORD_BYTES + ANSWER_BYTES_MAX as i64;
/// What a company's kept answers may take together, if the operator does not say otherwise: some 120,000 answers of usual size a day, on
/// the disk that the ledger is on.
pub const COMPANY_BYTES_MAX: i64 = 128 << 20;
/// Answers that one transaction forgets: others want to write, too.
const SWEPT_AT_ONCE: i64 = 500;

/// Whose retry this is: one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub company: CompanyId,
    /// The operation's route template.
    pub route: &'static str,
    pub key: String,
}

/// The right to execute a request and to complete its claim. `id` tells it from a later claim of the same scope.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub scope: Scope,
    pub id: String,
}

/// An answer as it is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptAnswer {
    pub status: i64,
    pub location: Option<String>,
    /// Other headers, as whoever answers has written them down.
    pub headers: Option<String>,
    /// `None`: it was larger than [`ANSWER_BYTES_MAX`], or no text.
    pub body: Option<String>,
    /// The run that made an answer that is not kept.
    pub execution: Option<ExecutionId>,
}

impl KeptAnswer {
    /// What is kept of an answer.
    pub fn of(
        status: u16,
        location: Option<String>,
        body: &[u8],
        execution: Option<&ExecutionId>,
    ) -> KeptAnswer {
        let is_kept = body.len() <= ANSWER_BYTES_MAX;
        KeptAnswer {
            status: i64::from(status),
            location,
            headers: None,
            body: is_kept.then(|| String::from_utf8_lossy(body).into_owned()),
            execution: execution.filter(|_| !is_kept).cloned(),
        }
    }

    /// An answer of which only its run is known later.
    pub fn of_run(status: u16, execution: &ExecutionId) -> KeptAnswer {
        KeptAnswer {
            status: i64::from(status),
            location: None,
            headers: None,
            body: None,
            execution: Some(execution.clone()),
        }
    }

    /// With these headers, where its body is kept.
    pub fn with_headers(self, headers: Option<String>) -> KeptAnswer {
        KeptAnswer {
            headers: headers.filter(|_| self.body.is_some()),
            ..self
        }
    }

    /// What its record takes.
    pub fn bytes(&self) -> i64 {
        let texts = [&self.body, &self.location, &self.headers];
        let texts = texts.into_iter().flatten();
        let bytes: usize = texts.map(String::len).sum();
        RECORD_BYTES + i64::try_from(bytes).unwrap_or(i64::MAX / 2)
    }
}

#[derive(Debug)]
pub enum Claim {
    Granted(Ticket),
    /// The same request is being executed.
    InFlight,
    /// The key was used for another request.
    Reused,
    Done(KeptAnswer),
    /// The company's answers take all that they may. Roll back: the claim was written.
    Full,
}

/// Claims `scope` for the request with this fingerprint until `lapses_at`. All answers of a company take at most `bytes_max`.
pub async fn claim(
    write: &mut Write,
    scope: Scope,
    fingerprint: &str,
    now: Timestamp,
    lapses_at: Timestamp,
    bytes_max: i64,
) -> Result<Claim, StoreError> {
    let lapsed = sqlx::query(
        "DELETE FROM idempotency
         WHERE company_id = $1 AND route = $2 AND idempotency_key = $3 AND expires_at <= $4
         RETURNING bytes",
    )
    .bind(scope.company.as_str())
    .bind(scope.route)
    .bind(&scope.key)
    .bind(now.micros())
    .fetch_optional(&mut **write)
    .await?;
    let ticket = Ticket {
        scope,
        id: souk_domain::ids::RequestId::generate_at(now).to_string(),
    };
    let inserted = sqlx::query(
        "INSERT INTO idempotency (company_id, route, idempotency_key, fingerprint, ticket, created_at, expires_at, bytes)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (company_id, route, idempotency_key) DO NOTHING",
    )
    .bind(ticket.scope.company.as_str())
    .bind(ticket.scope.route)
    .bind(&ticket.scope.key)
    .bind(fingerprint)
    .bind(&ticket.id)
    .bind(now.micros())
    .bind(lapses_at.micros())
    .bind(CLAIM_BYTES)
    .execute(&mut **write)
    .await?;
    if let Some(row) = lapsed {
        give_back(write, &ticket.scope.company, 1, row.number("bytes")?).await?;
    }
    if inserted.rows_affected() == 1 {
        return match reserve(write, &ticket.scope.company, bytes_max).await? {
            true => Ok(Claim::Granted(ticket)),
            false => Ok(Claim::Full),
        };
    }
    let row = sqlx::query(
        "SELECT fingerprint, status, location, headers, body, execution_id
         FROM idempotency
         WHERE company_id = $1 AND route = $2 AND idempotency_key = $3",
    )
    .bind(ticket.scope.company.as_str())
    .bind(ticket.scope.route)
    .bind(&ticket.scope.key)
    .fetch_optional(&mut **write)
    .await?;
    // Another host released it since the insertion met it: the next attempt will be granted.
    let Some(row) = row else {
        return Ok(Claim::InFlight);
    };
    if row.text("fingerprint")? != fingerprint {
        return Ok(Claim::Reused);
    }
    match row.number_opt("status")? {
        None => Ok(Claim::InFlight),
        Some(status) => Ok(Claim::Done(KeptAnswer {
            status,
            location: row.text_opt("location")?,
            headers: row.text_opt("headers")?,
            body: row.text_opt("body")?,
            execution: row.id_opt("execution_id")?,
        })),
    }
}

/// Counts a claim. False: there is no room for it.
async fn reserve(
    write: &mut Write,
    company: &CompanyId,
    bytes_max: i64,
) -> Result<bool, StoreError> {
    if bytes_max < CLAIM_BYTES {
        return Ok(false);
    }
    let counted = sqlx::query(
        "INSERT INTO kept_answers (company_id, records, bytes)
         VALUES ($1, 1, $2)
         ON CONFLICT (company_id) DO UPDATE
         SET records = kept_answers.records + 1, bytes = kept_answers.bytes + excluded.bytes
         WHERE kept_answers.bytes + excluded.bytes <= $3",
    )
    .bind(company.as_str())
    .bind(CLAIM_BYTES)
    .bind(bytes_max)
    .execute(&mut **write)
    .await?;
    Ok(counted.rows_affected() == 1)
}

/// Takes records and bytes off what a company's answers take.
async fn give_back(
    write: &mut Write,
    company: &CompanyId,
    records: i64,
    bytes: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE kept_answers SET records = records - $2, bytes = bytes - $3 WHERE company_id = $1",
    )
    .bind(company.as_str())
    .bind(records)
    .bind(bytes)
    .execute(&mut **write)
    .await?;
    Ok(())
}

static LOCK: Bulk = Bulk::new(
    "SELECT company_id FROM kept_answers WHERE company_id IN (SELECT column1",
    1,
    ") ORDER BY company_id FOR UPDATE",
);

static GIVE_BACK: Bulk = Bulk::new(
    "UPDATE kept_answers SET records = records - v.column2, bytes = bytes - v.column3",
    3,
    "WHERE kept_answers.company_id = v.column1",
);

/// What answers of several companies give back at once.
#[derive(Default)]
pub(crate) struct GivenBack(BTreeMap<CompanyId, (i64, i64)>);

impl GivenBack {
    pub(crate) fn add(&mut self, company: &CompanyId, records: i64, bytes: i64) {
        let sum = self.0.entry(company.clone()).or_default();
        sum.0 += records;
        sum.1 += bytes;
    }

    pub(crate) async fn apply(self, write: &mut Write) -> Result<(), StoreError> {
        let rows: Vec<_> = self.0.into_iter().collect();
        if rows.is_empty() {
            return Ok(());
        }
        if write.is_shared() {
            // In the order that everybody takes: an update of several rows has none of its own.
            LOCK.fetch(write, &rows, |values, row| {
                values.text(row.map(|(company, _)| company.as_str()));
            })
            .await?;
        }
        GIVE_BACK
            .run(write, &rows, |values, row| {
                values
                    .text(row.map(|(company, _)| company.as_str()))
                    .number(row.map(|(_, (records, _))| *records))
                    .number(row.map(|(_, (_, bytes))| *bytes));
            })
            .await?;
        Ok(())
    }
}

/// Keeps the answer of a claimed request until `expires_at`, in the transaction of what it answers: both happen, or neither. For charged
/// runs the teller does this. False: the claim has lapsed, and perhaps another request has taken it over.
pub async fn complete(
    write: &mut Write,
    ticket: &Ticket,
    answer: &KeptAnswer,
    expires_at: Timestamp,
) -> Result<bool, StoreError> {
    let completed = sqlx::query(
        "UPDATE idempotency
         SET status = $1, location = $2, body = $3, execution_id = $4, expires_at = $5, bytes = $6, headers = $11
         WHERE company_id = $7 AND route = $8 AND idempotency_key = $9 AND ticket = $10 AND status IS NULL",
    )
    .bind(answer.status)
    .bind(answer.location.as_deref())
    .bind(answer.body.as_deref())
    .bind(answer.execution.as_ref().map(ExecutionId::as_str))
    .bind(expires_at.micros())
    .bind(answer.bytes())
    .bind(ticket.scope.company.as_str())
    .bind(ticket.scope.route)
    .bind(&ticket.scope.key)
    .bind(&ticket.id)
    .bind(answer.headers.as_deref())
    .execute(&mut **write)
    .await?;
    if completed.rows_affected() == 0 {
        return Ok(false);
    }
    give_back(
        write,
        &ticket.scope.company,
        0,
        CLAIM_BYTES - answer.bytes(),
    )
    .await?;
    Ok(true)
}

/// Has a claim that is worked for lapse later.
pub async fn renew(
    write: &mut Write,
    ticket: &Ticket,
    lapses_at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE idempotency
         SET expires_at = $1
         WHERE company_id = $2 AND route = $3 AND idempotency_key = $4 AND ticket = $5 AND status IS NULL",
    )
    .bind(lapses_at.micros())
    .bind(ticket.scope.company.as_str())
    .bind(ticket.scope.route)
    .bind(&ticket.scope.key)
    .bind(&ticket.id)
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Gives a claim up: the request failed, or its answer need not be kept, and the same key may execute anew.
pub async fn release(write: &mut Write, ticket: &Ticket) -> Result<(), StoreError> {
    let released = sqlx::query(
        "DELETE FROM idempotency
         WHERE company_id = $1 AND route = $2 AND idempotency_key = $3 AND ticket = $4 AND status IS NULL
         RETURNING bytes",
    )
    .bind(ticket.scope.company.as_str())
    .bind(ticket.scope.route)
    .bind(&ticket.scope.key)
    .bind(&ticket.id)
    .fetch_optional(&mut **write)
    .await?;
    match released {
        Some(row) => give_back(write, &ticket.scope.company, 1, row.number("bytes")?).await,
        None => Ok(()),
    }
}

/// Gives up a claim whose commit was not answered, behind that commit if it is still on its way: a row is not seen before.
pub async fn take_back(write: &mut Write, ticket: &Ticket) -> Result<(), StoreError> {
    // Whoever inserts the same row waits for the one that was there first.
    let inserted = sqlx::query(
        "INSERT INTO idempotency (company_id, route, idempotency_key, fingerprint, ticket, created_at, expires_at, bytes)
         VALUES ($1, $2, $3, '', $4, 0, 0, 0)
         ON CONFLICT (company_id, route, idempotency_key) DO NOTHING",
    )
    .bind(ticket.scope.company.as_str())
    .bind(ticket.scope.route)
    .bind(&ticket.scope.key)
    .bind(&ticket.id)
    .execute(&mut **write)
    .await?;
    if inserted.rows_affected() == 0 {
        return release(write, ticket).await;
    }
    // It was not there, nor counted.
    sqlx::query(
        "DELETE FROM idempotency WHERE company_id = $1 AND route = $2 AND idempotency_key = $3 AND ticket = $4",
    )
    .bind(ticket.scope.company.as_str())
    .bind(ticket.scope.route)
    .bind(&ticket.scope.key)
    .bind(&ticket.id)
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Forgets answers whose time is over, some hundred at once. False: there are no more.
pub async fn sweep(write: &mut Write, now: Timestamp) -> Result<bool, StoreError> {
    let swept = sqlx::query(
        "DELETE FROM idempotency
         WHERE (company_id, route, idempotency_key) IN (
             SELECT company_id, route, idempotency_key FROM idempotency WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
         RETURNING company_id, bytes",
    )
    .bind(now.micros())
    .bind(SWEPT_AT_ONCE)
    .fetch_all(&mut **write)
    .await?;
    let mut given_back = GivenBack::default();
    for row in &swept {
        given_back.add(&row.id("company_id")?, 1, row.number("bytes")?);
    }
    given_back.apply(write).await?;
    Ok(!swept.is_empty())
}

/// Gives up every claim in flight: when the only host of a store starts, their runs are gone.
pub async fn release_all(write: &mut Write) -> Result<(), StoreError> {
    let released =
        sqlx::query("DELETE FROM idempotency WHERE status IS NULL RETURNING company_id, bytes")
            .fetch_all(&mut **write)
            .await?;
    let mut given_back = GivenBack::default();
    for row in &released {
        given_back.add(&row.id("company_id")?, 1, row.number("bytes")?);
    }
    given_back.apply(write).await
}

/// What kept answers take, claims in flight included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    pub records: i64,
    pub bytes: i64,
    /// Of the company whose answers take most.
    pub bytes_of_largest: i64,
}

/// Of all companies: for metrics. Reads a row for each company that ever sent an `Idempotency-Key`.
pub async fn kept_in_all(db: &mut AnyConnection) -> Result<Kept, StoreError> {
    let row = sqlx::query(
        "SELECT CAST(COALESCE(SUM(records), 0) AS BIGINT) AS records, CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes,
                CAST(COALESCE(MAX(bytes), 0) AS BIGINT) AS largest
         FROM kept_answers",
    )
    .fetch_one(db)
    .await?;
    Ok(Kept {
        records: row.number("records")?,
        bytes: row.number("bytes")?,
        bytes_of_largest: row.number("largest")?,
    })
}
