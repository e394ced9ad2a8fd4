//! Answers that are kept for a retry with the same `Idempotency-Key`, in the commit of their charge.

use super::IdempotencyEntry;
use super::poster::Item;
use crate::bulk::Bulk;
use crate::db::Write;
use crate::error::StoreError;
use crate::fields::Fields;
use std::collections::HashSet;

static KEEP_ANSWERS: Bulk = Bulk::new(
    "UPDATE idempotency
     SET status = v.column5, location = v.column6, body = v.column7, expires_at = v.column8",
    8,
    "WHERE idempotency.company_id = v.column1
       AND idempotency.route = v.column2
       AND idempotency.idempotency_key = v.column3
       AND idempotency.ticket = v.column4
     RETURNING idempotency.ticket",
);

/// Keeps the answers of requests with an idempotency key. Returns the positions of those whose claim is gone.
pub(super) async fn keep_answers(
    write: &mut Write,
    batch: &[Item],
) -> Result<HashSet<usize>, StoreError> {
    let entries: Vec<(usize, &IdempotencyEntry)> = batch
        .iter()
        .enumerate()
        .filter_map(|(index, item)| Some((index, item.receipt.idempotency.as_ref()?)))
        .collect();
    if entries.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = KEEP_ANSWERS
        .fetch(write, &entries, |values, row| {
            let entry = row.map(|(_, entry)| entry);
            values
                .text(entry.map(|entry| entry.company.as_str()))
                .text(entry.map(|entry| entry.route.as_str()))
                .text(entry.map(|entry| entry.key.as_str()))
                .text(entry.map(|entry| entry.ticket.as_str()))
                .number(entry.map(|entry| entry.status))
                .text(entry.and_then(|entry| entry.location.as_deref()))
                .text(entry.map(|entry| entry.body.as_str()))
                .number(entry.map(|entry| entry.expires_at.micros()));
        })
        .await?;
    let mut kept = HashSet::with_capacity(rows.len());
    for row in &rows {
        kept.insert(row.text("ticket")?);
    }
    let lost = entries
        .iter()
        .filter(|(_, entry)| !kept.contains(&entry.ticket));
    Ok(lost.map(|(index, _)| *index).collect())
}

/// Takes back the answers of runs that are not paid for because their hold is gone. They are few.
pub(super) async fn forget_answers(
    write: &mut Write,
    batch: &[Item],
    expired: &HashSet<String>,
) -> Result<(), StoreError> {
    for item in batch {
        let Some(entry) = &item.receipt.idempotency else {
            continue;
        };
        if expired.contains(item.hold.execution.as_str()) {
            sqlx::query(
                "DELETE FROM idempotency
                 WHERE company_id = $1 AND route = $2 AND idempotency_key = $3 AND ticket = $4",
            )
            .bind(entry.company.as_str())
            .bind(&entry.route)
            .bind(&entry.key)
            .bind(&entry.ticket)
            .execute(&mut **write)
            .await?;
        }
    }
    Ok(())
}
