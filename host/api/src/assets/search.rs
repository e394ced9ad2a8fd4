use super::shape::AssetOut;
use crate::large::Large;
use crate::products::Offered;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, Found, Integer, Operation, Problem, Query, Text};
use axum::extract::State;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::products::ProductType;
use souk_domain::time::Timestamp;
use souk_store::lists::OFFSET_MAX;
use souk_store::prices::Price;
use souk_store::products::Row;
use souk_store::search::{self, Order, Wanted as Searched};
use souk_store::{AnyConnection, Part, prices, products, saved_schemas};
use std::collections::HashMap;

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
) -> Result<Large<Found<AssetOut>>, Problem> {
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
    let found = fetch(&mut read, &ids, now).await?;
    let saved = match query.include_schema {
        true => {
            let own = found.rows.iter();
            let own = own.filter(|row| row.company_id == *caller.company());
            let ids = own.map(|row| row.id.as_str());
            saved_schemas::of_assets(&mut read, caller.company(), ids).await?
        }
        false => HashMap::new(),
    };
    let recommended = match query.include_recommended {
        true => {
            let ids = search::recommended(&mut read, caller.company(), RECOMMENDED_MAX).await?;
            Some(fetch(&mut read, &ids, now).await?)
        }
        false => None,
    };
    // Whoever waits for a turn to compute holds no reader.
    drop(read);
    let schemas: usize = saved.values().map(String::len).sum();
    let bytes = schemas + found.bytes() + recommended.as_ref().map_or(0, Assets::bytes);
    let company = caller.company().clone();
    let show = move || {
        let mut data = found.shown(&company);
        for asset in &mut data {
            if let Some(schema) = saved.get(&asset.id) {
                asset.saved_schema = serde_json::from_str(schema).map_err(Problem::internal)?;
            }
        }
        Ok(Found {
            data,
            total,
            limit,
            offset,
            recommended: recommended.map(|assets| assets.shown(&company)),
        })
    };
    Large::show(&api, &caller, bytes, show).await
}

/// Assets with what they cost.
struct Assets {
    rows: Vec<Row<AssetId>>,
    prices: HashMap<String, Price>,
}

async fn fetch(db: &mut AnyConnection, ids: &[String], now: Timestamp) -> Result<Assets, Problem> {
    let ids: Result<Vec<AssetId>, _> = ids.iter().map(|id| AssetId::parse(id)).collect();
    let rows = products::get_all(db, &ids.map_err(Problem::internal)?).await?;
    let ids = rows.iter().map(|row| row.id.as_ref());
    let prices = prices::active_of(db, ids, now).await?;
    Ok(Assets { rows, prices })
}

impl Assets {
    fn bytes(&self) -> usize {
        self.rows.iter().map(AssetId::bytes).sum()
    }

    /// As this company may see them, in their order.
    fn shown(self, company: &CompanyId) -> Vec<AssetOut> {
        let shown = self.rows.into_iter().map(|row| {
            let is_owner = row.company_id == *company;
            let price = self.prices.get(row.id.as_str());
            AssetId::out(row, price, is_owner)
        });
        shown.collect()
    }
}
