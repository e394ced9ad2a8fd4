//! A purchase as its buyer sees it.

use super::beside::Beside;
use crate::keys::shape::KeyOut;
use crate::marketplace::shape::Seller;
use crate::words;
use crate::{CreatedOnce, Data, Either};
use serde::Serialize;
use souk_domain::ids::{CompanyId, KeyId, PurchaseId};
use souk_domain::money::Credits;
use souk_domain::time::Timestamp;
use souk_store::marketplace;
use souk_store::purchases::Purchase;
use utoipa::ToSchema;

/// What was bought, as it is today.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = PurchasedProduct)]
pub struct ProductOut {
    name: String,
    slug: String,
    company: Seller,
    /// `unpublished`: it stays with those who have bought it. `archived`: nobody can call it any more.
    #[schema(value_type = words::ProductStatus)]
    status: &'static str,
    /// What a call costs today.
    #[schema(minimum = 0)]
    price_credits: Option<i64>,
}

impl ProductOut {
    fn of(product: &marketplace::Bought) -> ProductOut {
        ProductOut {
            name: product.name.clone(),
            slug: product.slug.clone(),
            company: Seller {
                id: product.company_id.to_string(),
                name: product.company_name.clone(),
                handle: product.company_handle.clone(),
            },
            status: product.status.as_str(),
            price_credits: product.price.map(Credits::get),
        }
    }
}

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
    pub product: ProductOut,
    #[schema(minimum = 0)]
    pub price_credits_at_purchase: i64,
    /// As it was when the terms were accepted.
    pub ai_training_allowed: bool,
    pub terms_version: String,
    #[schema(value_type = String, format = DateTime)]
    pub accepted_at: Timestamp,
    /// The key or user that accepted, or `staff`: of the platform.
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
    pub fn of(purchase: &Purchase, beside: &Beside, endpoint_key: Option<KeyOut>) -> PurchaseOut {
        PurchaseOut {
            id: purchase.id.clone(),
            company_id: purchase.company_id.clone(),
            product_id: purchase.product_id.clone(),
            product_type: purchase.product_type.as_str(),
            product: ProductOut::of(&beside.product),
            price_credits_at_purchase: purchase.credits.get(),
            ai_training_allowed: purchase.ai_training_allowed,
            terms_version: purchase.terms_version.clone(),
            accepted_at: purchase.accepted_at,
            accepted_by: purchase.accepted_by.clone(),
            status: purchase.status.as_str(),
            endpoint_key_id: purchase.endpoint_key_id.clone(),
            executions: beside.used.executions,
            credits_spent: beside.used.credits,
            created_at: purchase.created_at,
            endpoint_key,
        }
    }
}

/// What there is already, or what was made just now.
pub type Bought = Either<Data<PurchaseOut>, CreatedOnce<PurchaseOut>>;
