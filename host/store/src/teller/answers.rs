//! Answers that are kept for a retry with the same `Idempotency-Key`, in the commit of their charge.

use super::item::Item;
use super::posting::IdempotencyEntry;
use crate::bulk::Bulk;
use crate::db::Write;
use crate::error::StoreError;
use crate::fields::Fields;
use crate::idempotency::{CLAIM_BYTES, GivenBack};
use souk_domain::ids::ExecutionId;
use std::collections::HashSet;

static KEEP_ANSWERS: Bulk = Bulk::new(
    "UPDATE idempotency
     SET status = v.column5, location = v.column6, body = v.column7, execution_id = v.column8, expires_at = v.column9,
         bytes = v.column10, headers = v.column11",
    11,
    "WHERE idempotency.company_id = v.column1
       AND idempotency.route = v.column2
       AND idempotency.idempotency_key = v.column3
       AND idempotency.ticket = v.column4
     RETURNING idempotency.ticket",
);

/// Keeps the answers of requests with an idempotency key. Returns the positions of those whose claim is gone, and what the others do not
/// need of what their claims reserved: to be applied last, since others lock accounts before that.
pub(super) async fn keep_answers(
    write: &mut Write,
    batch: &[Item],
) -> Result<(HashSet<usize>, GivenBack), StoreError> {
    let entries: Vec<(usize, &IdempotencyEntry)> = batch
        .iter()
        .enumerate()
        .filter_map(|(index, item)| Some((index, item.receipt.idempotency.as_ref()?)))
        .collect();
    if entries.is_empty() {
        return Ok(Default::default());
    }
    let rows = KEEP_ANSWERS
        .fetch(write, &entries, |values, row| {
            let entry = row.map(|(_, entry)| entry);
            let scope = entry.map(|entry| &entry.ticket.scope);
            let answer = entry.map(|entry| &entry.answer);
            let execution = answer.and_then(|answer| answer.execution.as_ref());
            values
                .text(scope.map(|scope| scope.company.as_str()))
                .text(scope.map(|scope| scope.route))
                .text(scope.map(|scope| scope.key.as_str()))
                .text(entry.map(|entry| entry.ticket.id.as_str()))
                .number(answer.map(|answer| answer.status))
                .text(answer.and_then(|answer| answer.location.as_deref()))
                .text(answer.and_then(|answer| answer.body.as_deref()))
                .text(execution.map(ExecutionId::as_str))
                .number(entry.map(|entry| entry.expires_at.micros()))
                .number(answer.map(|answer| answer.bytes()))
                .text(answer.and_then(|answer| answer.headers.as_deref()));
        })
        .await?;
    let mut kept = HashSet::with_capacity(rows.len());
    for row in &rows {
        kept.insert(row.text("ticket")?);
    }
    let mut lost = HashSet::new();
    let mut given_back = GivenBack::default();
    for (index, entry) in entries {
        if kept.contains(&entry.ticket.id) {
            let bytes = CLAIM_BYTES - entry.answer.bytes();
            given_back.add(&entry.ticket.scope.company, 0, bytes);
        } else {
            lost.insert(index);
        }
    }
    Ok((lost, given_back))
}

/// Takes back the answers of runs that are not paid for because their hold is gone. They are few.
pub(super) async fn forget_answers(
    write: &mut Write,
    batch: &[Item],
    expired: &HashSet<String>,
    given_back: &mut GivenBack,
) -> Result<(), StoreError> {
    for item in batch {
        let Some(entry) = &item.receipt.idempotency else {
            continue;
        };
        if expired.contains(item.hold.execution.as_str()) {
            let scope = &entry.ticket.scope;
            let forgotten = sqlx::query(
                "DELETE FROM idempotency
                 WHERE company_id = $1 AND route = $2 AND idempotency_key = $3 AND ticket = $4
                 RETURNING bytes",
            )
            .bind(scope.company.as_str())
            .bind(scope.route)
            .bind(&scope.key)
            .bind(&entry.ticket.id)
            .fetch_optional(&mut **write)
            .await?;
            if let Some(row) = forgotten {
                given_back.add(&scope.company, 1, row.number("bytes")?);
            }
        }
    }
    Ok(())
}
