use super::shape::ProductOut;
use crate::large::Large;
use crate::query::{choices, parameters};
use crate::refusals::INVALID_PARAMETER;
use crate::{ApiState, Caller, FieldError, Integer, Operation, Problem, Query, Slice, Text};
use axum::extract::State;
use souk_domain::money::CREDITS_MAX;
use souk_domain::products::{ProductType, ResultType};
use souk_domain::time::DAY;
use souk_store::Part;
use souk_store::lists::OFFSET_MAX;
use souk_store::marketplace;
use souk_store::search::{Order, Wanted as Searched};

const LIMIT_DEFAULT: i64 = 20;

choices! {
    impl ProductType {
        Asset = "asset",
        Endpoint = "endpoint",
    }
}

choices! {
    impl ResultType {
        Number = "number",
        String = "string",
        Chart = "chart",
        Prediction = "prediction",
    }
}

choices! {
    pub enum SortBy {
        Relevance = "relevance",
        Recent = "recent",
        Name = "name",
        Popular = "popular",
        Trending = "trending",
        Price = "price_credits",
    }
}

parameters! {
    pub struct Wanted {
        /// Words of the name, the tags, the category, the sport, the description or the seller's name. A product has to have each of
        /// the first eight: the word itself, one that begins with it, or one that differs by one typing error.
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
        /// Only assets with such a result.
        result_type: Option<ResultType>,
        /// Only products whose source is of this storage engine.
        engine_id: Option<Integer<1, { i64::MAX }>>,
        /// Only products that cost at least this a call.
        min_price_credits: Option<Integer<0, { CREDITS_MAX }>>,
        /// Only products that cost at most this a call.
        max_price_credits: Option<Integer<0, { CREDITS_MAX }>>,
        /// Only products whose preview was taken in so many days.
        fresh_within_days: Option<Integer<1, 3_650>>,
        /// Only products that may, or may not, be used to train AI.
        ai_training_allowed: Option<bool>,
        /// `relevance` (default with `q`): the best match first; `recent` (default without): newest first; `popular`: most successful calls by others than the
        /// seller in 30 UTC dates first; `trending`: most more such calls in the last 7 dates than in the 7 before first; `price_credits`:
        /// cheapest first. Calls are counted anew every five minutes.
        sort_by: Option<SortBy>,
        /// Products per answer.
        limit: Integer<1, 100> = Integer::of(LIMIT_DEFAULT),
        /// Products to skip.
        offset: Integer<0, { OFFSET_MAX }> = Integer::of(0),
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
) -> Result<Large<Slice<ProductOut>>, Problem> {
    let (price_min, price_max) = (
        query.min_price_credits.map(Integer::get),
        query.max_price_credits.map(Integer::get),
    );
    if price_min.zip(price_max).is_some_and(|(min, max)| min > max) {
        let message = "must not be above max_price_credits";
        let errors = vec![FieldError::new("min_price_credits", "invalid", message)];
        return Err(Problem::fields(INVALID_PARAMETER, errors));
    }
    let now = caller.now();
    let days = query.fresh_within_days.map(|days| days.get() as u32);
    let wanted = Searched {
        text: query.q.as_deref().filter(|text| !text.trim().is_empty()),
        own: None,
        product_type: query.product_type,
        category: query.category.as_deref(),
        sport: query.sport.as_deref(),
        result_type: query.result_type,
        engine: query.engine_id.map(Integer::get),
        industry: query.industry_id.map(Integer::get),
        use_case: query.use_case_id.map(Integer::get),
        price_min,
        price_max,
        ai_training_allowed: query.ai_training_allowed,
        sampled_since: days.map(|days| now.before(DAY * days)),
    };
    let order = match query.sort_by {
        Some(SortBy::Recent) => Order::Recent,
        Some(SortBy::Name) => Order::Name,
        Some(SortBy::Popular) => Order::Popular,
        Some(SortBy::Trending) => Order::Trending,
        Some(SortBy::Price) => Order::Price,
        Some(SortBy::Relevance) | None => Order::Relevance,
    };
    let (limit, offset) = (query.limit.get(), query.offset.get());
    let mut read = api.db().read().await?;
    let part = Part::new(limit, offset);
    let listed = marketplace::list(&mut read, caller.company(), &wanted, order, now, part).await?;
    let (listings, total) = listed;
    let ids = listings.iter().map(|listing| listing.id.as_str());
    let stats = marketplace::stats(&mut read, ids, now).await?;
    // Whoever waits for a turn to compute holds no reader.
    drop(read);
    let bytes = listings.iter().map(ProductOut::bytes).sum();
    let show = move || {
        let shown = listings.into_iter().map(|listing| {
            let stats = stats.get(&listing.id).copied().unwrap_or_default();
            ProductOut::new(listing, stats)
        });
        Ok(Slice {
            data: shown.collect(),
            total,
            limit,
            offset,
        })
    };
    Large::show(&api, &caller, bytes, show).await
}
