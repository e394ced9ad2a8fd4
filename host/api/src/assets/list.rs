use super::shape::AssetOut;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query, SortOrder, Text};
use axum::extract::State;
use souk_store::assets::{self, Filter, Sort};
use souk_store::prices;

choices! {
    pub enum Status {
        Draft = "draft",
        Published = "published",
        Unpublished = "unpublished",
        Archived = "archived",
    }
}

choices! {
    pub enum AssetType {
        Calculation = "CALCULATION",
        Visualization = "VISUALIZATION",
        Prediction = "PREDICTION",
    }
}

choices! {
    pub enum SortBy {
        CreatedAt = "created_at",
        UpdatedAt = "updated_at",
        Name = "name",
    }
}

parameters! {
    pub struct Wanted {
        ..paging: Paging,
        /// Only assets in this state. Archived ones are listed only when asked for.
        status: Option<Status>,
        /// Only assets of this type.
        asset_type: Option<AssetType>,
        /// Only assets of this category.
        category: Option<Text<0, 100>>,
        /// Only assets on this connection.
        connection_id: Option<Text<0, 255>>,
        /// Default created_at; newest first unless sorted by name.
        sort_by: Option<SortBy>,
        /// Direction of `sort_by`.
        sort_order: Option<SortOrder>,
    }
}

pub const OPERATION: Operation = Operation::get("list_assets", "/companies/{company_id}/assets")
    .about("Assets", "List a company's own assets");

/// Lists a company's own assets.
pub async fn list_assets(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
) -> Result<List<AssetOut>, Problem> {
    let page = query.paging.page();
    let filter = Filter {
        status: query.status.map(Status::as_str),
        asset_type: query.asset_type.map(AssetType::as_str),
        category: query.category.as_deref(),
        connection_id: query.connection_id.as_deref(),
    };
    let sort = match query.sort_by {
        Some(SortBy::Name) => Sort::Name,
        Some(SortBy::UpdatedAt) => Sort::UpdatedAt,
        Some(SortBy::CreatedAt) | None => Sort::CreatedAt,
    };
    let descending = query
        .sort_order
        .map_or(sort != Sort::Name, |order| order == SortOrder::Descending);
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
