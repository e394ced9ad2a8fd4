//! A company's statement: its transactions as it sees them. What is a charge to the buyer is an earning to the seller.

use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::ledger::{self, Account, Transaction, TransactionType};
use crate::lists::{List, Listed, Part, Values};
use souk_domain::ids::{CompanyId, TransactionId};
use souk_domain::money::{CENTS_PER_CREDIT, SELLER_CENTS_PER_CREDIT, UsdCents};
use souk_domain::products::ProductType;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Of a seller's view `ern_…` with the rest of the transaction's id.
    pub id: String,
    /// The line that this one takes back, of the same company's statement.
    pub reversal_of: Option<String>,
    /// False: the company earned by it, as the seller.
    pub is_own: bool,
    pub kind: LineType,
    /// Signed, from the company's point of view. For the seller: the credits that the buyer paid.
    pub credits: i64,
    /// Signed; for the seller its share.
    pub amount: UsdCents,
    /// The transaction as it was booked.
    pub transaction: Transaction,
}

/// The kinds that the interface names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineType {
    TopUp,
    Grant,
    Charge,
    Refund,
    Earning,
    Payout,
    Adjustment,
}

impl LineType {
    const ALL: [Self; 7] = [
        Self::TopUp,
        Self::Grant,
        Self::Charge,
        Self::Refund,
        Self::Earning,
        Self::Payout,
        Self::Adjustment,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TopUp => "top_up",
            Self::Grant => "grant",
            Self::Charge => "charge",
            Self::Refund => "refund",
            Self::Earning => "earning",
            Self::Payout => "payout",
            Self::Adjustment => "adjustment",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Which lines to list.
#[derive(Debug, Clone, Default)]
pub struct LineFilter {
    pub kind: Option<LineType>,
    /// From this instant on.
    pub from: Option<Timestamp>,
    /// Up to, not including, this instant.
    pub to: Option<Timestamp>,
    pub product_id: Option<String>,
}

const EARNING_PREFIX: &str = "ern_";
const TRANSACTION_PREFIX: &str = "txn_";

macro_rules! columns {
    () => {
        "t.id, t.type, t.company_id, t.seller_id, t.amount_credits, t.amount_cents, t.balance_after_credits, t.product_type,
         t.product_id, t.purchase_id, t.price_id, t.execution_id, t.api_key_id, t.request_id, t.reversal_of, t.external_id,
         t.description, t.created_at"
    };
}

/// Lines of the company `$1`: of its own transactions, and of those that it earned by.
static LIST: List = List::new(
    columns!(),
    "FROM transactions t
     WHERE ((t.company_id = $1 AND t.type NOT IN ('maturity', 'payout_paid')
             AND (CAST($2 AS TEXT) IS NULL OR t.type = $2 OR ($2 = 'payout' AND t.type = 'payout_return')))
         OR (t.seller_id = $1
             AND (CAST($2 AS TEXT) IS NULL OR ($2 = 'earning' AND t.type = 'charge') OR ($2 = 'refund' AND t.type = 'refund'))))
       AND (CAST($3 AS BIGINT) IS NULL OR t.created_at >= $3)
       AND (CAST($4 AS BIGINT) IS NULL OR t.created_at < $4)
       AND (CAST($5 AS TEXT) IS NULL OR t.product_id = $5)",
    "t.created_at DESC, t.id DESC",
    5,
);

/// The company's lines, newest first.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    filter: &LineFilter,
    part: Part,
) -> Result<Listed<Line>, StoreError> {
    let bind = |values: &mut Values| {
        values
            .text(Some(company.as_str()))
            .text(filter.kind.map(LineType::as_str))
            .number(filter.from.map(Timestamp::micros))
            .number(filter.to.map(Timestamp::micros))
            .text(filter.product_id.as_deref());
    };
    LIST.fetch(db, part, bind, |row| Ok(line(from_row(row)?, company)))
        .await
}

/// One line of the company, by the transaction's id or the earning's.
pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &str,
) -> Result<Option<Line>, StoreError> {
    let id = match id.strip_prefix(EARNING_PREFIX) {
        Some(rest) => format!("{TRANSACTION_PREFIX}{rest}"),
        None => id.to_owned(),
    };
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM transactions t
          WHERE t.id = $1 AND (t.company_id = $2 OR t.seller_id = $2)"
    ))
    .bind(id)
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.map(|row| Ok(line(from_row(&row)?, company)))
        .transpose()
}

/// A transaction, whoever it concerns.
pub async fn transaction(
    db: &mut AnyConnection,
    id: &TransactionId,
) -> Result<Option<Transaction>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM transactions t WHERE t.id = $1"
    ))
    .bind(id.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// What a seller has earned, in cents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Earnings {
    /// Credits that buyers paid, refunds deducted.
    pub gross_credits: i64,
    pub earned: UsdCents,
    pub pending: UsdCents,
    pub payable: UsdCents,
    /// Asked for, but not paid yet.
    pub in_payout: UsdCents,
    pub paid: UsdCents,
}

pub async fn earnings(db: &mut AnyConnection, seller: &CompanyId) -> Result<Earnings, StoreError> {
    let gross = sqlx::query(
        "SELECT CAST(COALESCE(SUM(-amount_credits), 0) AS BIGINT) AS credits
         FROM transactions
         WHERE seller_id = $1 AND type IN ('charge', 'refund')",
    )
    .bind(seller.as_str())
    .fetch_one(&mut *db)
    .await?
    .number("credits")?;
    let pending = ledger::balance(db, &Account::SellerPending(seller.clone())).await?;
    let payable = ledger::balance(db, &Account::SellerPayable(seller.clone())).await?;
    let in_payout = ledger::balance(db, &Account::SellerInPayout(seller.clone())).await?;
    let earned = gross * SELLER_CENTS_PER_CREDIT;
    Ok(Earnings {
        gross_credits: gross,
        earned: UsdCents::new(earned),
        pending,
        payable,
        in_payout,
        paid: UsdCents::new(earned - pending.get() - payable.get() - in_payout.get()),
    })
}

fn line(transaction: Transaction, company: &CompanyId) -> Line {
    let is_own = transaction.company == *company;
    let sign = match transaction.kind {
        TransactionType::Payout => -1,
        _ => 1,
    };
    if is_own {
        let cents = match transaction.kind {
            TransactionType::Payout | TransactionType::PayoutReturn => {
                sign * transaction.amount.get()
            }
            _ => transaction.credits * CENTS_PER_CREDIT,
        };
        Line {
            id: transaction.id.to_string(),
            reversal_of: transaction.reversal_of.as_ref().map(|id| id.to_string()),
            is_own,
            kind: match transaction.kind {
                TransactionType::TopUp => LineType::TopUp,
                TransactionType::Grant => LineType::Grant,
                TransactionType::Charge => LineType::Charge,
                TransactionType::Refund => LineType::Refund,
                TransactionType::Payout | TransactionType::PayoutReturn => LineType::Payout,
                TransactionType::Maturity
                | TransactionType::PayoutPaid
                | TransactionType::Adjustment => LineType::Adjustment,
            },
            credits: transaction.credits,
            amount: UsdCents::new(cents),
            transaction,
        }
    } else {
        Line {
            id: earning_id(&transaction.id),
            reversal_of: transaction.reversal_of.as_ref().map(earning_id),
            is_own,
            kind: match transaction.kind {
                TransactionType::Refund => LineType::Refund,
                _ => LineType::Earning,
            },
            credits: -transaction.credits,
            amount: UsdCents::new(-transaction.credits * SELLER_CENTS_PER_CREDIT),
            transaction: Transaction {
                balance_after: None,
                ..transaction
            },
        }
    }
}

/// What a transaction is called on the statement of the seller who earned by it.
fn earning_id(id: &TransactionId) -> String {
    let id = id.as_str();
    let rest = id.strip_prefix(TRANSACTION_PREFIX).unwrap_or(id);
    format!("{EARNING_PREFIX}{rest}")
}

fn from_row(row: &AnyRow) -> Result<Transaction, StoreError> {
    let kind = row.text("type")?;
    let product_type = row.text_opt("product_type")?;
    Ok(Transaction {
        id: row.id("id")?,
        kind: TransactionType::parse(&kind).ok_or_else(|| corrupt("type", kind))?,
        company: row.id("company_id")?,
        seller: row.id_opt("seller_id")?,
        credits: row.number("amount_credits")?,
        amount: UsdCents::new(row.number("amount_cents")?),
        balance_after: row.number_opt("balance_after_credits")?,
        product_type: match product_type {
            Some(text) => {
                Some(ProductType::parse(&text).ok_or_else(|| corrupt("product_type", text))?)
            }
            None => None,
        },
        product_id: row.text_opt("product_id")?,
        purchase: row.id_opt("purchase_id")?,
        price: row.id_opt("price_id")?,
        execution: row.id_opt("execution_id")?,
        actor: row.id_opt("api_key_id")?,
        request: row.id_opt("request_id")?,
        reversal_of: row.id_opt("reversal_of")?,
        external_id: row.text_opt("external_id")?,
        description: row.text_opt("description")?,
        created_at: row.time("created_at")?,
    })
}
