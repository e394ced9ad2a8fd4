//! Earnings become payable once their charges are old enough that a refund is unlikely.

use crate::accounts;
use crate::db::{Db, Write};
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::ledger::{self, Account, Entry, Transaction, TransactionType};
use souk_domain::ids::CompanyId;
use souk_domain::money::{SELLER_CENTS_PER_CREDIT, UsdCents};
use souk_domain::time::Timestamp;

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

/// Moves what `seller` earned by charges before `before` from pending to payable. `None`: there is nothing to move.
///
/// What stays pending are the shares of later charges that were not refunded, so running this twice, on one host or two, moves nothing twice.
pub async fn mature(
    write: &mut Write,
    seller: &CompanyId,
    before: Timestamp,
    now: Timestamp,
) -> Result<Option<Transaction>, StoreError> {
    let pending = Account::SellerPending(seller.clone());
    let payable = Account::SellerPayable(seller.clone());
    if write.is_shared() {
        accounts::open_and_lock(write, vec![pending.clone(), payable.clone()]).await?;
    }
    let recent = sqlx::query(
        "SELECT CAST(COALESCE(SUM(-t.amount_credits), 0) AS BIGINT) AS credits
         FROM transactions t
         LEFT JOIN transactions r ON r.reversal_of = t.id
         WHERE t.seller_id = $1 AND t.type = 'charge' AND t.created_at >= $2 AND r.id IS NULL",
    )
    .bind(seller.as_str())
    .bind(before.micros())
    .fetch_one(&mut **write)
    .await?
    .number("credits")?;
    let recent = recent
        .checked_mul(SELLER_CENTS_PER_CREDIT)
        .ok_or_else(|| corrupt("amount_credits", recent))?;
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
