//! The books: accounts, transactions and entries. Double entry, append only.
//!
//! An entry moves a positive number of cents from one account to another, so every transaction balances by its very shape. Nothing here is
//! updated but the balance that each account carries along; corrections are new transactions. Charges are booked by the
//! [`teller`](crate::teller), many in one commit; everything rarer (grants, top-ups, refunds, payouts) by [`append`].

use crate::bulk::{Bulk, Script};
use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use souk_domain::ids::{
    CompanyId, ExecutionId, KeyId, PriceId, PurchaseId, RequestId, TransactionId,
};
use souk_domain::money::{CENTS_PER_CREDIT, Credits, UsdCents, split};
use souk_domain::products::ProductType;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use std::collections::{BTreeMap, HashMap};

/// Whose money it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Account {
    /// Money outside: minus what came in, plus what was paid out. Never above zero.
    Cash,
    /// Credits that the platform gave away: minus what it gave. Never above zero.
    PlatformPromo,
    PlatformRevenue,
    Buyer(CompanyId),
    /// Earned, but not yet payable.
    SellerPending(CompanyId),
    SellerPayable(CompanyId),
}

impl Account {
    pub fn id(&self) -> String {
        match self {
            Self::Cash => "cash".into(),
            Self::PlatformPromo => "platform:promo".into(),
            Self::PlatformRevenue => "platform:revenue".into(),
            Self::Buyer(company) => format!("buyer:{company}"),
            Self::SellerPending(company) => format!("seller:{company}:pending"),
            Self::SellerPayable(company) => format!("seller:{company}:payable"),
        }
    }

    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Cash => "cash",
            Self::PlatformPromo => "platform_promo",
            Self::PlatformRevenue => "platform_revenue",
            Self::Buyer(_) => "buyer",
            Self::SellerPending(_) => "seller_pending",
            Self::SellerPayable(_) => "seller_payable",
        }
    }

    pub(crate) const fn company(&self) -> Option<&CompanyId> {
        match self {
            Self::Buyer(company) | Self::SellerPending(company) | Self::SellerPayable(company) => {
                Some(company)
            }
            Self::Cash | Self::PlatformPromo | Self::PlatformRevenue => None,
        }
    }

    /// Reads what [`Account::id`] wrote.
    pub fn parse(id: &str) -> Option<Self> {
        match id {
            "cash" => return Some(Self::Cash),
            "platform:promo" => return Some(Self::PlatformPromo),
            "platform:revenue" => return Some(Self::PlatformRevenue),
            _ => {}
        }
        let (kind, rest) = id.split_once(':')?;
        match (kind, rest.split_once(':')) {
            ("buyer", None) => Some(Self::Buyer(rest.parse().ok()?)),
            ("seller", Some((company, "pending"))) => {
                Some(Self::SellerPending(company.parse().ok()?))
            }
            ("seller", Some((company, "payable"))) => {
                Some(Self::SellerPayable(company.parse().ok()?))
            }
            _ => None,
        }
    }
}

/// `amount` cents, more than zero, move `from` one account `to` another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub from: Account,
    pub to: Account,
    pub amount: UsdCents,
}

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
    Payout,
    /// A payout that failed: the money is payable again.
    PayoutReturn,
    Adjustment,
}

impl TransactionType {
    const ALL: [Self; 8] = [
        Self::TopUp,
        Self::Grant,
        Self::Charge,
        Self::Refund,
        Self::Maturity,
        Self::Payout,
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
    pub key: Option<KeyId>,
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
            key: None,
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
    mut transaction: Transaction,
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
    let mut changes = AccountChanges::default();
    for entry in entries {
        changes.add(entry);
    }
    ensure_accounts(write, changes.accounts()).await?;
    let mut script = Script::new(false);
    changes.apply(&mut script);
    script.run(write).await?;
    let mut script = Script::new(false);
    if let Some(entry) = entries
        .iter()
        .find(|entry| matches!(entry.to, Account::Buyer(_)))
    {
        transaction.balance_after = Some(balance(write, &entry.to).await?.get() / CENTS_PER_CREDIT);
    }
    insert_transactions(&mut script, std::slice::from_ref(&transaction));
    let rows: Vec<_> = entries
        .iter()
        .map(|entry| (&transaction.id, entry))
        .collect();
    insert_entries(&mut script, &rows);
    script.run(write).await?;
    // All that a buyer receives by one transaction together is whole credits; single entries need not be.
    for (account, cents) in changes.gains() {
        if let Account::Buyer(buyer) = account {
            write.credited(buyer, cents);
        }
    }
    Ok(transaction)
}

/// Gives credits to a company, out of the platform's pocket.
pub async fn grant(
    write: &mut Write,
    company: &CompanyId,
    credits: Credits,
    reason: &str,
    key: Option<&KeyId>,
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
    transaction.key = key.cloned();
    let entry = Entry {
        from: Account::PlatformPromo,
        to: Account::Buyer(company.clone()),
        amount: credits.cents(),
    };
    append(write, transaction, &[entry]).await
}

/// What an account holds, in this transaction's view. Zero for one that was never used.
pub async fn balance(db: &mut AnyConnection, account: &Account) -> Result<UsdCents, StoreError> {
    let row = sqlx::query("SELECT balance_cents FROM accounts WHERE id = $1")
        .bind(account.id())
        .fetch_optional(db)
        .await?;
    row.map_or(Ok(UsdCents::ZERO), |row| {
        Ok(UsdCents::new(row.number("balance_cents")?))
    })
}

/// What a batch of entries does to the accounts that it touches, in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct AccountChanges {
    by_id: BTreeMap<String, (Account, Change)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Change {
    balance: i64,
    held: i64,
}

static CHANGE_ACCOUNTS: Bulk = Bulk::new(
    "UPDATE accounts
     SET balance_cents = balance_cents + v.column2,
         held_cents = held_cents + v.column3",
    3,
    "WHERE accounts.id = v.column1",
);

impl AccountChanges {
    pub(crate) fn add(&mut self, entry: &Entry) {
        self.change(&entry.from).balance -= entry.amount.get();
        self.change(&entry.to).balance += entry.amount.get();
    }

    /// Changes what is held of a buyer's balance (on a shared store).
    pub(crate) fn hold(&mut self, buyer: &CompanyId, cents: i64) {
        self.change(&Account::Buyer(buyer.clone())).held += cents;
    }

    fn change(&mut self, account: &Account) -> &mut Change {
        let entry = self.by_id.entry(account.id());
        &mut entry
            .or_insert_with(|| (account.clone(), Change::default()))
            .1
    }

    pub(crate) fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.by_id.values().map(|(account, _)| account)
    }

    /// Every account with what it gains in all.
    fn gains(&self) -> impl Iterator<Item = (&Account, UsdCents)> {
        self.by_id
            .values()
            .map(|(account, change)| (account, UsdCents::new(change.balance)))
    }

    /// Applies the changes; every account must exist.
    pub(crate) fn apply(&self, script: &mut Script) {
        let rows: Vec<_> = self
            .by_id
            .iter()
            .map(|(id, (_, change))| (id, *change))
            .collect();
        script.add(&CHANGE_ACCOUNTS, &rows, |values, row| {
            values
                .text(row.map(|(id, _)| id.as_str()))
                .number(row.map(|(_, change)| change.balance))
                .number(row.map(|(_, change)| change.held));
        });
    }
}

static ENSURE_ACCOUNTS: Bulk = Bulk::new(
    "INSERT INTO accounts (id, kind, company_id)
     SELECT column1, column2, column3",
    3,
    "WHERE column1 IS NOT NULL
     ON CONFLICT (id) DO NOTHING",
);

/// Opens the accounts that do not exist yet. Accounts are never closed.
pub(crate) async fn ensure_accounts(
    db: &mut AnyConnection,
    accounts: impl Iterator<Item = &Account>,
) -> Result<(), StoreError> {
    let rows: Vec<_> = accounts.map(|account| (account.id(), account)).collect();
    ENSURE_ACCOUNTS
        .run(db, &rows, |values, row| {
            values
                .text(row.map(|(id, _)| id.as_str()))
                .text(row.map(|(_, account)| account.kind()))
                .text(
                    row.and_then(|(_, account)| account.company())
                        .map(CompanyId::as_str),
                );
        })
        .await?;
    Ok(())
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
            .text(row.and_then(|t| t.key.as_ref()).map(KeyId::as_str))
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

/// Whether a transaction was booked: what to ask when the outcome of a commit is unknown.
pub async fn exists(db: &mut AnyConnection, id: &TransactionId) -> Result<bool, StoreError> {
    let row = sqlx::query("SELECT id FROM transactions WHERE id = $1")
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    Ok(row.is_some())
}

/// What an account holds and how much of it is reserved (on a shared store).
pub(crate) async fn balance_and_held(
    db: &mut AnyConnection,
    account: &Account,
) -> Result<(UsdCents, UsdCents), StoreError> {
    let row = sqlx::query("SELECT balance_cents, held_cents FROM accounts WHERE id = $1")
        .bind(account.id())
        .fetch_optional(db)
        .await?;
    match row {
        Some(row) => Ok((
            UsdCents::new(row.number("balance_cents")?),
            UsdCents::new(row.number("held_cents")?),
        )),
        None => Ok((UsdCents::ZERO, UsdCents::ZERO)),
    }
}

/// What all holds on a shared store add up to.
pub(crate) async fn held_in_all(db: &mut AnyConnection) -> Result<UsdCents, StoreError> {
    let row =
        sqlx::query("SELECT CAST(COALESCE(SUM(held_cents), 0) AS BIGINT) AS held FROM accounts")
            .fetch_one(db)
            .await?;
    Ok(UsdCents::new(row.number("held")?))
}

/// Every buyer's balance.
pub(crate) async fn buyer_balances(
    db: &mut AnyConnection,
) -> Result<Vec<(Account, UsdCents)>, StoreError> {
    let rows = sqlx::query("SELECT id, balance_cents FROM accounts WHERE kind = 'buyer'")
        .fetch_all(db)
        .await?;
    rows.iter()
        .map(|row| {
            let id = row.text("id")?;
            let account = Account::parse(&id).ok_or_else(|| corrupt("id", id))?;
            Ok((account, UsdCents::new(row.number("balance_cents")?)))
        })
        .collect()
}

static LOCK: Bulk = Bulk::new(
    "SELECT id, balance_cents, held_cents FROM accounts WHERE id IN (SELECT column1",
    1,
    ") ORDER BY id FOR UPDATE",
);

/// Locks accounts on a shared store, in the order of their ids so that no two hosts wait for each other in a circle. Returns balance and
/// held cents by account id; accounts that do not exist are absent.
pub(crate) async fn lock(
    db: &mut AnyConnection,
    mut accounts: Vec<Account>,
) -> Result<HashMap<String, (i64, i64)>, StoreError> {
    let mut ids: Vec<String> = accounts.drain(..).map(|account| account.id()).collect();
    ids.sort_unstable();
    ids.dedup();
    let rows = LOCK
        .fetch(db, &ids, |values, row| {
            values.text(row.map(String::as_str));
        })
        .await?;
    rows.iter()
        .map(|row| {
            Ok((
                row.text("id")?,
                (row.number("balance_cents")?, row.number("held_cents")?),
            ))
        })
        .collect()
}
