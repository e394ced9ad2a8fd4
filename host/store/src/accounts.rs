//! Accounts: whose money it is, how much of it, and how batches of entries change balances.

use crate::bulk::{Bulk, Script};
use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use serde::{Deserialize, Serialize};
use souk_domain::ids::CompanyId;
use souk_domain::money::{CENTS_PER_CREDIT, UsdCents};
use souk_domain::payments::CREDITS_LOW_DEFAULT;
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
    /// On its way out: asked for, neither paid nor returned. Never below zero.
    SellerInPayout(CompanyId),
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
            Self::SellerInPayout(company) => format!("seller:{company}:in_payout"),
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
            Self::SellerInPayout(_) => "seller_in_payout",
        }
    }

    pub(crate) const fn company(&self) -> Option<&CompanyId> {
        match self {
            Self::Buyer(company)
            | Self::SellerPending(company)
            | Self::SellerPayable(company)
            | Self::SellerInPayout(company) => Some(company),
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
            ("seller", Some((company, "in_payout"))) => {
                Some(Self::SellerInPayout(company.parse().ok()?))
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
    pub(crate) fn gains(&self) -> impl Iterator<Item = (&Account, UsdCents)> {
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

/// Opens accounts that do not exist yet and locks all of them, on a shared store. One that somebody else opens between the two would else
/// be met later, out of order.
pub(crate) async fn open_and_lock(
    db: &mut AnyConnection,
    accounts: Vec<Account>,
) -> Result<(), StoreError> {
    ensure_accounts(db, accounts.iter()).await?;
    lock(db, accounts).await?;
    Ok(())
}

/// Where an account stands, in cents.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Level {
    pub(crate) balance: i64,
    pub(crate) held: i64,
    /// Below this a buyer's balance is low.
    pub(crate) low: i64,
}

impl Level {
    /// Takes `cents` away. `true`: this took the balance from where it was not low to where it is.
    pub(crate) fn spend(&mut self, cents: i64) -> bool {
        let was_low = self.balance < self.low;
        self.balance -= cents;
        !was_low && self.balance < self.low
    }
}

/// Below how many credits a company's balance is low.
pub async fn low_at(db: &mut AnyConnection, company: &CompanyId) -> Result<i64, StoreError> {
    let row = sqlx::query("SELECT low_credits FROM accounts WHERE id = $1")
        .bind(Account::Buyer(company.clone()).id())
        .fetch_optional(db)
        .await?;
    let chosen = row.map(|row| row.number_opt("low_credits")).transpose()?;
    Ok(chosen.flatten().unwrap_or(CREDITS_LOW_DEFAULT))
}

/// Every buyer that has chosen when its balance is low.
pub(crate) async fn chosen_lows(
    db: &mut AnyConnection,
) -> Result<Vec<(CompanyId, i64)>, StoreError> {
    let rows = sqlx::query(
        "SELECT company_id, low_credits FROM accounts WHERE kind = 'buyer' AND low_credits IS NOT NULL",
    )
    .fetch_all(db)
    .await?;
    rows.iter()
        .map(|row| Ok((row.id("company_id")?, row.number("low_credits")?)))
        .collect()
}

/// Says below how many credits a company's balance is low (`None`: the default), from the next charge on, on every host.
pub async fn set_low_at(
    write: &mut Write,
    company: &CompanyId,
    credits: Option<i64>,
) -> Result<(), StoreError> {
    let account = Account::Buyer(company.clone());
    ensure_accounts(write, std::iter::once(&account)).await?;
    sqlx::query("UPDATE accounts SET low_credits = $2 WHERE id = $1")
        .bind(account.id())
        .bind(credits)
        .execute(&mut **write)
        .await?;
    write.low_at(company, credits);
    Ok(())
}

static LOCK: Bulk = Bulk::new(
    "SELECT id, balance_cents, held_cents, low_credits FROM accounts WHERE id IN (SELECT column1",
    1,
    ") ORDER BY id FOR UPDATE",
);

/// Locks accounts on a shared store, in the order of their ids so that no two hosts wait for each other in a circle. Returns where they
/// stand by account id; accounts that do not exist are absent.
pub(crate) async fn lock(
    db: &mut AnyConnection,
    mut accounts: Vec<Account>,
) -> Result<HashMap<String, Level>, StoreError> {
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
            let low = row.number_opt("low_credits")?;
            let level = Level {
                balance: row.number("balance_cents")?,
                held: row.number("held_cents")?,
                low: low.unwrap_or(CREDITS_LOW_DEFAULT) * CENTS_PER_CREDIT,
            };
            Ok((row.text("id")?, level))
        })
        .collect()
}
