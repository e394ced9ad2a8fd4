//! A product as buyers see it.

use crate::money::Usd;
use crate::money::usd;
use crate::products::labels::Labels;
use crate::words;
use serde::Serialize;
use serde_json::Number;
use souk_app::definition::Field;
use souk_app::products::Learned;
use souk_domain::money::Credits;
use souk_domain::products::ProductType;
use souk_domain::time::Timestamp;
use souk_store::marketplace::{Listing, Stats};
use souk_store::purchases::TERMS_VERSION;
use utoipa::ToSchema;

const AI_ALLOWED: &str = "What you buy may be used to train AI and machine learning models. It may not be redistributed, resold or sublicensed.";
const AI_EXCLUDED: &str = "The seller excludes this product from the training of AI and machine learning models. It may not be redistributed, resold or sublicensed.";

#[derive(Serialize, ToSchema)]
#[schema(as = Product)]
pub struct ProductOut {
    /// That of its asset or endpoint.
    id: String,
    #[schema(value_type = words::ProductType)]
    product_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    asset_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint_id: Option<String>,
    company: Seller,
    name: String,
    slug: String,
    description: String,
    category: Option<String>,
    sport: Option<String>,
    industry_ids: Vec<i64>,
    use_case_ids: Vec<i64>,
    tags: Vec<String>,
    #[schema(value_type = words::BillingUnit)]
    billing_unit: &'static str,
    /// Null: not priced yet, so it cannot be called yet.
    #[schema(minimum = 0)]
    price_credits: Option<i64>,
    /// What these credits are: a price of 1.20 is paid with three, which are 1.50.
    #[schema(value_type = Option<Usd>)]
    price_usd: Option<Number>,
    /// Of an asset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<words::ResultType>)]
    result_type: Option<String>,
    /// Of an endpoint: the columns of its rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<ProductField>>,
    /// False after a change of what the seller sells, until it is tested or published again.
    preview_available: bool,
    ai_training: AiTraining,
    terms: Terms,
    stats: ProductStats,
    access: AccessOut,
    #[schema(value_type = Option<String>, format = DateTime)]
    published_at: Option<Timestamp>,
}

#[derive(Clone, Serialize, ToSchema)]
#[schema(as = ProductSeller)]
pub struct Seller {
    pub id: String,
    pub name: String,
    pub handle: String,
}

#[derive(Serialize, ToSchema)]
struct ProductField {
    /// As it is called in a row.
    name: String,
    r#type: Option<String>,
    description: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct AiTraining {
    allowed: bool,
    notice: &'static str,
}

#[derive(Serialize, ToSchema)]
struct Terms {
    redistribution: bool,
    resale: bool,
    sublicensing: bool,
    version: &'static str,
}

/// Calls by others than the seller in the last 30 days.
#[derive(Serialize, ToSchema)]
struct ProductStats {
    /// Companies that hold a purchase today.
    #[schema(minimum = 0)]
    buyers: i64,
    #[schema(minimum = 0)]
    calls_30d: i64,
    /// Of the calls that did not fail for what their caller sent or for this host's own reasons; null without any.
    #[schema(minimum = 0, maximum = 100)]
    success_percent_30d: Option<i64>,
    #[schema(minimum = 0)]
    average_duration_ms_30d: Option<i64>,
}

/// What the caller's company has of it.
#[derive(Serialize, ToSchema)]
#[schema(as = ProductAccess)]
struct AccessOut {
    purchased: bool,
    purchase_id: Option<String>,
    endpoint_key_id: Option<String>,
}

impl ProductOut {
    /// What is stored of it, without what is short.
    pub fn bytes(listing: &Listing) -> usize {
        let long = [&listing.fields, &listing.learned];
        let long = long.into_iter().flatten().map(String::len);
        listing.description.len() + long.sum::<usize>()
    }

    pub fn new(listing: Listing, stats: Stats) -> ProductOut {
        let labels = Labels::stored(&listing.labels);
        let is_asset = listing.product_type == ProductType::Asset;
        let calls = stats.succeeded + stats.failed;
        ProductOut {
            asset_id: is_asset.then(|| listing.id.clone()),
            endpoint_id: (!is_asset).then(|| listing.id.clone()),
            fields: fields(&listing),
            id: listing.id,
            product_type: listing.product_type.as_str(),
            company: Seller {
                id: listing.company_id.to_string(),
                name: listing.company_name,
                handle: listing.company_handle,
            },
            name: listing.name,
            slug: listing.slug,
            description: listing.description,
            category: listing.category,
            sport: listing.sport,
            industry_ids: labels.industry_ids,
            use_case_ids: labels.use_case_ids,
            tags: labels.tags,
            billing_unit: listing.product_type.billing_unit(),
            price_credits: listing.price.map(Credits::get),
            price_usd: listing.price.map(|credits| usd(credits.cents())),
            result_type: listing.result_type,
            preview_available: listing.has_sample,
            ai_training: AiTraining {
                allowed: listing.ai_training_allowed,
                notice: match listing.ai_training_allowed {
                    true => AI_ALLOWED,
                    false => AI_EXCLUDED,
                },
            },
            terms: Terms {
                redistribution: false,
                resale: false,
                sublicensing: false,
                version: TERMS_VERSION,
            },
            stats: ProductStats {
                buyers: stats.buyers,
                calls_30d: calls,
                success_percent_30d: (stats.succeeded * 100).checked_div(calls - stats.excused),
                average_duration_ms_30d: (stats.duration_us / 1_000).checked_div(calls),
            },
            access: AccessOut {
                purchased: listing.purchase.is_some(),
                purchase_id: listing.purchase.as_ref().map(|(id, _)| id.to_string()),
                endpoint_key_id: listing
                    .purchase
                    .and_then(|(_, key)| key)
                    .map(|key| key.to_string()),
            },
            published_at: listing.published_at,
        }
    }
}

/// The published columns, under the names and with the types that rows have. The source's own names stay the seller's.
fn fields(listing: &Listing) -> Option<Vec<ProductField>> {
    let fields: Vec<Field> = serde_json::from_str(listing.fields.as_deref()?).unwrap_or_default();
    let learned: Learned = listing
        .learned
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let published = fields.into_iter().map(|field| ProductField {
        name: field.published().to_owned(),
        r#type: learned.kind(&field.name).map(str::to_owned),
        description: field.description,
    });
    Some(published.collect())
}
