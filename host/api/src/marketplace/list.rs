use super::shape::ProductOut;
use crate::{ApiState, Caller, Operation, Param, ParamKind, Problem, Query, Shape, Slice, schema};
use axum::extract::State;
use souk_domain::money::CREDITS_MAX;
use souk_domain::products::ProductType;
use souk_store::marketplace::{self, Filter, Sort};

const LIMIT_DEFAULT: i64 = 20;

const Q: Param = Param {
    name: "q",
    kind: ParamKind::Text { chars_max: 200 },
    about: "Occurs in the name, the description or the seller's name.",
};
const PRODUCT_TYPE: Param = Param {
    name: "product_type",
    kind: ParamKind::OneOf(&["asset", "endpoint"]),
    about: "Only such products.",
};
const CATEGORY: Param = Param {
    name: "category",
    kind: ParamKind::Text { chars_max: 100 },
    about: "Only products of this category.",
};
const SPORT: Param = Param {
    name: "sport",
    kind: ParamKind::Text { chars_max: 100 },
    about: "Only assets about this sport.",
};
const INDUSTRY_ID: Param = Param {
    name: "industry_id",
    kind: ParamKind::Integer {
        min: 1,
        max: i64::MAX,
    },
    about: "Only products for this industry.",
};
const USE_CASE_ID: Param = Param {
    name: "use_case_id",
    kind: ParamKind::Integer {
        min: 1,
        max: i64::MAX,
    },
    about: "Only products for this use case.",
};
const MAX_PRICE: Param = Param {
    name: "max_price_credits",
    kind: ParamKind::Integer {
        min: 0,
        max: CREDITS_MAX,
    },
    about: "Only products that cost at most this a call.",
};
const AI_TRAINING: Param = Param {
    name: "ai_training_allowed",
    kind: ParamKind::Boolean,
    about: "Only products that may, or may not, be used to train AI.",
};
const SORT_BY: Param = Param {
    name: "sort_by",
    kind: ParamKind::OneOf(&["recent", "name", "popular", "price_credits"]),
    about: "`recent` (default): newest first; `popular`: most called in 30 days first; `price_credits`: cheapest first.",
};
const LIMIT: Param = Param {
    name: "limit",
    kind: ParamKind::Integer { min: 1, max: 100 },
    about: "Products per answer. Default 20.",
};
const OFFSET: Param = Param {
    name: "offset",
    kind: ParamKind::Integer {
        min: 0,
        max: 1_000_000,
    },
    about: "Products to skip. Default 0.",
};

pub const OPERATION: Operation = Operation::get("list_products", "/marketplace/products")
    .about("Marketplace", "Find products")
    .notes("Published products of companies in good standing. `access` is what your company has of each.")
    .query(&[
        Q,
        PRODUCT_TYPE,
        CATEGORY,
        SPORT,
        INDUSTRY_ID,
        USE_CASE_ID,
        MAX_PRICE,
        AI_TRAINING,
        SORT_BY,
        LIMIT,
        OFFSET,
    ])
    .returns(200, Shape::Slice(schema::<ProductOut>));

/// Lists what is on sale.
pub async fn list_products(
    State(api): State<ApiState>,
    caller: Caller,
    query: Query,
) -> Result<Slice<ProductOut>, Problem> {
    let filter = Filter {
        text: query.text("q").filter(|text| !text.is_empty()),
        product_type: query.text("product_type").and_then(ProductType::parse),
        category: query.text("category"),
        sport: query.text("sport"),
        industry: query.integer("industry_id"),
        use_case: query.integer("use_case_id"),
        price_max: query.integer("max_price_credits"),
        ai_training_allowed: query.boolean("ai_training_allowed"),
    };
    let sort = match query.text("sort_by") {
        Some("name") => Sort::Name,
        Some("popular") => Sort::Popular,
        Some("price_credits") => Sort::Price,
        _ => Sort::Recent,
    };
    let limit = query.integer("limit").unwrap_or(LIMIT_DEFAULT);
    let offset = query.integer("offset").unwrap_or(0);
    let now = caller.now();
    let mut read = api.db().read().await?;
    let (listings, total) = marketplace::list(
        &mut read,
        caller.company(),
        &filter,
        sort,
        now,
        limit,
        offset,
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
