//! Payouts: earnings on their way to the seller, and where they go. The row says how far a payout is; the ledger says where the money is.
//!
//! Asking for one moves the money from payable to "in payout"; from there it goes out to cash, once, or back to payable, once. Destinations
//! pass through here sealed.

use crate::accounts;
use crate::db::Write;
use crate::error::StoreError;
use crate::events::{self, Event};
use crate::fields::{Fields, corrupt};
use crate::ledger::{self, Account, Entry, Transaction, TransactionType};
use crate::lists::{List, Listed, Part, Values};
use serde_json::json;
use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, PayoutId};
use souk_domain::money::UsdCents;
use souk_domain::time::Timestamp;
use souk_domain::webhooks::EventType;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

/// What a sealed destination belongs to, within its company. A payout keeps a copy of the method's.
pub const DESTINATION_SUBJECT: &str = "payout-method";

/// Where a seller wants its money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// `bank_account`, `paypal` or `stripe_connect`.
    pub kind: String,
    pub account_holder: String,
    pub sealed_destination: Vec<u8>,
    pub last4: String,
}

/// The method of a company, and when it was first and last set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMethod {
    pub method: Method,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayoutStatus {
    Requested,
    Processing,
    Paid,
    Failed,
    Cancelled,
}

impl PayoutStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Processing => "processing",
            Self::Paid => "paid",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::Requested,
            Self::Processing,
            Self::Paid,
            Self::Failed,
            Self::Cancelled,
        ]
        .into_iter()
        .find(|status| status.as_str() == text)
    }

    /// Whether the money has gone out or back.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Paid | Self::Failed | Self::Cancelled)
    }

    /// A payout that is under way cannot be cancelled any more, and what is final stays.
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Requested => !matches!(next, Self::Requested),
            Self::Processing => matches!(next, Self::Paid | Self::Failed),
            Self::Paid | Self::Failed | Self::Cancelled => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payout {
    pub id: PayoutId,
    pub company_id: CompanyId,
    pub amount: UsdCents,
    pub status: PayoutStatus,
    pub method: Method,
    pub failure_reason: Option<String>,
    /// What proves that it was paid.
    pub reference: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub paid_at: Option<Timestamp>,
}

/// Why no payout was made.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("less than the amount, or less than the minimum, is payable")]
    TooLittle { payable: UsdCents },
    #[error("there is no payout method")]
    NoMethod,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a payout did not change its state.
#[derive(Debug, thiserror::Error)]
pub enum AdvanceError {
    #[error("no such payout")]
    NotFound,
    #[error("a payout that is {} cannot become that", .0.as_str())]
    State(PayoutStatus),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub async fn set_method(
    write: &mut Write,
    company: &CompanyId,
    method: &Method,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO payout_methods (company_id, type, account_holder, destination, destination_last4, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $6)
         ON CONFLICT (company_id) DO UPDATE
         SET type = excluded.type, account_holder = excluded.account_holder, destination = excluded.destination,
             destination_last4 = excluded.destination_last4, updated_at = excluded.updated_at",
    )
    .bind(company.as_str())
    .bind(&method.kind)
    .bind(&method.account_holder)
    .bind(hex::encode(&method.sealed_destination))
    .bind(&method.last4)
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

pub async fn method(
    db: &mut AnyConnection,
    company: &CompanyId,
) -> Result<Option<KeptMethod>, StoreError> {
    let row = sqlx::query(
        "SELECT type, account_holder, destination, destination_last4, created_at, updated_at
         FROM payout_methods
         WHERE company_id = $1",
    )
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.map(|row| {
        Ok(KeptMethod {
            method: method_of(&row)?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
        })
    })
    .transpose()
}

/// Takes `amount` (or all there is) out of what is payable to a company, at least `minimum`.
///
/// Two requests at once cannot both have the same money: there is one writer, or the account is locked.
pub async fn request(
    write: &mut Write,
    company: &CompanyId,
    amount: Option<UsdCents>,
    minimum: UsdCents,
    actor: &Actor,
    now: Timestamp,
) -> Result<Payout, RequestError> {
    let kept = method(write, company)
        .await?
        .ok_or(RequestError::NoMethod)?;
    let payable_account = Account::SellerPayable(company.clone());
    if write.is_shared() {
        let all = vec![
            payable_account.clone(),
            Account::SellerInPayout(company.clone()),
        ];
        accounts::open_and_lock(write, all).await?;
    }
    let payable = ledger::balance(write, &payable_account).await?;
    let amount = amount.unwrap_or(payable);
    if amount > payable || amount < minimum {
        return Err(RequestError::TooLittle { payable });
    }
    let payout = Payout {
        id: PayoutId::generate(),
        company_id: company.clone(),
        amount,
        status: PayoutStatus::Requested,
        method: kept.method,
        failure_reason: None,
        reference: None,
        created_at: now,
        updated_at: now,
        paid_at: None,
    };
    insert(write, &payout, actor).await?;
    let entry = Entry {
        from: payable_account,
        to: Account::SellerInPayout(company.clone()),
        amount,
    };
    let booking = Transaction {
        actor: Some(actor.clone()),
        external_id: Some(format!("payout:{}", payout.id)),
        description: Some(format!("payout {}", payout.id)),
        ..Transaction::new(TransactionType::Payout, company.clone(), 0, amount, now)
    };
    ledger::append(write, booking, &[entry]).await?;
    Ok(payout)
}

async fn insert(write: &mut Write, payout: &Payout, actor: &Actor) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO payouts (id, company_id, amount_cents, status, type, account_holder, destination, destination_last4, api_key_id,
                              created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)",
    )
    .bind(payout.id.as_str())
    .bind(payout.company_id.as_str())
    .bind(payout.amount.get())
    .bind(payout.status.as_str())
    .bind(&payout.method.kind)
    .bind(&payout.method.account_holder)
    .bind(hex::encode(&payout.method.sealed_destination))
    .bind(&payout.method.last4)
    .bind(actor.as_str())
    .bind(payout.created_at.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Moves a payout on, and its money with it: out when it is paid, back when it failed or was cancelled.
pub async fn advance(
    write: &mut Write,
    id: &PayoutId,
    next: PayoutStatus,
    reference: Option<&str>,
    failure_reason: Option<&str>,
    actor: &Actor,
    now: Timestamp,
) -> Result<Payout, AdvanceError> {
    let before = find(write, id).await?.ok_or(AdvanceError::NotFound)?;
    if !before.status.may_become(next) {
        return Err(AdvanceError::State(before.status));
    }
    let changed = set_status(write, &before, next, reference, failure_reason, now).await?;
    let after = find(write, id).await?.ok_or(AdvanceError::NotFound)?;
    if !changed {
        return Err(AdvanceError::State(after.status));
    }
    if next.is_final() {
        book_end(write, &after, actor, now).await?;
        let event = ended(&after, now);
        events::emit(write, event.as_slice()).await?;
    }
    Ok(after)
}

/// `false`: the state is not what it was when `before` was read.
async fn set_status(
    write: &mut Write,
    before: &Payout,
    next: PayoutStatus,
    reference: Option<&str>,
    failure_reason: Option<&str>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let changed = sqlx::query(
        "UPDATE payouts
         SET status = $3, reference = COALESCE($4, reference), failure_reason = $5, updated_at = $6, paid_at = $7
         WHERE id = $1 AND status = $2",
    )
    .bind(before.id.as_str())
    .bind(before.status.as_str())
    .bind(next.as_str())
    .bind(reference)
    .bind(failure_reason)
    .bind(now.micros())
    .bind((next == PayoutStatus::Paid).then(|| now.micros()))
    .execute(&mut **write)
    .await?;
    Ok(changed.rows_affected() == 1)
}

async fn book_end(
    write: &mut Write,
    payout: &Payout,
    actor: &Actor,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (kind, to) = match payout.status {
        PayoutStatus::Paid => (TransactionType::PayoutPaid, Account::Cash),
        _ => (
            TransactionType::PayoutReturn,
            Account::SellerPayable(payout.company_id.clone()),
        ),
    };
    let entry = Entry {
        from: Account::SellerInPayout(payout.company_id.clone()),
        to,
        amount: payout.amount,
    };
    let booking = Transaction {
        actor: Some(actor.clone()),
        // One for all endings, so that a payout ends once.
        external_id: Some(format!("payout:{}:end", payout.id)),
        description: Some(format!("payout {} {}", payout.id, payout.status.as_str())),
        ..Transaction::new(kind, payout.company_id.clone(), 0, payout.amount, now)
    };
    ledger::append(write, booking, &[entry]).await?;
    Ok(())
}

macro_rules! columns {
    () => {
        "id, company_id, amount_cents, status, type, account_holder, destination, destination_last4, failure_reason, reference,
         created_at, updated_at, paid_at"
    };
}

/// Of whatever company: for staff.
pub async fn find(db: &mut AnyConnection, id: &PayoutId) -> Result<Option<Payout>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM payouts WHERE id = $1"
    ))
    .bind(id.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &PayoutId,
) -> Result<Option<Payout>, StoreError> {
    let found = find(db, id).await?;
    Ok(found.filter(|payout| payout.company_id == *company))
}

static LIST: List = List::new(
    columns!(),
    "FROM payouts
     WHERE (CAST($1 AS TEXT) IS NULL OR company_id = $1)
       AND (CAST($2 AS TEXT) IS NULL OR status = $2)",
    "created_at DESC, id",
    2,
);

/// Payouts of a company, or (for staff) of all, newest first.
pub async fn list(
    db: &mut AnyConnection,
    company: Option<&CompanyId>,
    status: Option<PayoutStatus>,
    part: Part,
) -> Result<Listed<Payout>, StoreError> {
    let bind = |values: &mut Values| {
        values
            .text(company.map(CompanyId::as_str))
            .text(status.map(PayoutStatus::as_str));
    };
    LIST.fetch(db, part, bind, from_row).await
}

fn method_of(row: &AnyRow) -> Result<Method, StoreError> {
    let destination = row.text("destination")?;
    Ok(Method {
        kind: row.text("type")?,
        account_holder: row.text("account_holder")?,
        sealed_destination: hex::decode(&destination)
            .map_err(|error| corrupt("destination", error))?,
        last4: row.text("destination_last4")?,
    })
}

/// `None`: the payout has not ended.
fn ended(payout: &Payout, now: Timestamp) -> Option<Event> {
    let kind = match payout.status {
        PayoutStatus::Paid => EventType::PayoutPaid,
        PayoutStatus::Failed => EventType::PayoutFailed,
        PayoutStatus::Cancelled => EventType::PayoutCancelled,
        PayoutStatus::Requested | PayoutStatus::Processing => return None,
    };
    Some(Event {
        company: payout.company_id.clone(),
        kind,
        at: now,
        data: json!({
            "company_id": payout.company_id,
            "payout_id": payout.id,
            "amount_usd": events::usd(payout.amount),
            "destination_type": payout.method.kind,
            "destination_last4": payout.method.last4,
            "reference": payout.reference,
            "failure_reason": payout.failure_reason,
        }),
    })
}

fn from_row(row: &AnyRow) -> Result<Payout, StoreError> {
    let status = row.text("status")?;
    Ok(Payout {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        amount: UsdCents::new(row.number("amount_cents")?),
        status: PayoutStatus::parse(&status).ok_or_else(|| corrupt("status", status))?,
        method: method_of(row)?,
        failure_reason: row.text_opt("failure_reason")?,
        reference: row.text_opt("reference")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        paid_at: row.time_opt("paid_at")?,
    })
}
