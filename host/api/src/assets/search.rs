use super::shape::AssetOut;
use crate::products::Offered;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, Found, Integer, Operation, Problem, Query, Text};
use axum::extract::State;
use souk_domain::ids::AssetId;
use souk_domain::products::ProductType;
use souk_domain::time::Timestamp;
use souk_store::lists::OFFSET_MAX;
use souk_store::search::{self, Order, Wanted as Searched};
use souk_store::{AnyConnection, Part, prices, products, saved_schemas};

const LIMIT_DEFAULT: i64 = 20;
/// Enough to look at; more is another search.
const RECOMMENDED_MAX: i64 = 10;

choices! {
    pub enum SortBy {
        Name = "name",
        Recent = "recent",
        Popular = "popular",
        Trending = "trending",
    }
}

parameters! {
    pub struct Wanted {
        /// Words of the name, the tags, the category, the sport, the description or the company's name. An asset has to have each of the first
        /// eight: the word itself, one that begins with it, or one that differs by one typing error.
        q: Option<Text<0, 200>>,
        /// Only assets of this category.
        category: Option<Text<0, 100>>,
        /// Only assets about this sport.
        sport: Option<Text<0, 100>>,
        /// Without it the best match comes first, or without `q` the newest.
        sort_by: Option<SortBy>,
        /// Assets per answer.
        limit: Integer<1, 100> = Integer::of(LIMIT_DEFAULT),
        /// Assets to skip.
        offset: Integer<0, { OFFSET_MAX }> = Integer::of(0),
        /// Adds `recommended`.
        include_recommended: bool = false,
        /// Adds the saved schemas of your own assets.
        include_schema: bool = false,
    }
}

pub const OPERATION: Operation = Operation::get("search_assets", "/companies/{company_id}/assets/search")
    .about("Assets", "Find assets")
    .notes(
        "Published assets of all companies in good standing, and your own in any state but archived; what only an owner may see is absent from \
         others'. `recent`: published, or else made, last; `popular`: most successful executions by others than the owner in 30 UTC dates, \
         today included; `trending`: most more such executions in the last 7 dates than in the 7 before. Executions are counted anew every five \
         minutes. `recommended`: at most ten assets of others on sale that your company has not purchased, popular ones first, of a category or \
         a sport that it has purchased or marked as a favorite; without any such, of all.",
    );

/// Finds assets that may be bought, and the own ones.
pub async fn search_assets(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
) -> Result<Found<AssetOut>, Problem> {
    let wanted = Searched {
        text: query.q.as_deref().filter(|text| !text.trim().is_empty()),
        own: Some(caller.company()),
        product_type: Some(ProductType::Asset),
        category: query.category.as_deref(),
        sport: query.sport.as_deref(),
        ..Searched::default()
    };
    let order = match query.sort_by {
        None => Order::Relevance,
        Some(SortBy::Name) => Order::Name,
        Some(SortBy::Recent) => Order::Recent,
        Some(SortBy::Popular) => Order::Popular,
        Some(SortBy::Trending) => Order::Trending,
    };
    let (limit, offset) = (query.limit.get(), query.offset.get());
    let (now, part) = (caller.now(), Part::new(limit, offset));
    let mut read = api.db().read().await?;
    let (ids, total) = search::find(&mut read, &wanted, order, now, part).await?;
    let mut data = show(&mut read, &caller, &ids, now).await?;
    if query.include_schema {
        let own = data.iter_mut();
        let mut own: Vec<_> = own
            .filter(|asset| asset.company_id == caller.company().as_str())
            .collect();
        let ids = own.iter().map(|asset| asset.id.as_str());
        let mut saved = saved_schemas::of_assets(&mut read, caller.company(), ids).await?;
        for asset in &mut own {
            if let Some(schema) = saved.remove(&asset.id) {
                asset.saved_schema = serde_json::from_str(&schema).map_err(Problem::internal)?;
            }
        }
    }
    let recommended = match query.include_recommended {
        true => {
            let ids = search::recommended(&mut read, caller.company(), RECOMMENDED_MAX).await?;
            Some(show(&mut read, &caller, &ids, now).await?)
        }
        false => None,
    };
    Ok(Found {
        data,
        total,
        limit,
        offset,
        recommended,
    })
}

/// Assets as the caller may see them, in this order.
async fn show(
    db: &mut AnyConnection,
    caller: &Caller,
    ids: &[String],
    now: Timestamp,
) -> Result<Vec<AssetOut>, Problem> {
    let ids: Result<Vec<AssetId>, _> = ids.iter().map(|id| AssetId::parse(id)).collect();
    let rows = products::get_all(db, &ids.map_err(Problem::internal)?).await?;
    let ids = rows.iter().map(|row| row.id.as_ref());
    let prices = prices::active_of(db, ids, now).await?;
    let out = rows.into_iter().map(|row| {
        let is_owner = row.company_id == *caller.company();
        let price = prices.get(row.id.as_str());
        AssetId::out(row, price, is_owner)
    });
    Ok(out.collect())
}
