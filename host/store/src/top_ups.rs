//! Top-ups: credits that a company buys. The row says how far the payment is; the ledger says whether the credits are there.
//!
//! Both change in one transaction, and the booking carries the top-up's id as its external id, which is unique: a top-up is credited once,
//! whoever says that its money has come, and however often.

use crate::db::Write;
use crate::error::StoreError;
use crate::events::{self, Event};
use crate::fields::{Fields, corrupt};
use crate::ledger::{self, Account, Entry, Transaction, TransactionType};
use crate::lists::{List, Listed, Part, Values};
use serde_json::json;
use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, TopUpId};
use souk_domain::money::Credits;
use souk_domain::time::Timestamp;
use souk_domain::webhooks::EventType;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopUpStatus {
    Pending,
    Settled,
    Failed,
}

impl TopUpStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Settled => "settled",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "pending" => Some(Self::Pending),
            "settled" => Some(Self::Settled),
            "failed" => Some(Self::Failed),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopUp {
    pub id: TopUpId,
    pub company_id: CompanyId,
    pub credits: Credits,
    /// Who collects the money.
    pub provider: String,
    pub payment_method: Option<String>,
    pub status: TopUpStatus,
    /// The provider's name for the payment.
    pub provider_reference: Option<String>,
    pub checkout_url: Option<String>,
    pub failure_reason: Option<String>,
    /// What proves that the money came.
    pub reference: Option<String>,
    pub created_at: Timestamp,
    pub settled_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct NewTopUp<'a> {
    pub id: &'a TopUpId,
    pub company: &'a CompanyId,
    pub credits: Credits,
    pub provider: &'a str,
    pub payment_method: Option<&'a str>,
    pub actor: &'a Actor,
    /// Whose `Idempotency-Key` it is begun under, and which.
    pub idempotency_key: Option<&'a str>,
}

macro_rules! columns {
    () => {
        "id, company_id, credits, provider, payment_method, status, provider_reference, checkout_url, failure_reason, reference,
         created_at, settled_at"
    };
}

pub async fn insert(
    write: &mut Write,
    new: &NewTopUp<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO top_ups (id, company_id, credits, provider, payment_method, status, api_key_id, created_at, idempotency_key)
         VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7, $8)",
    )
    .bind(new.id.as_str())
    .bind(new.company.as_str())
    .bind(new.credits.get())
    .bind(new.provider)
    .bind(new.payment_method)
    .bind(new.actor.as_str())
    .bind(now.micros())
    .bind(new.idempotency_key)
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// What a company began under an `Idempotency-Key` after `since`, and has neither failed nor waits for another provider than this: the request
/// that began it may have died before its answer was kept.
pub async fn begun_under(
    db: &mut AnyConnection,
    company: &CompanyId,
    idempotency_key: &str,
    provider: &str,
    since: Timestamp,
) -> Result<Option<TopUp>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM top_ups
         WHERE company_id = $1 AND idempotency_key = $2 AND created_at > $4
           AND (status = 'settled' OR (status = 'pending' AND provider = $3))
         ORDER BY created_at DESC
         LIMIT 1"
    ))
    .bind(company.as_str())
    .bind(idempotency_key)
    .bind(provider)
    .bind(since.micros())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// Notes where the company pays. The payment may have arrived already.
pub async fn set_checkout(
    write: &mut Write,
    id: &TopUpId,
    provider_reference: &str,
    checkout_url: Option<&str>,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE top_ups SET provider_reference = $2, checkout_url = $3 WHERE id = $1")
        .bind(id.as_str())
        .bind(provider_reference)
        .bind(checkout_url)
        .execute(&mut **write)
        .await?;
    Ok(())
}

/// Credits a top-up whose money has come. `None`: it was settled before (or does not exist), and nothing changed.
///
/// One that had failed is settled too: money that comes late is the buyer's all the same.
pub async fn settle(
    write: &mut Write,
    id: &TopUpId,
    reference: &str,
    actor: Option<&Actor>,
    now: Timestamp,
) -> Result<Option<TopUp>, StoreError> {
    let settled = sqlx::query(
        "UPDATE top_ups
         SET status = 'settled', settled_at = $2, reference = $3, failure_reason = NULL
         WHERE id = $1 AND status <> 'settled'",
    )
    .bind(id.as_str())
    .bind(now.micros())
    .bind(reference)
    .execute(&mut **write)
    .await?;
    if settled.rows_affected() == 0 {
        return Ok(None);
    }
    let top_up = find(write, id).await?.ok_or(StoreError::NotFound)?;
    let entry = Entry {
        from: Account::Cash,
        to: Account::Buyer(top_up.company_id.clone()),
        amount: top_up.credits.cents(),
    };
    let booking = Transaction {
        actor: actor.cloned(),
        external_id: Some(format!("top-up:{id}")),
        description: Some(format!("top-up {id}")),
        ..Transaction::new(
            TransactionType::TopUp,
            top_up.company_id.clone(),
            top_up.credits.get(),
            top_up.credits.cents(),
            now,
        )
    };
    ledger::append(write, booking, &[entry]).await?;
    events::emit(write, &[told(&top_up, now)]).await?;
    Ok(Some(top_up))
}

/// Notes that a payment will not come. Changes nothing that is settled.
pub async fn fail(write: &mut Write, id: &TopUpId, reason: &str) -> Result<bool, StoreError> {
    let failed = sqlx::query(
        "UPDATE top_ups SET status = 'failed', failure_reason = $2 WHERE id = $1 AND status = 'pending'",
    )
    .bind(id.as_str())
    .bind(reason)
    .execute(&mut **write)
    .await?;
    Ok(failed.rows_affected() == 1)
}

/// Of whatever company: for staff and for providers' events, which name no company.
pub async fn find(db: &mut AnyConnection, id: &TopUpId) -> Result<Option<TopUp>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM top_ups WHERE id = $1"
    ))
    .bind(id.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &TopUpId,
) -> Result<Option<TopUp>, StoreError> {
    let found = find(db, id).await?;
    Ok(found.filter(|top_up| top_up.company_id == *company))
}

static LIST: List = List::new(
    columns!(),
    "FROM top_ups WHERE company_id = $1",
    "created_at DESC, id",
    1,
);

/// A company's top-ups, newest first.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    part: Part,
) -> Result<Listed<TopUp>, StoreError> {
    let bind = |values: &mut Values| {
        values.text(Some(company.as_str()));
    };
    LIST.fetch(db, part, bind, from_row).await
}

static OF_ALL: List = List::new(
    columns!(),
    "FROM top_ups WHERE (CAST($1 AS TEXT) IS NULL OR status = $1)",
    "created_at DESC, id",
    1,
);

/// The top-ups of all companies, newest first, for staff.
pub async fn list_all(
    db: &mut AnyConnection,
    status: Option<TopUpStatus>,
    part: Part,
) -> Result<Listed<TopUp>, StoreError> {
    let bind = |values: &mut Values| {
        values.text(status.map(TopUpStatus::as_str));
    };
    OF_ALL.fetch(db, part, bind, from_row).await
}

/// What the company is told.
fn told(top_up: &TopUp, now: Timestamp) -> Event {
    Event {
        company: top_up.company_id.clone(),
        kind: EventType::TopUpSettled,
        at: now,
        data: json!({
            "company_id": top_up.company_id,
            "top_up_id": top_up.id,
            "credits": top_up.credits,
            "amount_usd": events::usd(top_up.credits.cents()),
            "provider": top_up.provider,
        }),
    }
}

fn from_row(row: &AnyRow) -> Result<TopUp, StoreError> {
    let status = row.text("status")?;
    Ok(TopUp {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        credits: row.credits("credits")?,
        provider: row.text("provider")?,
        payment_method: row.text_opt("payment_method")?,
        status: TopUpStatus::parse(&status).ok_or_else(|| corrupt("status", status))?,
        provider_reference: row.text_opt("provider_reference")?,
        checkout_url: row.text_opt("checkout_url")?,
        failure_reason: row.text_opt("failure_reason")?,
        reference: row.text_opt("reference")?,
        created_at: row.time("created_at")?,
        settled_at: row.time_opt("settled_at")?,
    })
}
