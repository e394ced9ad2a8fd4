//! A company's statement: its transactions as it sees them. What is a charge to the buyer is an earning to the seller.
//!
//! A company may have millions of lines: pages are found by indexes in their order, how many there are in all is added up from hours
//! ([`counted`]), and what was earned is read from accounts (decision 68).

pub mod counted;

use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::ledger::{self, Account, Transaction, TransactionType};
use crate::lists::{self, Listed, Part, Values};
use souk_domain::ids::{CompanyId, TransactionId};
use souk_domain::money::{CENTS_PER_CREDIT, SELLER_CENTS_PER_CREDIT, UsdCents};
use souk_domain::products::ProductType;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use counted::Lines;

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

/// Beside the columns: whose the key or user is that asked, but of charges, which only the buyer's own ask for.
macro_rules! asked_by {
    () => {
        "CASE WHEN t.type <> 'charge' THEN COALESCE((SELECT a.company_id FROM api_keys a WHERE a.id = t.api_key_id),
                                                    (SELECT u.company_id FROM users u WHERE u.id = t.api_key_id)) END AS asked_by"
    };
}

/// Lines that are looked through for those of a product, or of a type among others: about a second of a reader. Whoever has more names a period.
pub const SEARCHED_MAX: i64 = 1_000_000;

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error("{0} lines of the period would have to be looked through")]
    TooMany(i64),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// By time first: texts of ids are sorted as the database's collation has it.
const ORDER: &str = "created_at DESC, id DESC";

impl LineFilter {
    fn begins(&self) -> i64 {
        self.from.map_or(0, Timestamp::micros)
    }

    fn ends(&self) -> i64 {
        self.to.map_or(i64::MAX, Timestamp::micros)
    }

    /// Where lines are found: each part has an index in whose order they come. No transaction is both the company's and earned by it: what is one's
    /// own costs nothing.
    fn parts(&self) -> &'static [&'static str] {
        match self.kind {
            None => &[
                "company_id = $1 AND type NOT IN ('maturity', 'payout_paid')",
                "seller_id = $1",
            ],
            Some(LineType::Charge) => &["company_id = $1 AND type = 'charge'"],
            Some(LineType::Earning) => &["seller_id = $1 AND type = 'charge'"],
            Some(LineType::Refund) => &[
                "company_id = $1 AND type = 'refund'",
                "seller_id = $1 AND type = 'refund'",
            ],
            // What stands first is its index's own.
            Some(LineType::TopUp) => {
                &["company_id = $1 AND type <> 'charge' AND type <> 'refund' AND type = 'top_up'"]
            }
            Some(LineType::Grant) => {
                &["company_id = $1 AND type <> 'charge' AND type <> 'refund' AND type = 'grant'"]
            }
            Some(LineType::Payout) => &[
                "company_id = $1 AND type <> 'charge' AND type <> 'refund' AND type IN ('payout', 'payout_return')",
            ],
            Some(LineType::Adjustment) => &[
                "company_id = $1 AND type <> 'charge' AND type <> 'refund' AND type = 'adjustment'",
            ],
        }
    }

    /// The keys of lines that match, and the number of parameters.
    fn keys(&self) -> (String, usize) {
        let (product, count) = match self.product_id {
            Some(_) => (" AND product_id = $4", 4),
            None => ("", 3),
        };
        let parts = self.parts().iter().map(|part| {
            format!(
                "SELECT created_at, id FROM transactions WHERE {part} AND created_at >= $2 AND created_at < $3{product}"
            )
        });
        // Lists that are in order are merged, so that a deep page takes no memory.
        let keys: Vec<String> = parts.collect();
        (keys.join(" UNION ALL "), count)
    }

    /// How many lines of the period are of the type, whatever the product.
    fn matching(&self, lines: &Lines) -> i64 {
        match self.kind {
            None => lines.own(|_| true) + lines.earned(|_| true),
            Some(LineType::Earning) => lines.earned(|kind| kind == "charge"),
            Some(LineType::Refund) => {
                lines.own(|kind| kind == "refund") + lines.earned(|kind| kind == "refund")
            }
            Some(LineType::Payout) => lines.own(|kind| kind == "payout" || kind == "payout_return"),
            Some(wanted) => lines.own(|kind| kind == wanted.as_str()),
        }
    }

    /// How many lines of the period may be looked at that are not in the list: by no index are they told apart.
    fn searched(&self, lines: &Lines) -> i64 {
        let is_of_product = self.product_id.is_some();
        match self.kind {
            Some(LineType::Charge) => lines.own(|kind| is_of_product || kind != "charge"),
            Some(LineType::Earning) => lines.earned(|kind| is_of_product || kind != "charge"),
            _ if is_of_product => self.matching(lines),
            _ => 0,
        }
    }
}

/// The company's lines, newest first. Where they are many, what a page costs is how deep it is.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    filter: &LineFilter,
    part: Part,
) -> Result<Listed<Line>, ListError> {
    let lines = Lines::of(db, company, filter.begins(), filter.ends()).await?;
    let searched = filter.searched(&lines);
    if searched > SEARCHED_MAX {
        return Err(ListError::TooMany(searched));
    }
    let columns = concat!(columns!(), ", ", asked_by!());
    let of = (columns, "transactions t", "created_at, id");
    let (keys, count) = filter.keys();
    let ordered = (keys.as_str(), ORDER);
    let bind = |values: &mut Values| {
        values
            .text(Some(company.as_str()))
            .number(Some(filter.begins()))
            .number(Some(filter.ends()));
        if let Some(product) = filter.product_id.as_deref() {
            values.text(Some(product));
        }
    };
    let read = |row: &AnyRow| read_line(row, company);
    let listed = match filter.product_id {
        Some(_) => lists::keys_joined(db, of, ordered, count, part, bind, read).await?,
        None => {
            let part = (part, filter.matching(&lines));
            lists::keys_joined_of(db, of, ordered, count, part, bind, read).await?
        }
    };
    Ok(listed)
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
        ", ",
        asked_by!(),
        " FROM transactions t
          WHERE t.id = $1 AND (t.company_id = $2 OR t.seller_id = $2)"
    ))
    .bind(id)
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.map(|row| read_line(&row, company)).transpose()
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

/// What buyers paid and was not given back is where it went to: no other money comes into a seller's accounts. `db` sees one instant.
pub async fn earnings(db: &mut AnyConnection, seller: &CompanyId) -> Result<Earnings, StoreError> {
    let pending = ledger::balance(db, &Account::SellerPending(seller.clone())).await?;
    let payable = ledger::balance(db, &Account::SellerPayable(seller.clone())).await?;
    let in_payout = ledger::balance(db, &Account::SellerInPayout(seller.clone())).await?;
    let paid = sqlx::query(
        "SELECT CAST(COALESCE(SUM(amount_cents), 0) AS BIGINT) AS cents
         FROM payouts
         WHERE company_id = $1 AND status = 'paid'",
    )
    .bind(seller.as_str())
    .fetch_one(db)
    .await?
    .number("cents")?;
    let earned = pending.get() + payable.get() + in_payout.get() + paid;
    Ok(Earnings {
        gross_credits: earned / SELLER_CENTS_PER_CREDIT,
        earned: UsdCents::new(earned),
        pending,
        payable,
        in_payout,
        paid: UsdCents::new(paid),
    })
}

/// Who asked is told to their own company: not the platform's staff to whom they have granted credits.
fn read_line(row: &AnyRow, company: &CompanyId) -> Result<Line, StoreError> {
    let mut transaction = from_row(row)?;
    let asked_by: Option<CompanyId> = row.id_opt("asked_by")?;
    if asked_by.is_some_and(|by| by != *company) {
        transaction.actor = None;
    }
    Ok(line(transaction, company))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::Plans;

    /// However many lines there are, and whichever are asked for, a page is found by indexes in its order, and nothing is sorted but what is of one
    /// instant.
    #[tokio::test]
    async fn pages_are_found_by_indexes() {
        const MONEY: &[&str] = &["transactions_of_money"];
        let plans = Plans::open().await;
        let kinds = LineType::ALL.map(Some).into_iter();
        for kind in kinds.chain([None]) {
            let expected: &[&str] = match kind {
                None => &["transactions_by_company", "transactions_by_seller"],
                Some(LineType::Charge) => &["transactions_by_company"],
                Some(LineType::Earning) => &["transactions_by_seller"],
                Some(LineType::Refund) => &[
                    "transactions_of_buyers_refunds",
                    "transactions_of_sellers_refunds",
                ],
                Some(_) => MONEY,
            };
            let filter = LineFilter {
                kind,
                ..LineFilter::default()
            };
            let (keys, _) = filter.keys();
            let page = format!("{keys} ORDER BY {ORDER} LIMIT $4 OFFSET $5");
            let steps = plans.steps(&page).await;
            let searches = steps.iter().filter_map(|step| {
                let index = step.split_once("SEARCH transactions USING INDEX ")?.1;
                index.split(' ').next()
            });
            let searches: Vec<&str> = searches.collect();
            assert_eq!(searches, expected, "{kind:?} {steps:#?}");
            let is_sorted = steps.iter().any(|step| step.ends_with("FOR ORDER BY"));
            assert!(!is_sorted, "{kind:?} {steps:#?}");
        }
    }
}
