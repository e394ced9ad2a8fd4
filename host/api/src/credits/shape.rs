//! A line of a company's statement.

use crate::words;
use serde::Serialize;
use souk_domain::time::Timestamp;
use souk_store::statements::{Line, LineType};
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = Transaction)]
pub struct TransactionOut {
    pub id: String,
    #[schema(value_type = words::TransactionType)]
    pub r#type: &'static str,
    #[schema(value_type = words::TransactionStatus)]
    pub status: &'static str,
    /// Signed: what it added to the company's credits. Of an earning, what the buyer paid; negative when it was refunded.
    pub amount_credits: i64,
    /// Signed. Of an earning, the seller's share.
    pub amount_usd_cents: i64,
    pub balance_after_credits: Option<i64>,
    pub product_id: Option<String>,
    pub purchase_id: Option<String>,
    pub execution_id: Option<String>,
    /// Who asked for it: `null` where another company did, or the platform's staff.
    pub api_key_id: Option<String>,
    pub request_id: Option<String>,
    pub reversal_of: Option<String>,
    pub description: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub posted_at: Timestamp,
}

impl From<Line> for TransactionOut {
    fn from(line: Line) -> TransactionOut {
        let transaction = line.transaction;
        // A charge is asked for by the buyer's key, a refund by the seller's or the platform's: the other side does not see it.
        let is_asker = line.is_own != (line.kind == LineType::Refund);
        TransactionOut {
            id: line.id,
            r#type: line.kind.as_str(),
            status: "posted",
            amount_credits: line.credits,
            amount_usd_cents: line.amount.get(),
            balance_after_credits: transaction.balance_after.filter(|_| line.is_own),
            api_key_id: transaction
                .actor
                .filter(|_| is_asker)
                .map(|id| id.to_string()),
            request_id: transaction
                .request
                .filter(|_| is_asker)
                .map(|id| id.to_string()),
            product_id: transaction.product_id,
            purchase_id: transaction.purchase.map(|id| id.to_string()),
            execution_id: transaction.execution.map(|id| id.to_string()),
            reversal_of: line.reversal_of,
            description: transaction.description,
            created_at: transaction.created_at,
            posted_at: transaction.created_at,
        }
    }
}
