//! Payouts and payout methods as they are shown: destinations by their last four characters, except to whoever makes the transfer.

use crate::Paging;
use crate::money::Usd;
use crate::money::usd;
use crate::query::{choices, parameters};
use crate::words;
use serde::Serialize;
use serde_json::Number;
use souk_domain::ids::{CompanyId, PayoutId};
use souk_domain::time::Timestamp;
use souk_store::payouts::{KeptMethod, Payout, PayoutStatus};
use utoipa::ToSchema;

choices! {
    impl PayoutStatus {
        Requested = "requested",
        Processing = "processing",
        Paid = "paid",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

parameters! {
    pub struct Wanted {
        ..paging: Paging,
        /// Only payouts in this state.
        status: Option<PayoutStatus>,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = PayoutMethod)]
pub struct MethodOut {
    #[schema(value_type = words::PayoutMethodType)]
    r#type: String,
    account_holder: String,
    /// Masked: `****` and the last four characters.
    destination: String,
    destination_last4: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl From<KeptMethod> for MethodOut {
    fn from(kept: KeptMethod) -> MethodOut {
        MethodOut {
            r#type: kept.method.kind,
            account_holder: kept.method.account_holder,
            destination: format!("****{}", kept.method.last4),
            destination_last4: kept.method.last4,
            created_at: kept.created_at,
            updated_at: kept.updated_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Payout)]
pub struct PayoutOut {
    #[schema(value_type = String)]
    pub id: PayoutId,
    #[schema(value_type = String)]
    pub company_id: CompanyId,
    #[schema(value_type = Usd)]
    pub amount_usd: Number,
    #[schema(value_type = words::PayoutStatus)]
    pub status: &'static str,
    /// The type of the payout method.
    #[schema(value_type = words::PayoutMethodType)]
    pub destination_type: String,
    pub destination_last4: String,
    pub failure_reason: Option<String>,
    /// What proves that it was paid.
    pub reference: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub paid_at: Option<Timestamp>,
}

impl From<Payout> for PayoutOut {
    fn from(payout: Payout) -> PayoutOut {
        PayoutOut {
            id: payout.id,
            company_id: payout.company_id,
            amount_usd: usd(payout.amount),
            status: payout.status.as_str(),
            destination_type: payout.method.kind,
            destination_last4: payout.method.last4,
            failure_reason: payout.failure_reason,
            reference: payout.reference,
            created_at: payout.created_at,
            paid_at: payout.paid_at,
        }
    }
}
