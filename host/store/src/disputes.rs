//! Disputes: a payer has a payment taken back by the bank, and what it bought goes with it; who wins a dispute has both again.
//!
//! A dispute is known by the provider's name for the payment, and so is the top-up that it has settled, whichever of both is told first. What follows
//! is booked under the dispute's name, once: events may come again, and in any order. Start reading at [`follow`].

use crate::accounts::{self, Account, Entry};
use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::ledger::{self, Transaction, TransactionType};
use crate::teller::Teller;
use crate::top_ups::{self, TopUp};
use souk_domain::ids::{CompanyId, TopUpId, TransactionId};
use souk_domain::money::{CENTS_PER_CREDIT, Credits, UsdCents};
use souk_domain::time::Timestamp;

/// What a provider tells of one.
#[derive(Debug, Clone, Copy)]
pub struct Dispute<'a> {
    pub provider: &'a str,
    /// The provider's name for it.
    pub id: &'a str,
    /// The provider's name for the payment.
    pub payment: &'a str,
    pub amount: UsdCents,
    /// Over, and the money is back.
    pub is_won: bool,
}

/// What was done about one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// Of what was taken back so many credits were there; of the rest the platform has lost so much.
    Taken {
        company: CompanyId,
        credits: Credits,
        missing: UsdCents,
    },
    Returned {
        company: CompanyId,
        credits: Credits,
    },
    /// It is of more than the top-up, or of a part of a credit: nothing was done.
    Undecided { top_up: TopUpId, amount: UsdCents },
}

/// Notes a payment, and the top-up that it has settled. On a shared store nobody else follows its disputes until `write` ends.
pub async fn note_payment(
    write: &mut Write,
    provider: &str,
    payment: &str,
    top_up: Option<&TopUpId>,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO payments (provider, payment_id, top_up_id)
         VALUES ($1, $2, $3)
         ON CONFLICT (provider, payment_id) DO UPDATE SET top_up_id = COALESCE(payments.top_up_id, excluded.top_up_id)",
    )
    .bind(provider)
    .bind(payment)
    .bind(top_up.map(TopUpId::as_str))
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Notes a dispute, and its payment. One that was won stays so, whatever is told of it later.
pub async fn note(
    write: &mut Write,
    dispute: &Dispute<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    note_payment(write, dispute.provider, dispute.payment, None).await?;
    sqlx::query(
        "INSERT INTO disputes (provider, dispute_id, payment_id, amount_cents, is_won, received_at)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (provider, dispute_id) DO UPDATE
         SET is_won = CASE WHEN excluded.is_won = 1 THEN 1 ELSE disputes.is_won END",
    )
    .bind(dispute.provider)
    .bind(dispute.id)
    .bind(dispute.payment)
    .bind(dispute.amount.get())
    .bind(i64::from(dispute.is_won))
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Does what has not been done yet about the disputes of a payment that was noted in this transaction: nothing, while nobody knows of which top-up it is.
pub async fn follow(
    write: &mut Write,
    teller: &Teller,
    provider: &str,
    payment: &str,
    now: Timestamp,
) -> Result<Vec<Followed>, StoreError> {
    let Some(top_up) = of_payment(write, provider, payment).await? else {
        return Ok(Vec::new());
    };
    let disputes = sqlx::query(
        "SELECT dispute_id, amount_cents, is_won
         FROM disputes
         WHERE provider = $1 AND payment_id = $2
         ORDER BY dispute_id",
    )
    .bind(provider)
    .bind(payment)
    .fetch_all(&mut **write)
    .await?;
    let mut followed = Vec::new();
    for row in &disputes {
        let id = row.text("dispute_id")?;
        let dispute = Dispute {
            provider,
            id: &id,
            payment,
            amount: UsdCents::new(row.number("amount_cents")?),
            is_won: row.flag("is_won")?,
        };
        let done = match (taken(write, &dispute).await?, dispute.is_won) {
            (None, false) => Some(take(write, teller, &top_up, &dispute, now).await?),
            (Some(taken), true) => give_back(write, &top_up, &dispute, &taken, now).await?,
            (None, true) | (Some(_), false) => None,
        };
        followed.extend(done);
    }
    Ok(followed)
}

/// The top-up that a payment has settled.
pub async fn of_payment(
    write: &mut Write,
    provider: &str,
    payment: &str,
) -> Result<Option<TopUp>, StoreError> {
    let row = sqlx::query(
        "SELECT top_up_id FROM payments WHERE provider = $1 AND payment_id = $2 AND top_up_id IS NOT NULL",
    )
    .bind(provider)
    .bind(payment)
    .fetch_optional(&mut **write)
    .await?;
    match row {
        Some(row) => top_ups::find(write, &row.id("top_up_id")?).await,
        None => Ok(None),
    }
}

/// The booking by which a dispute's credits were taken.
struct Taken {
    id: TransactionId,
    credits: Credits,
    amount: UsdCents,
}

/// Of a dispute, unique in the books.
fn external_id(dispute: &Dispute<'_>) -> String {
    format!("dispute:{}:{}", dispute.provider, dispute.id)
}

async fn taken(write: &mut Write, dispute: &Dispute<'_>) -> Result<Option<Taken>, StoreError> {
    let row = sqlx::query(
        "SELECT id, amount_credits, amount_cents FROM transactions WHERE external_id = $1",
    )
    .bind(external_id(dispute))
    .fetch_optional(&mut **write)
    .await?;
    row.map(|row| {
        let credits = -row.number("amount_credits")?;
        Ok(Taken {
            id: row.id("id")?,
            credits: Credits::new(credits).map_err(|error| corrupt("amount_credits", error))?,
            amount: UsdCents::new(row.number("amount_cents")?),
        })
    })
    .transpose()
}

/// Takes the credits of a dispute back, as far as they are there. What was spent the sellers have earned: that is the platform's loss.
async fn take(
    write: &mut Write,
    teller: &Teller,
    top_up: &TopUp,
    dispute: &Dispute<'_>,
    now: Timestamp,
) -> Result<Followed, StoreError> {
    let (amount, company) = (dispute.amount, top_up.company_id.clone());
    let is_whole = amount.get() % CENTS_PER_CREDIT == 0;
    let wanted = match Credits::new(amount.get() / CENTS_PER_CREDIT) {
        Ok(wanted) if is_whole && wanted <= top_up.credits => wanted,
        _ => {
            return Ok(Followed::Undecided {
                top_up: top_up.id.clone(),
                amount,
            });
        }
    };
    let buyer = Account::Buyer(company.clone());
    if write.is_shared() {
        // All that may change at once, or this and a charge could wait for each other.
        let all = vec![buyer.clone(), Account::Cash, Account::PlatformRevenue];
        accounts::open_and_lock(write, all).await?;
    }
    let credits = teller.take(write, &company, wanted).await?;
    let missing = UsdCents::new(amount.get() - credits.cents().get());
    let entries = moves([
        (buyer, credits.cents()),
        (Account::PlatformRevenue, missing),
    ]);
    let entries: Vec<Entry> = entries
        .map(|(from, amount)| Entry {
            from,
            to: Account::Cash,
            amount,
        })
        .collect();
    let booking = Transaction {
        external_id: Some(external_id(dispute)),
        description: Some(format!("dispute {} of top-up {}", dispute.id, top_up.id)),
        ..Transaction::new(
            TransactionType::Adjustment,
            company.clone(),
            -credits.get(),
            amount,
            now,
        )
    };
    ledger::append_taken(write, booking, &entries).await?;
    Ok(Followed::Taken {
        company,
        credits,
        missing,
    })
}

/// The same the other way round, for a dispute that was won. `None`: it was done before.
async fn give_back(
    write: &mut Write,
    top_up: &TopUp,
    dispute: &Dispute<'_>,
    taken: &Taken,
    now: Timestamp,
) -> Result<Option<Followed>, StoreError> {
    let before = sqlx::query("SELECT id FROM transactions WHERE reversal_of = $1")
        .bind(taken.id.as_str())
        .fetch_optional(&mut **write)
        .await?;
    if before.is_some() {
        return Ok(None);
    }
    let company = top_up.company_id.clone();
    let missing = UsdCents::new(taken.amount.get() - taken.credits.cents().get());
    let buyer = Account::Buyer(company.clone());
    let entries = moves([
        (buyer, taken.credits.cents()),
        (Account::PlatformRevenue, missing),
    ]);
    let entries: Vec<Entry> = entries
        .map(|(to, amount)| Entry {
            from: Account::Cash,
            to,
            amount,
        })
        .collect();
    let booking = Transaction {
        reversal_of: Some(taken.id.clone()),
        description: Some(format!(
            "dispute {} of top-up {} was won",
            dispute.id, top_up.id
        )),
        ..Transaction::new(
            TransactionType::Adjustment,
            company.clone(),
            taken.credits.get(),
            taken.amount,
            now,
        )
    };
    ledger::append(write, booking, &entries).await?;
    Ok(Some(Followed::Returned {
        company,
        credits: taken.credits,
    }))
}

/// Of which something moves.
fn moves(parts: [(Account, UsdCents); 2]) -> impl Iterator<Item = (Account, UsdCents)> {
    parts.into_iter().filter(|(_, amount)| amount.get() > 0)
}
