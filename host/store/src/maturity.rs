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

/// What a seller's account and its charges were at one instant. A busy seller has millions of charges that are not old enough: they are added up
/// where nobody waits for it, and not looked at again ([`mature`]).
pub struct Seen {
    /// Cents that are pending, but for the shares of charges that are not old enough.
    matured: i64,
    /// Cents that had left what is pending since then.
    gone: i64,
    since: Timestamp,
}

impl Seen {
    /// With charges from `before` on as those that are not old enough. Where `db` does not see one instant ([`Db::snapshot`]), less may be moved
    /// than could be: what has left is read first, and what has to stay last.
    pub async fn of(
        db: &mut AnyConnection,
        seller: &CompanyId,
        before: Timestamp,
        now: Timestamp,
    ) -> Result<Seen, StoreError> {
        let since = now.before(ledger::COMMITTED_WITHIN);
        let gone = gone(db, seller, since).await?;
        let pending = ledger::balance(db, &Account::SellerPending(seller.clone())).await?;
        let recent = cents("amount_credits", recent_credits(db, seller, before).await?)?;
        Ok(Seen {
            matured: pending.get() - recent,
            gone,
            since,
        })
    }
}

/// What buyers paid from an instant on, and was not refunded.
async fn recent_credits(
    db: &mut AnyConnection,
    seller: &CompanyId,
    from: Timestamp,
) -> Result<i64, StoreError> {
    sqlx::query(
        "SELECT CAST(COALESCE(SUM(-t.amount_credits), 0) AS BIGINT) AS credits
         FROM transactions t
         LEFT JOIN transactions r ON r.reversal_of = t.id
         WHERE t.seller_id = $1 AND t.type = 'charge' AND t.created_at >= $2 AND r.id IS NULL",
    )
    .bind(seller.as_str())
    .bind(from.micros())
    .fetch_one(db)
    .await?
    .number("credits")
}

/// Read with the pen in hand, by indexes that have these lines only.
const GONE: &str = "
    SELECT CAST((SELECT COALESCE(SUM(amount_cents), 0)
                 FROM transactions
                 WHERE company_id = $1 AND type <> 'charge' AND type <> 'refund' AND type = 'maturity' AND created_at >= $2
           ) AS BIGINT) AS matured,
           CAST((SELECT COALESCE(SUM(amount_credits), 0)
                 FROM transactions
                 WHERE seller_id = $1 AND type = 'refund' AND created_at >= $2
           ) AS BIGINT) AS refunded";

/// What became payable since then, and the shares of what was refunded, whatever they came out of.
async fn gone(
    db: &mut AnyConnection,
    seller: &CompanyId,
    since: Timestamp,
) -> Result<i64, StoreError> {
    let row = sqlx::query(GONE)
        .bind(seller.as_str())
        .bind(since.micros())
        .fetch_one(db)
        .await?;
    Ok(row.number("matured")? + cents("amount_credits", row.number("refunded")?)?)
}

/// The seller's share.
fn cents(column: &str, credits: i64) -> Result<i64, StoreError> {
    let cents = credits.checked_mul(SELLER_CENTS_PER_CREDIT);
    cents.ok_or_else(|| corrupt(column, credits))
}

/// Moves from pending to payable what `seller` was seen to have earned by charges that are old enough. `None`: there is nothing to move.
///
/// Charges since then add as much to what is pending as to what has to stay there. So all that changes what may move is what has left since then,
/// which is found by the few lines of its kind: running this twice, on one host or two, moves nothing twice. What was refunded since is taken
/// for what was old enough: so much less is moved now, and the next time all of it.
pub async fn mature(
    write: &mut Write,
    seller: &CompanyId,
    seen: &Seen,
    now: Timestamp,
) -> Result<Option<Transaction>, StoreError> {
    let pending = Account::SellerPending(seller.clone());
    let payable = Account::SellerPayable(seller.clone());
    if write.is_shared() {
        accounts::open_and_lock(write, vec![pending.clone(), payable.clone()]).await?;
    }
    let gone = gone(write, seller, seen.since).await? - seen.gone;
    let is_pending = ledger::balance(write, &pending).await?;
    let amount = (seen.matured - gone).min(is_pending.get());
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

#[cfg(test)]
mod tests {
    use super::GONE;
    use crate::plans::Plans;

    /// However many charges there were in the last minutes, nobody waits until they are looked at.
    #[tokio::test]
    async fn what_has_left_is_found_without_charges() {
        let steps = Plans::open().await.steps(GONE).await;
        let found = |index: &str| {
            let begin = format!("SEARCH transactions USING INDEX {index} ");
            steps.iter().filter(|step| step.starts_with(&begin)).count()
        };
        let of_charges = steps.iter().filter(|step| step.contains("transactions"));
        assert_eq!(of_charges.count(), 2, "{steps:#?}");
        assert_eq!(found("transactions_of_money"), 1, "{steps:#?}");
        assert_eq!(found("transactions_of_sellers_refunds"), 1, "{steps:#?}");
    }
}
