//! A top-up as it is shown.

use crate::money::Usd;
use crate::money::usd;
use crate::words;
use serde::Serialize;
use serde_json::Number;
use souk_domain::ids::{CompanyId, TopUpId};
use souk_domain::time::Timestamp;
use souk_store::top_ups::{TopUp, TopUpStatus};
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = TopUp)]
pub struct TopUpOut {
    #[schema(value_type = String)]
    pub id: TopUpId,
    #[schema(value_type = String)]
    pub company_id: CompanyId,
    #[schema(minimum = 0)]
    pub credits: i64,
    #[schema(value_type = Usd)]
    pub amount_usd: Number,
    #[schema(value_type = words::TopUpStatus)]
    pub status: &'static str,
    /// Who collects the money: `manual`, `stripe`, or `instant` in the demo.
    pub provider: String,
    pub payment_method: Option<String>,
    /// Where to pay, while it is pending.
    pub checkout_url: Option<String>,
    pub failure_reason: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub settled_at: Option<Timestamp>,
}

impl From<TopUp> for TopUpOut {
    fn from(top_up: TopUp) -> TopUpOut {
        let is_pending = top_up.status == TopUpStatus::Pending;
        TopUpOut {
            id: top_up.id,
            company_id: top_up.company_id,
            credits: top_up.credits.get(),
            amount_usd: usd(top_up.credits.cents()),
            status: top_up.status.as_str(),
            provider: top_up.provider,
            payment_method: top_up.payment_method,
            checkout_url: top_up.checkout_url.filter(|_| is_pending),
            failure_reason: top_up.failure_reason,
            created_at: top_up.created_at,
            settled_at: top_up.settled_at,
        }
    }
}
