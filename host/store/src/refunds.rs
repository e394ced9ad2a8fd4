//! Taking a charge back, once, as new entries: the buyer receives all of it, the seller and the platform give back exactly their shares.

use crate::accounts;
use crate::db::Write;
use crate::error::StoreError;
use crate::ledger::{self, Account, Entry, Transaction, TransactionType};
use crate::statements;
use souk_domain::ids::{CompanyId, KeyId, TransactionId};
use souk_domain::money::{Credits, split};
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
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Refunds `charge`, if `seller` (when given) earned by it.
///
/// The seller's share comes out of what is pending, and out of what is payable where that does not suffice; the latter may thereby fall
/// below zero, and then later earnings fill it up.
pub async fn refund(
    write: &mut Write,
    charge: &TransactionId,
    seller: Option<&CompanyId>,
    reason: &str,
    key: Option<&KeyId>,
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
    let source = if ledger::balance(write, &pending).await? >= shares.seller {
        pending
    } else {
        Account::SellerPayable(earner.clone())
    };
    let entries = [
        Entry {
            from: source,
            to: buyer.clone(),
            amount: shares.seller,
        },
        Entry {
            from: Account::PlatformRevenue,
            to: buyer,
            amount: shares.platform,
        },
    ];
    let refund = Transaction {
        seller: Some(earner),
        product_type: charge.product_type,
        product_id: charge.product_id,
        purchase: charge.purchase,
        execution: charge.execution,
        key: key.cloned(),
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
