//! Answers kept for requests that carry an `Idempotency-Key`: claimed before the work, completed with its answer, released on failure.
//!
//! A claim that nobody completes (its host died) lapses at `expires_at`, like a hold.

use crate::error::StoreError;
use crate::{Fields, Write};
use souk_domain::ids::CompanyId;
use souk_domain::time::Timestamp;

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
pub struct Answer {
    pub status: i64,
    pub location: Option<String>,
    pub body: String,
}

#[derive(Debug)]
pub enum Claim {
    Granted(Ticket),
    /// The same request is being executed.
    InFlight,
    /// The key was used for another request.
    Reused,
    Done(Answer),
}

/// Claims `scope` for the request with this fingerprint until `lapses_at`.
pub async fn claim(
    write: &mut Write,
    scope: Scope,
    fingerprint: &str,
    now: Timestamp,
    lapses_at: Timestamp,
) -> Result<Claim, StoreError> {
    sqlx::query(
        "DELETE FROM idempotency
         WHERE company_id = $1 AND route = $2 AND idempotency_key = $3 AND expires_at <= $4",
    )
    .bind(scope.company.as_str())
    .bind(scope.route)
    .bind(&scope.key)
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    let ticket = Ticket {
        scope,
        id: souk_domain::ids::RequestId::generate_at(now).to_string(),
    };
    let inserted = sqlx::query(
        "INSERT INTO idempotency (company_id, route, idempotency_key, fingerprint, ticket, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (company_id, route, idempotency_key) DO NOTHING",
    )
    .bind(ticket.scope.company.as_str())
    .bind(ticket.scope.route)
    .bind(&ticket.scope.key)
    .bind(fingerprint)
    .bind(&ticket.id)
    .bind(now.micros())
    .bind(lapses_at.micros())
    .execute(&mut **write)
    .await?;
    if inserted.rows_affected() == 1 {
        return Ok(Claim::Granted(ticket));
    }
    let row = sqlx::query(
        "SELECT fingerprint, status, location, body
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
        Some(status) => Ok(Claim::Done(Answer {
            status,
            location: row.text_opt("location")?,
            body: row.text_opt("body")?.unwrap_or_default(),
        })),
    }
}

/// Keeps the answer of a claimed request until `expires_at`. For charged runs the teller does this, in the transaction of the charge.
pub async fn complete(
    write: &mut Write,
    ticket: &Ticket,
    answer: &Answer,
    expires_at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE idempotency
         SET status = $1, location = $2, body = $3, expires_at = $4
         WHERE company_id = $5 AND route = $6 AND idempotency_key = $7 AND ticket = $8",
    )
    .bind(answer.status)
    .bind(answer.location.as_deref())
    .bind(&answer.body)
    .bind(expires_at.micros())
    .bind(ticket.scope.company.as_str())
    .bind(ticket.scope.route)
    .bind(&ticket.scope.key)
    .bind(&ticket.id)
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Gives a claim up: the request failed, and the same key may execute anew.
pub async fn release(write: &mut Write, ticket: &Ticket) -> Result<(), StoreError> {
    sqlx::query(
        "DELETE FROM idempotency
         WHERE company_id = $1 AND route = $2 AND idempotency_key = $3 AND ticket = $4 AND status IS NULL",
    )
    .bind(ticket.scope.company.as_str())
    .bind(ticket.scope.route)
    .bind(&ticket.scope.key)
    .bind(&ticket.id)
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Forgets answers whose time is over.
pub async fn sweep(write: &mut Write, now: Timestamp) -> Result<u64, StoreError> {
    let swept = sqlx::query("DELETE FROM idempotency WHERE expires_at <= $1")
        .bind(now.micros())
        .execute(&mut **write)
        .await?;
    Ok(swept.rows_affected())
}

/// Gives up every claim in flight: when the only host of a store starts, their runs are gone.
pub async fn release_all(write: &mut Write) -> Result<u64, StoreError> {
    let released = sqlx::query("DELETE FROM idempotency WHERE status IS NULL")
        .execute(&mut **write)
        .await?;
    Ok(released.rows_affected())
}
