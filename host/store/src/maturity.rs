//! Earnings become payable once their charges are old enough that a refund is unlikely.

use crate::accounts;
use crate::db::{Db, Write};
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::ledger::{self, Account, Entry, Transaction, TransactionType};
use souk_domain::ids::CompanyId;
use souk_domain::money::{SELLER_CENTS_PER_CREDIT, UsdCents};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;

/// Sellers that have anything pending.
pub async fn sellers(db: &Db) -> Result<Vec<CompanyId>, StoreError> {
    let mut read = db.read().await?;
    let rows = sqlx::query(
        "SELECT company_id
         FROM accounts
         WHERE kind = 'seller_pending' AND balance_cents > 0
         ORDER BY company_id",
    )
    .fetch_all(&mut *read)
    .await?;
    rows.iter().map(|row| row.id("company_id")).collect()
}

/// What a seller's charges that are not old enough were seen to be, up to an instant.
pub struct Recent {
    until: Timestamp,
    credits: i64,
}

impl Recent {
    /// Nothing was looked at that is later than `before`.
    pub fn unseen(before: Timestamp) -> Recent {
        Recent {
            until: before,
            credits: 0,
        }
    }

    /// Those from `before` to `until`, which has to lie so far back that no charge of before it is still being committed. A busy seller has millions: they
    /// are added up where nobody waits for it.
    pub async fn seen(
        db: &mut AnyConnection,
        seller: &CompanyId,
        before: Timestamp,
        until: Timestamp,
    ) -> Result<Recent, StoreError> {
        let until = until.max(before);
        let credits = credits(db, seller, before, Some(until)).await?;
        Ok(Recent { until, credits })
    }
}

/// What buyers paid from an instant on, and was not refunded.
async fn credits(
    db: &mut AnyConnection,
    seller: &CompanyId,
    from: Timestamp,
    to: Option<Timestamp>,
) -> Result<i64, StoreError> {
    sqlx::query(
        "SELECT CAST(COALESCE(SUM(-t.amount_credits), 0) AS BIGINT) AS credits
         FROM transactions t
         LEFT JOIN transactions r ON r.reversal_of = t.id
         WHERE t.seller_id = $1 AND t.type = 'charge' AND t.created_at >= $2 AND t.created_at < $3 AND r.id IS NULL",
    )
    .bind(seller.as_str())
    .bind(from.micros())
    .bind(to.map_or(i64::MAX, Timestamp::micros))
    .fetch_one(db)
    .await?
    .number("credits")
}

/// Moves what `seller` earned by charges before those that are `recent` from pending to payable. `None`: there is nothing to move.
///
/// What stays pending are the shares of later charges that were not refunded, so running this twice, on one host or two, moves nothing twice. One that
/// was refunded since it was seen is taken for one that was not: so much less is moved now, and the next time all of it.
pub async fn mature(
    write: &mut Write,
    seller: &CompanyId,
    recent: &Recent,
    now: Timestamp,
) -> Result<Option<Transaction>, StoreError> {
    let pending = Account::SellerPending(seller.clone());
    let payable = Account::SellerPayable(seller.clone());
    if write.is_shared() {
        accounts::open_and_lock(write, vec![pending.clone(), payable.clone()]).await?;
    }
    let later = credits(write, seller, recent.until, None).await?;
    let recent = recent
        .credits
        .checked_add(later)
        .and_then(|credits| credits.checked_mul(SELLER_CENTS_PER_CREDIT))
        .ok_or_else(|| corrupt("amount_credits", later))?;
    let amount = ledger::balance(write, &pending).await?.get() - recent;
    if amount <= 0 {
        return Ok(None);
    }
    let amount = UsdCents::new(amount);
    let entry = Entry {
        from: pending,
        to: payable,
        amount,
    };
    let transaction = Transaction::new(TransactionType::Maturity, seller.clone(), 0, amount, now);
    ledger::append(write, transaction, &[entry]).await.map(Some)
}
