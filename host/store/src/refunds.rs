//! Taking a charge back, once, as new entries: the buyer receives all of it, the seller and the platform give back exactly their shares.

use crate::accounts;
use crate::db::Write;
use crate::error::StoreError;
use crate::ledger::{self, Account, Entry, Transaction, TransactionType};
use crate::statements;
use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, TransactionId};
use souk_domain::money::{Credits, UsdCents, split};
use souk_domain::time::Timestamp;

/// Why a charge is not taken back.
#[derive(Debug, thiserror::Error)]
pub enum RefundError {
    #[error("no such charge")]
    NotFound,
    #[error("only a charge can be refunded, this is a {}", .0.as_str())]
    NotACharge(TransactionType),
    #[error("the charge was refunded before")]
    Refunded,
    /// Somebody else would pay for it.
    #[error("the seller's share is {share}, and only {cover} is pending or payable")]
    NotCovered { share: UsdCents, cover: UsdCents },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Refunds `charge`, if `seller` (when given) earned by it and can pay its share of it.
///
/// The seller's share comes out of what is pending, else out of what is payable, or out of both where neither suffices. When the seller is
/// not asked, what is payable may thereby fall below zero, and then later earnings fill it up: until then the platform pays.
pub async fn refund(
    write: &mut Write,
    charge: &TransactionId,
    seller: Option<&CompanyId>,
    reason: &str,
    actor: Option<&Actor>,
    now: Timestamp,
) -> Result<Transaction, RefundError> {
    let charge = statements::transaction(write, charge)
        .await?
        .ok_or(RefundError::NotFound)?;
    let earner = charge
        .seller
        .clone()
        .ok_or(RefundError::NotACharge(charge.kind))?;
    if seller.is_some_and(|seller| *seller != earner) {
        return Err(RefundError::NotFound);
    }
    if charge.kind != TransactionType::Charge {
        return Err(RefundError::NotACharge(charge.kind));
    }
    let credits = Credits::new(-charge.credits)
        .map_err(|error| crate::fields::corrupt("amount_credits", error))?;
    let shares = split(credits);
    let pending = Account::SellerPending(earner.clone());
    let buyer = Account::Buyer(charge.company.clone());
    if write.is_shared() {
        // All that may change at once, or this and a charge could wait for each other.
        let all = vec![
            pending.clone(),
            Account::SellerPayable(earner.clone()),
            buyer.clone(),
            Account::PlatformRevenue,
        ];
        accounts::open_and_lock(write, all).await?;
    }
    let payable = Account::SellerPayable(earner.clone());
    let is_pending = ledger::balance(write, &pending).await?.max(UsdCents::ZERO);
    let is_payable = ledger::balance(write, &payable).await?;
    let cover = UsdCents::new(is_pending.get() + is_payable.get());
    if seller.is_some() && cover < shares.seller {
        // A charge that was taken back before needs no cover any more.
        check_not_refunded(write, &charge.id).await?;
        let share = shares.seller;
        return Err(RefundError::NotCovered { share, cover });
    }
    let out_of_pending = if is_pending >= shares.seller {
        shares.seller
    } else if is_payable >= shares.seller {
        UsdCents::ZERO
    } else if cover >= shares.seller {
        is_pending
    } else {
        UsdCents::ZERO
    };
    let out_of_payable = UsdCents::new(shares.seller.get() - out_of_pending.get());
    let parts = [
        (pending, out_of_pending),
        (payable, out_of_payable),
        (Account::PlatformRevenue, shares.platform),
    ];
    let entries: Vec<Entry> = parts
        .into_iter()
        .filter(|(_, amount)| amount.get() > 0)
        .map(|(from, amount)| Entry {
            from,
            to: buyer.clone(),
            amount,
        })
        .collect();
    let refund = Transaction {
        seller: Some(earner),
        product_type: charge.product_type,
        product_id: charge.product_id,
        purchase: charge.purchase,
        execution: charge.execution,
        actor: actor.cloned(),
        reversal_of: Some(charge.id),
        description: Some(reason.to_owned()),
        ..Transaction::new(
            TransactionType::Refund,
            charge.company,
            credits.get(),
            credits.cents(),
            now,
        )
    };
    match ledger::append(write, refund, &entries).await {
        Ok(refund) => Ok(refund),
        Err(StoreError::Conflict) => Err(RefundError::Refunded),
        Err(error) => Err(error.into()),
    }
}

async fn check_not_refunded(write: &mut Write, charge: &TransactionId) -> Result<(), RefundError> {
    let refund = sqlx::query("SELECT id FROM transactions WHERE reversal_of = $1")
        .bind(charge.as_str())
        .fetch_optional(&mut **write)
        .await
        .map_err(StoreError::from)?;
    match refund {
        Some(_) => Err(RefundError::Refunded),
        None => Ok(()),
    }
}
