//! The books: accounts, transactions and entries. Double entry, append only.
//!
//! An entry moves a positive number of cents from one account to another, so every transaction balances by its very shape. Nothing here is
//! updated but the balance that each account carries along; corrections are new transactions. Charges are booked by the
//! [`teller`](crate::teller), many in one commit; everything rarer (grants, top-ups, refunds, payouts) by [`append`].

use crate::accounts::{self, AccountChanges, ensure_accounts};
pub use crate::accounts::{Account, Entry, balance, low_at, set_low_at};
use crate::audit;
use crate::bulk::{Bulk, Script, Style};
use crate::db::Write;
use crate::error::StoreError;
use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, ExecutionId, PriceId, PurchaseId, RequestId, TransactionId};
use souk_domain::money::{CENTS_PER_CREDIT, Credits, UsdCents, split};
use souk_domain::products::ProductType;
use souk_domain::time::Timestamp;
use std::time::Duration;

/// A transaction is committed so long after its time, on whatever host, at the latest: what is older is all there.
pub const COMMITTED_WITHIN: Duration = Duration::from_secs(600);

/// The entries of a charge: the buyer pays the seller's and the platform's share. None for a charge of zero.
pub fn charge_entries(buyer: &CompanyId, seller: &CompanyId, amount: Credits) -> Vec<Entry> {
    let shares = split(amount);
    [
        (Account::SellerPending(seller.clone()), shares.seller),
        (Account::PlatformRevenue, shares.platform),
    ]
    .into_iter()
    .filter(|(_, share)| share.get() > 0)
    .map(|(to, amount)| Entry {
        from: Account::Buyer(buyer.clone()),
        to,
        amount,
    })
    .collect()
}

/// What kind of business event a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransactionType {
    TopUp,
    Grant,
    Charge,
    Refund,
    /// Earnings become payable.
    Maturity,
    /// Money is taken out of what is payable, to be paid out.
    Payout,
    /// It has left.
    PayoutPaid,
    /// A payout that failed: the money is payable again.
    PayoutReturn,
    Adjustment,
}

impl TransactionType {
    const ALL: [Self; 9] = [
        Self::TopUp,
        Self::Grant,
        Self::Charge,
        Self::Refund,
        Self::Maturity,
        Self::Payout,
        Self::PayoutPaid,
        Self::PayoutReturn,
        Self::Adjustment,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TopUp => "top_up",
            Self::Grant => "grant",
            Self::Charge => "charge",
            Self::Refund => "refund",
            Self::Maturity => "maturity",
            Self::Payout => "payout",
            Self::PayoutPaid => "payout_paid",
            Self::PayoutReturn => "payout_return",
            Self::Adjustment => "adjustment",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// One business event, as it is booked and read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    pub id: TransactionId,
    pub kind: TransactionType,
    /// Whose statement it is on: of a charge or refund the buyer's, of a payout the seller's.
    pub company: CompanyId,
    /// Who earned by it.
    pub seller: Option<CompanyId>,
    /// Signed, as seen by `company`'s credits.
    pub credits: i64,
    /// What moved, more than zero.
    pub amount: UsdCents,
    /// The buyer's credits after it, holds not deducted.
    pub balance_after: Option<i64>,
    pub product_type: Option<ProductType>,
    pub product_id: Option<String>,
    pub purchase: Option<PurchaseId>,
    pub price: Option<PriceId>,
    pub execution: Option<ExecutionId>,
    pub actor: Option<Actor>,
    pub request: Option<RequestId>,
    /// The transaction that this one takes back. At most one may.
    pub reversal_of: Option<TransactionId>,
    /// A payment provider's id for the event. Each is booked once.
    pub external_id: Option<String>,
    pub description: Option<String>,
    pub created_at: Timestamp,
}

impl Transaction {
    /// A transaction without any of the optional parts.
    pub fn new(
        kind: TransactionType,
        company: CompanyId,
        credits: i64,
        amount: UsdCents,
        now: Timestamp,
    ) -> Self {
        Self {
            id: TransactionId::generate_at(now),
            kind,
            company,
            seller: None,
            credits,
            amount,
            balance_after: None,
            product_type: None,
            product_id: None,
            purchase: None,
            price: None,
            execution: None,
            actor: None,
            request: None,
            reversal_of: None,
            external_id: None,
            description: None,
            created_at: now,
        }
    }
}

/// Books a rare event. Buyers may only receive here: what they pay is reserved first, by the teller.
///
/// [`StoreError::Conflict`]: what it reverses was reversed before, or its external id was booked before.
pub async fn append(
    write: &mut Write,
    transaction: Transaction,
    entries: &[Entry],
) -> Result<Transaction, StoreError> {
    if entries.is_empty()
        || entries
            .iter()
            .any(|entry| matches!(entry.from, Account::Buyer(_)))
    {
        return Err(StoreError::Corrupt(
            "a booking has entries, and none that takes from a buyer".into(),
        ));
    }
    let (transaction, changes) = book(write, transaction, entries).await?;
    // All that a buyer receives by one transaction together is whole credits; single entries need not be.
    for (account, cents) in changes.gains() {
        if let Account::Buyer(buyer) = account {
            write.credited(buyer, cents);
        }
    }
    Ok(transaction)
}

/// Books what takes from a buyer: no more than [`Teller::take`](crate::teller::Teller::take) has taken for it in this transaction.
pub(crate) async fn append_taken(
    write: &mut Write,
    transaction: Transaction,
    entries: &[Entry],
) -> Result<Transaction, StoreError> {
    let (transaction, _) = book(write, transaction, entries).await?;
    Ok(transaction)
}

async fn book(
    write: &mut Write,
    mut transaction: Transaction,
    entries: &[Entry],
) -> Result<(Transaction, AccountChanges), StoreError> {
    let mut changes = AccountChanges::default();
    for entry in entries {
        changes.add(entry);
    }
    ensure_accounts(write, changes.accounts()).await?;
    if write.is_shared() {
        // In the order that everybody takes: an update of several rows has none of its own.
        accounts::lock(write, changes.accounts().cloned().collect()).await?;
    }
    let mut script = Script::new(Style::Separate);
    changes.apply(&mut script);
    script.run(write).await?;
    let mut script = Script::new(Style::Separate);
    let mut accounts = entries.iter().flat_map(|entry| [&entry.to, &entry.from]);
    if let Some(buyer) = accounts.find(|account| matches!(account, Account::Buyer(_))) {
        transaction.balance_after = Some(balance(write, buyer).await?.get() / CENTS_PER_CREDIT);
    }
    insert_transactions(&mut script, std::slice::from_ref(&transaction));
    let rows: Vec<_> = entries
        .iter()
        .map(|entry| (&transaction.id, entry))
        .collect();
    insert_entries(&mut script, &rows);
    script.run(write).await?;
    note(write, &transaction).await?;
    Ok((transaction, changes))
}

/// For the audit log. What the balance became is the company's statement's to say.
async fn note(write: &mut Write, transaction: &Transaction) -> Result<(), StoreError> {
    let after = serde_json::json!({
        "type": transaction.kind.as_str(),
        "amount_credits": transaction.credits,
        "amount_cents": transaction.amount.get(),
        "seller_id": transaction.seller,
        "product_id": transaction.product_id,
        "reversal_of": transaction.reversal_of,
        "description": transaction.description,
    });
    let subject = ("transaction", transaction.id.as_str());
    let company = Some(&transaction.company);
    audit::note(
        write,
        company,
        subject,
        audit::Change::Created,
        None,
        Some(after),
    )
    .await
}

/// Gives credits to a company, out of the platform's pocket.
pub async fn grant(
    write: &mut Write,
    company: &CompanyId,
    credits: Credits,
    reason: &str,
    actor: Option<&Actor>,
    now: Timestamp,
) -> Result<Transaction, StoreError> {
    let mut transaction = Transaction::new(
        TransactionType::Grant,
        company.clone(),
        credits.get(),
        credits.cents(),
        now,
    );
    transaction.description = Some(reason.to_owned());
    transaction.actor = actor.cloned();
    let entry = Entry {
        from: Account::PlatformPromo,
        to: Account::Buyer(company.clone()),
        amount: credits.cents(),
    };
    append(write, transaction, &[entry]).await
}

static INSERT_TRANSACTIONS: Bulk = Bulk::new(
    "INSERT INTO transactions (id, type, company_id, seller_id, amount_credits, amount_cents, balance_after_credits, product_type,
                               product_id, purchase_id, price_id, execution_id, api_key_id, request_id, reversal_of, external_id,
                               description, created_at)
     SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, column12,
            column13, column14, column15, column16, column17, column18",
    18,
    "WHERE column1 IS NOT NULL",
);

pub(crate) fn insert_transactions(script: &mut Script, transactions: &[Transaction]) {
    script.add(&INSERT_TRANSACTIONS, transactions, |values, row| {
        values
            .text(row.map(|t| t.id.as_str()))
            .text(row.map(|t| t.kind.as_str()))
            .text(row.map(|t| t.company.as_str()))
            .text(row.and_then(|t| t.seller.as_ref()).map(CompanyId::as_str))
            .number(row.map(|t| t.credits))
            .number(row.map(|t| t.amount.get()))
            .number(row.and_then(|t| t.balance_after))
            .text(row.and_then(|t| t.product_type).map(ProductType::as_str))
            .text(row.and_then(|t| t.product_id.as_deref()))
            .text(
                row.and_then(|t| t.purchase.as_ref())
                    .map(PurchaseId::as_str),
            )
            .text(row.and_then(|t| t.price.as_ref()).map(PriceId::as_str))
            .text(
                row.and_then(|t| t.execution.as_ref())
                    .map(ExecutionId::as_str),
            )
            .text(row.and_then(|t| t.actor.as_ref()).map(Actor::as_str))
            .text(row.and_then(|t| t.request.as_ref()).map(RequestId::as_str))
            .text(
                row.and_then(|t| t.reversal_of.as_ref())
                    .map(TransactionId::as_str),
            )
            .text(row.and_then(|t| t.external_id.as_deref()))
            .text(row.and_then(|t| t.description.as_deref()))
            .number(row.map(|t| t.created_at.micros()));
    });
}

static INSERT_ENTRIES: Bulk = Bulk::new(
    "INSERT INTO entries (transaction_id, from_account, to_account, amount_cents)
     SELECT column1, column2, column3, column4",
    4,
    "WHERE column1 IS NOT NULL",
);

pub(crate) fn insert_entries(script: &mut Script, entries: &[(&TransactionId, &Entry)]) {
    script.add(&INSERT_ENTRIES, entries, |values, row| {
        values
            .text(row.map(|(transaction, _)| transaction.as_str()))
            .text(row.map(|(_, entry)| entry.from.id()).as_deref())
            .text(row.map(|(_, entry)| entry.to.id()).as_deref())
            .number(row.map(|(_, entry)| entry.amount.get()));
    });
}
