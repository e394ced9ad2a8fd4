//! Deliveries: the outbox of events. Written by the transactions that cause them (`events`), attempted by whichever host claims one first.
//!
//! A claim is a lease: it keeps other hosts away until it ends, and a host that dies while it holds one is followed by another. Refuses to
//! decide what an answer means or when to try again. Start reading at [`due`], [`claim`] and [`record`].

use crate::audit;
use crate::bulk::Bulk;
use crate::db::{Db, Write};
use crate::error::StoreError;
use crate::fields::{Fields, corrupt, without_nul};
use crate::leases::{self, Claim};
use crate::lists::{List, Listed, Part, Values};
use souk_domain::ids::{CompanyId, DeliveryId, WebhookId};
use souk_domain::time::Timestamp;
use souk_domain::webhooks::EventType;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::time::Duration;

/// Finished deliveries are kept this long, to be looked at and sent again …
pub const KEPT_FOR: Duration = Duration::from_secs(30 * 86_400);
/// … and of each webhook so many, the newest.
pub const KEPT_MAX: i64 = 1_000;
/// Deliveries that one transaction deletes or gives up: some 25 ms of the largest.
const AT_ONCE: i64 = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStatus {
    Pending,
    Delivered,
    Failed,
}

impl DeliveryStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Delivered, Self::Failed]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub webhook_id: WebhookId,
    pub event_type: String,
    /// JSON, as it is sent.
    pub body: String,
    pub status: DeliveryStatus,
    /// Begun, the one in flight included.
    pub attempts: i64,
    /// Of one that is pending.
    pub next_attempt_at: Option<Timestamp>,
    pub last_attempt_at: Option<Timestamp>,
    /// What the receiver answered last.
    pub response_code: Option<i64>,
    /// Why the last attempt failed.
    pub error: Option<String>,
    pub delivered_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempted {
    Delivered,
    /// Failed; to be tried again then.
    Again(Timestamp),
    /// Failed for good.
    GivenUp,
}

macro_rules! columns {
    () => {
        "id, webhook_id, event_type, body, status, attempts, next_attempt_at, last_attempt_at, response_code, error, delivered_at,
         created_at"
    };
}

/// A delivery that may be attempted now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub id: DeliveryId,
    pub webhook: WebhookId,
    /// Nobody's: the webhook was deleted.
    pub company: Option<CompanyId>,
}

/// Attempts of one webhook that [`due`] finds at once.
pub const DUE_PER_WEBHOOK_MAX: i64 = 4;

/// One of a webhook's that are due, by its place among them.
macro_rules! in_place {
    () => {
        "(SELECT own.id
          FROM webhook_deliveries AS own
          WHERE own.webhook_id = receivers.webhook_id AND own.status = 'pending' AND own.next_attempt_at <= $1
            AND (own.lease_until IS NULL OR own.lease_until <= $1)
          ORDER BY own.next_attempt_at, own.id
          LIMIT 1 OFFSET "
    };
}

// Of a webhook for which thousands wait, only those few are looked at: what is joined or numbered instead would be all of them. A subquery for each
// place is one by an index on both stores, and a place that is not written out cannot be the offset of one.
const DUE: &str = concat!(
    "WITH receivers (webhook_id) AS MATERIALIZED (
         SELECT DISTINCT webhook_id FROM webhook_deliveries WHERE status = 'pending' AND next_attempt_at <= $1
     ),
     chosen (webhook_id, place, id) AS MATERIALIZED (
         SELECT webhook_id, 0, ",
    in_place!(),
    "0) FROM receivers WHERE $2 > 0
         UNION ALL
         SELECT webhook_id, 1, ",
    in_place!(),
    "1) FROM receivers WHERE $2 > 1
         UNION ALL
         SELECT webhook_id, 2, ",
    in_place!(),
    "2) FROM receivers WHERE $2 > 2
         UNION ALL
         SELECT webhook_id, 3, ",
    in_place!(),
    "3) FROM receivers WHERE $2 > 3
     ),
     waiting (id, webhook_id, place, company_id, next_attempt_at) AS MATERIALIZED (
         SELECT id, webhook_id, place,
                (SELECT webhooks.company_id FROM webhooks WHERE webhooks.id = chosen.webhook_id),
                (SELECT own.next_attempt_at FROM webhook_deliveries AS own WHERE own.id = chosen.id)
         FROM chosen
         WHERE id IS NOT NULL
     )
     SELECT id, webhook_id, company_id
     FROM (SELECT id, webhook_id, company_id, next_attempt_at,
                  ROW_NUMBER() OVER (PARTITION BY COALESCE(company_id, webhook_id) ORDER BY place, next_attempt_at, id) AS turn
           FROM waiting) AS in_turn
     WHERE turn <= $3
     ORDER BY turn, next_attempt_at, id
     LIMIT $4"
);

/// What may be attempted now: companies by turns, of each its webhooks by turns, and of each of these the most overdue first; at most so many of one
/// webhook (of [`DUE_PER_WEBHOOK_MAX`]) and of one company. Whoever has much waiting does not keep others away, nor makes it dear to look.
pub async fn due(
    db: &mut AnyConnection,
    now: Timestamp,
    per_webhook: i64,
    per_company: i64,
    limit: i64,
) -> Result<Vec<Due>, StoreError> {
    let rows = sqlx::query(DUE)
        .bind(now.micros())
        .bind(per_webhook)
        .bind(per_company)
        .bind(limit)
        .fetch_all(db)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Due {
                id: row.id("id")?,
                webhook: row.id("webhook_id")?,
                company: row.id_opt("company_id")?,
            })
        })
        .collect()
}

/// How many deliveries wait, and since when the first of them should have been attempted.
pub async fn waiting(db: &mut AnyConnection) -> Result<(i64, Option<Timestamp>), StoreError> {
    let row = sqlx::query(
        "SELECT COUNT(*) AS waiting, MIN(next_attempt_at) AS first
         FROM webhook_deliveries
         WHERE status = 'pending'",
    )
    .fetch_one(db)
    .await?;
    Ok((row.number("waiting")?, row.time_opt("first")?))
}

/// Takes a delivery that is due, again if need be, which is no other attempt. `None`: somebody else was first, or it is not due any more.
pub async fn claim(
    write: &mut Write,
    id: &DeliveryId,
    claim: &Claim<'_>,
) -> Result<Option<Delivery>, StoreError> {
    const SQL: &str = concat!(
        "UPDATE webhook_deliveries
         SET claimed_by = $2, lease_until = $4, last_attempt_at = $3,
             attempts = attempts + CASE WHEN claimed_by = $2 AND lease_until > $3 THEN 0 ELSE 1 END
         WHERE id = $1 AND status = 'pending' AND next_attempt_at <= $3 AND (lease_until IS NULL OR lease_until <= $3 OR claimed_by = $2)
         RETURNING ",
        columns!()
    );
    leases::claim(write, SQL, id.as_str(), claim, from_row).await
}

/// Writes down what became of an attempt, and lets go of the claim. `false`: the claim had ended, and somebody else has it or has had it.
pub async fn record(
    write: &mut Write,
    id: &DeliveryId,
    claimant: &str,
    attempted: &Attempted,
    response_code: Option<u16>,
    error: Option<&str>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let (status, next) = match attempted {
        Attempted::Delivered => (DeliveryStatus::Delivered, None),
        Attempted::Again(at) => (DeliveryStatus::Pending, Some(at.micros())),
        Attempted::GivenUp => (DeliveryStatus::Failed, None),
    };
    let recorded = sqlx::query(
        "UPDATE webhook_deliveries
         SET status = $3, next_attempt_at = $4, response_code = $5, error = $6, delivered_at = $7, claimed_by = NULL, lease_until = NULL
         WHERE id = $1 AND claimed_by = $2 AND status = 'pending'",
    )
    .bind(id.as_str())
    .bind(claimant)
    .bind(status.as_str())
    .bind(next)
    .bind(response_code.map(i64::from))
    .bind(error.map(without_nul))
    .bind((*attempted == Attempted::Delivered).then(|| now.micros()))
    .execute(&mut **write)
    .await?;
    Ok(recorded.rows_affected() == 1)
}

/// Gives up what waits for a webhook that is disabled: all that waits for most. `true`: there may be more, since thousands would keep charges
/// waiting; whoever claims one of those gives it up when it is due, if nobody calls this again before. What is in flight ends by itself.
pub async fn give_up(
    write: &mut Write,
    webhook: &WebhookId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // On a shared store somebody may claim one meanwhile: then it is looked at again, and left.
    let given_up = sqlx::query(
        "UPDATE webhook_deliveries
         SET status = 'failed', next_attempt_at = NULL, error = 'the webhook was disabled', claimed_by = NULL, lease_until = NULL
         WHERE id IN (SELECT id
                      FROM webhook_deliveries
                      WHERE webhook_id = $1 AND status = 'pending' AND (lease_until IS NULL OR lease_until <= $2)
                      LIMIT $3)
           AND status = 'pending'
           AND (lease_until IS NULL OR lease_until <= $2)
           AND NOT EXISTS (SELECT 1 FROM webhooks WHERE webhooks.id = $1 AND webhooks.is_active = 1)",
    )
    .bind(webhook.as_str())
    .bind(now.micros())
    .bind(AT_ONCE)
    .execute(&mut **write)
    .await?;
    Ok(given_up.rows_affected() >= AT_ONCE as u64)
}

/// Deletes a webhook's deliveries: all of most webhooks. What is left of thousands, which would keep charges waiting, goes as those do whose webhook is
/// gone, or with its age.
pub(crate) async fn delete_of(write: &mut Write, webhook: &WebhookId) -> Result<(), StoreError> {
    sqlx::query(
        "DELETE FROM webhook_deliveries
         WHERE id IN (SELECT id FROM webhook_deliveries WHERE webhook_id = $1 LIMIT $2)",
    )
    .bind(webhook.as_str())
    .bind(AT_ONCE)
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Deletes a delivery whose webhook is gone.
pub async fn delete(write: &mut Write, id: &DeliveryId) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM webhook_deliveries WHERE id = $1")
        .bind(id.as_str())
        .execute(&mut **write)
        .await?;
    Ok(())
}

/// Puts a delivery on its way again, now, whether it waits, has failed or was delivered. One that is in flight stays as it is.
///
/// Attempts go on being counted: one that has used up its retries gets this one.
pub async fn retry(
    write: &mut Write,
    webhook: &WebhookId,
    id: &DeliveryId,
    now: Timestamp,
) -> Result<Option<Delivery>, StoreError> {
    let retried = sqlx::query(
        "UPDATE webhook_deliveries
         SET status = 'pending', next_attempt_at = $3, delivered_at = NULL, claimed_by = NULL, lease_until = NULL
         WHERE id = $1 AND webhook_id = $2 AND (lease_until IS NULL OR lease_until <= $3)",
    )
    .bind(id.as_str())
    .bind(webhook.as_str())
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    if retried.rows_affected() > 0 {
        let noted = serde_json::json!({"webhook_id": webhook, "status": "pending"});
        let subject = ("webhook_delivery", id.as_str());
        audit::note(
            write,
            None,
            subject,
            audit::Change::Changed,
            None,
            Some(noted),
        )
        .await?;
    }
    write.touch(crate::Topic::Delivery, webhook);
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM webhook_deliveries WHERE id = $1 AND webhook_id = $2"
    ))
    .bind(id.as_str())
    .bind(webhook.as_str())
    .fetch_optional(&mut **write)
    .await?;
    row.as_ref().map(from_row).transpose()
}

static LIST: List = List::new(
    columns!(),
    "FROM webhook_deliveries
     WHERE webhook_id = $1
       AND (CAST($2 AS TEXT) IS NULL OR status = $2)
       AND (CAST($3 AS TEXT) IS NULL OR event_type = $3)",
    "created_at DESC, id DESC",
    3,
);

/// A webhook's deliveries, newest first.
pub async fn list(
    db: &mut AnyConnection,
    webhook: &WebhookId,
    status: Option<DeliveryStatus>,
    event_type: Option<EventType>,
    part: Part,
) -> Result<Listed<Delivery>, StoreError> {
    let bind = |values: &mut Values| {
        values
            .text(Some(webhook.as_str()))
            .text(status.map(DeliveryStatus::as_str))
            .text(event_type.map(EventType::as_str));
    };
    LIST.fetch(db, part, bind, from_row).await
}

/// Ends all claims: of a host that has its store to itself and has just started, so that nobody holds one.
pub async fn release_all(write: &mut Write) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE webhook_deliveries SET claimed_by = NULL, lease_until = NULL WHERE status = 'pending' AND lease_until IS NOT NULL",
    )
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Forgets finished deliveries that are old, and of each webhook those beyond the newest [`KEPT_MAX`]. They are found while others write, and
/// deleted some at a time, so that nobody waits long.
pub async fn sweep(db: &Db, now: Timestamp) -> Result<u64, StoreError> {
    let mut read = db.read().await?;
    let rows = sqlx::query(
        "SELECT webhook_id
         FROM webhook_deliveries
         WHERE status <> 'pending'
         GROUP BY webhook_id
         HAVING COUNT(*) > $1 OR MIN(created_at) < $2",
    )
    .bind(KEPT_MAX)
    .bind(now.before(KEPT_FOR).micros())
    .fetch_all(&mut *read)
    .await?;
    drop(read);
    let mut swept = 0;
    for row in &rows {
        let webhook = row.text("webhook_id")?;
        loop {
            let over = over(&mut *db.read().await?, &webhook, now).await?;
            swept += db.write(async |write| forget(write, &over).await).await?;
            if over.len() < AT_ONCE as usize {
                break;
            }
        }
    }
    Ok(swept)
}

/// Some of a webhook's finished deliveries that are kept no longer.
async fn over(
    db: &mut AnyConnection,
    webhook: &str,
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let rows = sqlx::query(
        "SELECT id
         FROM webhook_deliveries
         WHERE webhook_id = $1
           AND status <> 'pending'
           AND (created_at < $2
                OR id NOT IN (SELECT id FROM webhook_deliveries
                              WHERE webhook_id = $1 AND status <> 'pending'
                              ORDER BY created_at DESC, id DESC
                              LIMIT $3))
         LIMIT $4",
    )
    .bind(webhook)
    .bind(now.before(KEPT_FOR).micros())
    .bind(KEPT_MAX)
    .bind(AT_ONCE)
    .fetch_all(db)
    .await?;
    rows.iter().map(|row| row.text("id")).collect()
}

/// What has been put on its way again meanwhile stays.
static FORGET: Bulk = Bulk::new(
    "DELETE FROM webhook_deliveries WHERE status <> 'pending' AND id IN (SELECT v.column1",
    1,
    "WHERE v.column1 IS NOT NULL)",
);

async fn forget(write: &mut Write, deliveries: &[String]) -> Result<u64, StoreError> {
    FORGET
        .run(write, deliveries, |values, id| {
            values.text(id.map(String::as_str));
        })
        .await
}

fn from_row(row: &AnyRow) -> Result<Delivery, StoreError> {
    let status = row.text("status")?;
    Ok(Delivery {
        id: row.id("id")?,
        webhook_id: row.id("webhook_id")?,
        event_type: row.text("event_type")?,
        body: row.text("body")?,
        status: DeliveryStatus::parse(&status).ok_or_else(|| corrupt("status", status))?,
        attempts: row.number("attempts")?,
        next_attempt_at: row.time_opt("next_attempt_at")?,
        last_attempt_at: row.time_opt("last_attempt_at")?,
        response_code: row.number_opt("response_code")?,
        error: row.text_opt("error")?,
        delivered_at: row.time_opt("delivered_at")?,
        created_at: row.time("created_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::Plans;

    /// Of each webhook the first few that are due are found in the order of an index, however many wait behind them.
    #[tokio::test]
    async fn what_is_due_is_found_by_indexes() {
        let steps = Plans::open().await.steps(DUE).await;
        let has = |begin: &str, index: &str| {
            let fits = |step: &&String| step.starts_with(begin) && step.contains(index);
            steps.iter().filter(fits).count()
        };
        let of_webhook = has(
            "SEARCH own ",
            "webhook_deliveries_waiting (webhook_id=? AND next_attempt_at<?)",
        );
        assert_eq!(of_webhook, DUE_PER_WEBHOOK_MAX as usize, "{steps:#?}");
        // All of them, for which webhooks they are: not their rows, which have the bodies.
        let all = "USING COVERING INDEX webhook_deliveries_";
        let of_all = has("SCAN webhook_deliveries ", all) + has("SEARCH webhook_deliveries ", all);
        assert_eq!(of_all, 1, "{steps:#?}");
        // Nothing but what was chosen is sorted or numbered.
        assert_eq!(
            has("SCAN own", "") + has("SCAN deliveries", ""),
            0,
            "{steps:#?}"
        );
    }
}
