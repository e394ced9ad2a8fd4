//! Events of payment providers that were acted upon, so that one that is delivered again does nothing.

use crate::db::Write;
use crate::error::StoreError;
use souk_domain::ids::TopUpId;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;

/// Notes an event in the transaction that acts upon it. `false`: it was noted before, and nothing is to be done.
///
/// On a shared store the second of two deliveries at once waits here for the first one's commit.
pub async fn note(
    write: &mut Write,
    provider: &str,
    event: &str,
    kind: &str,
    top_up: &TopUpId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let noted = sqlx::query(
        "INSERT INTO payment_events (provider, event_id, type, top_up_id, received_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (provider, event_id) DO NOTHING",
    )
    .bind(provider)
    .bind(event)
    .bind(kind)
    .bind(top_up.as_str())
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(noted.rows_affected() == 1)
}

/// Whether an event about this top-up was noted.
pub async fn is_noted(
    db: &mut AnyConnection,
    provider: &str,
    event: &str,
    top_up: &TopUpId,
) -> Result<bool, StoreError> {
    let noted = sqlx::query(
        "SELECT event_id
         FROM payment_events
         WHERE provider = $1 AND event_id = $2 AND top_up_id = $3",
    )
    .bind(provider)
    .bind(event)
    .bind(top_up.as_str())
    .fetch_optional(db)
    .await?;
    Ok(noted.is_some())
}
