//! A purchase as its buyer sees it.

use crate::keys::shape::KeyOut;
use crate::words;
use crate::{CreatedOnce, Data, Either};
use serde::Serialize;
use souk_domain::ids::{CompanyId, KeyId, PurchaseId};
use souk_domain::time::Timestamp;
use souk_store::purchases::{Purchase, Used};
use utoipa::ToSchema;

#[derive(Clone, Serialize, ToSchema)]
#[schema(as = Purchase)]
pub struct PurchaseOut {
    #[schema(value_type = String)]
    pub id: PurchaseId,
    #[schema(value_type = String)]
    pub company_id: CompanyId,
    /// The id of the asset or endpoint.
    pub product_id: String,
    #[schema(value_type = words::ProductType)]
    pub product_type: &'static str,
    #[schema(minimum = 0)]
    pub price_credits_at_purchase: i64,
    /// As it was when the terms were accepted.
    pub ai_training_allowed: bool,
    pub terms_version: String,
    #[schema(value_type = String, format = DateTime)]
    pub accepted_at: Timestamp,
    pub accepted_by: String,
    #[schema(value_type = words::PurchaseStatus)]
    pub status: &'static str,
    #[schema(value_type = Option<String>)]
    pub endpoint_key_id: Option<KeyId>,
    /// Successful calls of the product.
    #[schema(minimum = 0)]
    pub executions: i64,
    /// Refunds deducted.
    #[schema(minimum = 0)]
    pub credits_spent: i64,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// With the full key in the answer that provisions it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_key: Option<KeyOut>,
}

impl PurchaseOut {
    pub fn of(purchase: &Purchase, used: Used, endpoint_key: Option<KeyOut>) -> PurchaseOut {
        PurchaseOut {
            id: purchase.id.clone(),
            company_id: purchase.company_id.clone(),
            product_id: purchase.product_id.clone(),
            product_type: purchase.product_type.as_str(),
            price_credits_at_purchase: purchase.credits.get(),
            ai_training_allowed: purchase.ai_training_allowed,
            terms_version: purchase.terms_version.clone(),
            accepted_at: purchase.accepted_at,
            accepted_by: purchase.accepted_by.clone(),
            status: purchase.status.as_str(),
            endpoint_key_id: purchase.endpoint_key_id.clone(),
            executions: used.executions,
            credits_spent: used.credits,
            created_at: purchase.created_at,
            endpoint_key,
        }
    }
}

/// What there is already, or what was made just now.
pub type Bought = Either<Data<PurchaseOut>, CreatedOnce<PurchaseOut>>;
