use super::shape::ProductOut;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, Integer, Operation, Problem, Query, Slice, Text};
use axum::extract::State;
use souk_domain::money::CREDITS_MAX;
use souk_domain::products::ProductType;
use souk_store::Part;
use souk_store::lists::OFFSET_MAX;
use souk_store::marketplace::{self, ListingFilter, Sort};

const LIMIT_DEFAULT: i64 = 20;

choices! {
    impl ProductType {
        Asset = "asset",
        Endpoint = "endpoint",
    }
}

choices! {
    pub enum SortBy {
        Recent = "recent",
        Name = "name",
        Popular = "popular",
        Price = "price_credits",
    }
}

parameters! {
    pub struct Wanted {
        /// Occurs in the name, the description or the seller's name.
        q: Option<Text<0, 200>>,
        /// Only such products.
        product_type: Option<ProductType>,
        /// Only products of this category.
        category: Option<Text<0, 100>>,
        /// Only assets about this sport.
        sport: Option<Text<0, 100>>,
        /// Only products for this industry.
        industry_id: Option<Integer<1, { i64::MAX }>>,
        /// Only products for this use case.
        use_case_id: Option<Integer<1, { i64::MAX }>>,
        /// Only products that cost at most this a call.
        max_price_credits: Option<Integer<0, { CREDITS_MAX }>>,
        /// Only products that may, or may not, be used to train AI.
        ai_training_allowed: Option<bool>,
        /// `recent` (default): newest first; `popular`: most called in 30 days first; `price_credits`: cheapest first.
        sort_by: Option<SortBy>,
        /// Products per answer. Default 20.
        limit: Option<Integer<1, 100>>,
        /// Products to skip. Default 0.
        offset: Option<Integer<0, { OFFSET_MAX }>>,
    }
}

pub const OPERATION: Operation = Operation::get("list_products", "/marketplace/products")
    .about("Marketplace", "Find products")
    .notes("Published products of companies in good standing. `access` is what your company has of each.");

/// Lists what is on sale.
pub async fn list_products(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
) -> Result<Slice<ProductOut>, Problem> {
    let filter = ListingFilter {
        text: query.q.as_deref().filter(|text| !text.is_empty()),
        product_type: query.product_type,
        category: query.category.as_deref(),
        sport: query.sport.as_deref(),
        industry: query.industry_id.map(Integer::get),
        use_case: query.use_case_id.map(Integer::get),
        price_max: query.max_price_credits.map(Integer::get),
        ai_training_allowed: query.ai_training_allowed,
    };
    let sort = match query.sort_by {
        Some(SortBy::Name) => Sort::Name,
        Some(SortBy::Popular) => Sort::Popular,
        Some(SortBy::Price) => Sort::Price,
        Some(SortBy::Recent) | None => Sort::Recent,
    };
    let limit = query.limit.map_or(LIMIT_DEFAULT, Integer::get);
    let offset = query.offset.map_or(0, Integer::get);
    let now = caller.now();
    let mut read = api.db().read().await?;
    let (listings, total) = marketplace::list(
        &mut read,
        caller.company(),
        &filter,
        sort,
        now,
        Part::new(limit, offset),
    )
    .await?;
    let ids = listings.iter().map(|listing| listing.id.as_str());
    let stats = marketplace::stats(&mut read, ids, now).await?;
    let data = listings.into_iter().map(|listing| {
        let stats = stats.get(&listing.id).copied().unwrap_or_default();
        ProductOut::new(listing, stats)
    });
    let data = data.collect();
    Ok(Slice {
        data,
        total,
        limit,
        offset,
    })
}
