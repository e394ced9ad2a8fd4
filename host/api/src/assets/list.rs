use super::shape::AssetOut;
use crate::{
    ApiState, Caller, List, Operation, PAGE, PER_PAGE, Page, Param, ParamKind, Problem, Query,
    SORT_ORDER, Shape, schema,
};
use axum::extract::State;
use souk_store::assets::{self, Filter, Sort};
use souk_store::prices;

const STATUS: Param = Param {
    name: "status",
    kind: ParamKind::OneOf(&["draft", "published", "unpublished", "archived"]),
    about: "Only assets in this state. Archived ones are listed only when asked for.",
};
const ASSET_TYPE: Param = Param {
    name: "asset_type",
    kind: ParamKind::OneOf(&["CALCULATION", "VISUALIZATION", "PREDICTION"]),
    about: "Only assets of this type.",
};
const CATEGORY: Param = Param {
    name: "category",
    kind: ParamKind::Text { chars_max: 100 },
    about: "Only assets of this category.",
};
const CONNECTION: Param = Param {
    name: "connection_id",
    kind: ParamKind::Text { chars_max: 255 },
    about: "Only assets on this connection.",
};
const SORT_BY: Param = Param {
    name: "sort_by",
    kind: ParamKind::OneOf(&["created_at", "updated_at", "name"]),
    about: "Default created_at; newest first unless sorted by name.",
};

pub const OPERATION: Operation = Operation::get("list_assets", "/companies/{company_id}/assets")
    .about("Assets", "List a company's own assets")
    .query(&[
        PAGE, PER_PAGE, STATUS, ASSET_TYPE, CATEGORY, CONNECTION, SORT_BY, SORT_ORDER,
    ])
    .returns(200, Shape::List(schema::<AssetOut>));

/// Lists a company's own assets.
pub async fn list_assets(
    State(api): State<ApiState>,
    caller: Caller,
    query: Query,
) -> Result<List<AssetOut>, Problem> {
    let page = Page::of(&query);
    let filter = Filter {
        status: query.text("status"),
        asset_type: query.text("asset_type"),
        category: query.text("category"),
        connection_id: query.text("connection_id"),
    };
    let sort = match query.text("sort_by") {
        Some("name") => Sort::Name,
        Some("updated_at") => Sort::UpdatedAt,
        _ => Sort::CreatedAt,
    };
    let descending = query
        .text("sort_order")
        .map_or(sort != Sort::Name, |order| order == "desc");
    let mut read = api.db().read().await?;
    let (assets, total) = assets::list(
        &mut read,
        caller.company(),
        &filter,
        sort,
        descending,
        page.limit(),
        page.offset(),
    )
    .await?;
    let ids = assets.iter().map(|asset| asset.id.as_str());
    let prices = prices::active_of(&mut read, ids, caller.now()).await?;
    let data = assets.into_iter().map(|asset| {
        let price = prices.get(asset.id.as_str());
        AssetOut::new(asset, price, true)
    });
    let data = data.collect();
    Ok(List { data, total, page })
}
