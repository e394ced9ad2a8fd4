//! Proves that the books are right, or finds where they are not. Reads one snapshot and changes nothing.

use crate::db::{self, Db, SWEPT_WITHIN, server_clock};
use crate::error::StoreError;
use crate::fields::Fields;
use souk_domain::time::{DAY, Timestamp};
use sqlx::AnyConnection;

/// Findings of one kind that are listed; the counts go on.
const LISTED_MAX: i64 = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciliation {
    /// Cents over all accounts; zero.
    pub sum_all_accounts: i64,
    pub transactions: i64,
    pub entries: i64,
    /// Holds as rows (on a shared store), and those among them whose time is over.
    pub open_holds: i64,
    pub orphan_holds: i64,
    pub findings: Vec<Finding>,
}

impl Reconciliation {
    pub fn is_balanced(&self) -> bool {
        self.sum_all_accounts == 0 && self.findings.is_empty()
    }
}

/// Something that does not add up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    /// The account, transaction, execution or hold.
    pub id: String,
    pub expected: i64,
    pub found: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// An account's balance is not the sum of its entries (cents).
    AccountBalance,
    /// What an account holds is not the sum of its holds (cents).
    AccountHeld,
    /// A transaction's amount is not the sum of its entries (cents).
    TransactionAmount,
    /// Entries whose transaction does not exist.
    OrphanEntry,
    /// Entries whose account does not exist.
    UnknownAccount,
    /// A charge without its run, or a run whose charge has another amount or does not exist (credits).
    ChargeWithoutRun,
    RunWithoutCharge,
    /// An answered charge that the books refused (credits); `refused_charges` has it whole.
    RefusedCharge,
}

impl FindingKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AccountBalance => "account_balance",
            Self::AccountHeld => "account_held",
            Self::TransactionAmount => "transaction_amount",
            Self::OrphanEntry => "orphan_entry",
            Self::UnknownAccount => "unknown_account",
            Self::ChargeWithoutRun => "charge_without_run",
            Self::RunWithoutCharge => "run_without_charge",
            Self::RefusedCharge => "refused_charge",
        }
    }
}

/// Every check: its kind, and a statement that returns `id`, `expected` and `found` of what fails it.
const CHECKS: &[(FindingKind, &str)] = &[
    (
        FindingKind::AccountBalance,
        "SELECT a.id, CAST(COALESCE(r.total, 0) - COALESCE(p.total, 0) AS BIGINT) AS expected, a.balance_cents AS found
         FROM accounts a
         LEFT JOIN (SELECT to_account, SUM(amount_cents) AS total FROM entries GROUP BY to_account) r ON r.to_account = a.id
         LEFT JOIN (SELECT from_account, SUM(amount_cents) AS total FROM entries GROUP BY from_account) p ON p.from_account = a.id
         WHERE a.balance_cents <> COALESCE(r.total, 0) - COALESCE(p.total, 0)
         ORDER BY a.id
         LIMIT $1",
    ),
    (
        FindingKind::AccountHeld,
        "SELECT a.id, CAST(COALESCE(h.total, 0) AS BIGINT) AS expected, a.held_cents AS found
         FROM accounts a
         LEFT JOIN (SELECT account_id, SUM(amount_cents) AS total FROM holds GROUP BY account_id) h ON h.account_id = a.id
         WHERE a.held_cents <> COALESCE(h.total, 0)
         ORDER BY a.id
         LIMIT $1",
    ),
    (
        FindingKind::TransactionAmount,
        "SELECT t.id, t.amount_cents AS expected, CAST(COALESCE(e.total, 0) AS BIGINT) AS found
         FROM transactions t
         LEFT JOIN (SELECT transaction_id, SUM(amount_cents) AS total FROM entries GROUP BY transaction_id) e
                ON e.transaction_id = t.id
         WHERE t.amount_cents <> COALESCE(e.total, 0)
         ORDER BY t.id
         LIMIT $1",
    ),
    (
        FindingKind::OrphanEntry,
        "SELECT e.transaction_id AS id, CAST(0 AS BIGINT) AS expected, CAST(SUM(e.amount_cents) AS BIGINT) AS found
         FROM entries e
         LEFT JOIN transactions t ON t.id = e.transaction_id
         WHERE t.id IS NULL
         GROUP BY e.transaction_id
         ORDER BY e.transaction_id
         LIMIT $1",
    ),
    (
        FindingKind::UnknownAccount,
        "SELECT x.id, CAST(0 AS BIGINT) AS expected, CAST(COUNT(*) AS BIGINT) AS found
         FROM (SELECT from_account AS id FROM entries UNION ALL SELECT to_account AS id FROM entries) x
         LEFT JOIN accounts a ON a.id = x.id
         WHERE a.id IS NULL
         GROUP BY x.id
         ORDER BY x.id
         LIMIT $1",
    ),
    (
        FindingKind::ChargeWithoutRun,
        "SELECT t.id, -t.amount_credits AS expected, CAST(COALESCE(e.credits, 0) AS BIGINT) AS found
         FROM transactions t
         LEFT JOIN executions e ON e.id = t.execution_id AND e.transaction_id = t.id
         WHERE t.type = 'charge' AND (e.id IS NULL OR e.credits <> -t.amount_credits)
         ORDER BY t.id
         LIMIT $1",
    ),
    (
        FindingKind::RunWithoutCharge,
        "SELECT e.id, e.credits AS expected, CAST(0 AS BIGINT) AS found
         FROM executions e
         LEFT JOIN transactions t ON t.id = e.transaction_id
         WHERE t.id IS NULL AND (e.credits <> 0 OR e.transaction_id IS NOT NULL)
         ORDER BY e.id
         LIMIT $1",
    ),
    (
        FindingKind::RefusedCharge,
        "SELECT execution_id AS id, credits AS expected, CAST(0 AS BIGINT) AS found
         FROM refused_charges
         ORDER BY execution_id
         LIMIT $1",
    ),
];

/// Checks everything. Takes time in proportion to the books; readers and writers go on meanwhile.
pub async fn reconcile(db: &Db, now: Timestamp) -> Result<Reconciliation, StoreError> {
    db.answered(SWEPT_WITHIN, reconciled(db, now)).await
}

async fn reconciled(db: &Db, now: Timestamp) -> Result<Reconciliation, StoreError> {
    let mut snapshot = db.snapshot().await?;
    // What the server's clock shows then: holds expire by it, where they are rows.
    let now = match db.is_shared() {
        true => {
            let ahead_us = server_clock(&mut snapshot).await?.micros() - db::now().micros();
            Timestamp::from_micros(now.micros().saturating_add(ahead_us))
        }
        false => now,
    };
    let sum = "SELECT CAST(COALESCE(SUM(balance_cents), 0) AS BIGINT) AS value FROM accounts";
    let mut reconciliation = Reconciliation {
        sum_all_accounts: value(&mut snapshot, sum).await?,
        transactions: value(&mut snapshot, "SELECT COUNT(*) AS value FROM transactions").await?,
        entries: value(&mut snapshot, "SELECT COUNT(*) AS value FROM entries").await?,
        open_holds: value(&mut snapshot, "SELECT COUNT(*) AS value FROM holds").await?,
        orphan_holds: orphan_holds(&mut snapshot, now).await?,
        findings: Vec::new(),
    };
    for (kind, sql) in CHECKS {
        let rows = sqlx::query(*sql)
            .bind(LISTED_MAX)
            .fetch_all(&mut *snapshot)
            .await?;
        for row in &rows {
            reconciliation.findings.push(Finding {
                kind: *kind,
                id: row.text("id")?,
                expected: row.number("expected")?,
                found: row.number("found")?,
            });
        }
    }
    Ok(reconciliation)
}

async fn value(db: &mut AnyConnection, sql: &'static str) -> Result<i64, StoreError> {
    sqlx::query(sql).fetch_one(db).await?.number("value")
}

async fn orphan_holds(db: &mut AnyConnection, now: Timestamp) -> Result<i64, StoreError> {
    sqlx::query("SELECT COUNT(*) AS value FROM holds WHERE expires_at < $1")
        .bind(now.micros())
        .fetch_one(db)
        .await?
        .number("value")
}

/// What was booked on one day, and what every kind of account held at its end. Cash is what the bank's statement must agree with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day {
    pub booked: Vec<Booked>,
    /// By kind of account, in cents; they add up to zero.
    pub closing: Vec<(String, i64)>,
}

/// The transactions of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booked {
    pub kind: String,
    pub transactions: i64,
    /// As buyers saw it.
    pub credits: i64,
    pub cents: i64,
}

/// The day that begins at `midnight`, UTC.
pub async fn day(db: &Db, midnight: Timestamp) -> Result<Day, StoreError> {
    db.answered(SWEPT_WITHIN, booked_on(db, midnight)).await
}

async fn booked_on(db: &Db, midnight: Timestamp) -> Result<Day, StoreError> {
    let end = midnight.after(DAY);
    let mut snapshot = db.snapshot().await?;
    let rows = sqlx::query(
        "SELECT type, COUNT(*) AS transactions, CAST(SUM(amount_credits) AS BIGINT) AS credits, CAST(SUM(amount_cents) AS BIGINT) AS cents
         FROM transactions
         WHERE created_at >= $1 AND created_at < $2
         GROUP BY type
         ORDER BY type",
    )
    .bind(midnight.micros())
    .bind(end.micros())
    .fetch_all(&mut *snapshot)
    .await?;
    let booked = rows.iter().map(|row| {
        Ok(Booked {
            kind: row.text("type")?,
            transactions: row.number("transactions")?,
            credits: row.number("credits")?,
            cents: row.number("cents")?,
        })
    });
    let booked = booked.collect::<Result<_, StoreError>>()?;
    // Backwards from what accounts hold now: the days since are fewer than those before.
    let rows = sqlx::query(
        "SELECT a.kind, CAST(SUM(a.balance_cents - COALESCE(r.total, 0) + COALESCE(p.total, 0)) AS BIGINT) AS cents
         FROM accounts a
         LEFT JOIN (SELECT e.to_account AS id, SUM(e.amount_cents) AS total
                    FROM transactions t JOIN entries e ON e.transaction_id = t.id
                    WHERE t.created_at >= $1
                    GROUP BY e.to_account) r ON r.id = a.id
         LEFT JOIN (SELECT e.from_account AS id, SUM(e.amount_cents) AS total
                    FROM transactions t JOIN entries e ON e.transaction_id = t.id
                    WHERE t.created_at >= $1
                    GROUP BY e.from_account) p ON p.id = a.id
         GROUP BY a.kind
         ORDER BY a.kind",
    )
    .bind(end.micros())
    .fetch_all(&mut *snapshot)
    .await?;
    let closing = rows
        .iter()
        .map(|row| Ok((row.text("kind")?, row.number("cents")?)))
        .collect::<Result<_, StoreError>>()?;
    Ok(Day { booked, closing })
}
