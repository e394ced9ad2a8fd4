use super::shape::AssetOut;
use crate::large::Large;
use crate::products::list::list;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query, SortOrder, Text};
use axum::extract::State;
use souk_domain::ids::AssetId;
use souk_domain::products::{AssetType, ProductStatus};
use souk_store::products::{Filter, Sort};

choices! {
    impl AssetType {
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
        status: Option<ProductStatus>,
        /// Only assets of this type.
        asset_type: Option<AssetType>,
        /// Only assets of this category.
        category: Option<Text<0, 100>>,
        /// Only assets on this connection.
        connection_id: Option<Text<0, 255>>,
        /// Newest first unless sorted by name.
        sort_by: SortBy = SortBy::CreatedAt,
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
) -> Result<Large<List<AssetOut>>, Problem> {
    let filter = Filter {
        status: query.status,
        subtype: query.asset_type.map(AssetType::as_str),
        category: query.category.as_deref(),
        connection_id: query.connection_id.as_deref(),
        q: None,
    };
    let sort = match query.sort_by {
        SortBy::Name => Sort::Name,
        SortBy::UpdatedAt => Sort::UpdatedAt,
        SortBy::CreatedAt => Sort::CreatedAt,
    };
    let (order, paging) = (query.sort_order, &query.paging);
    list::<AssetId>(&api, &caller, &filter, sort, order, paging).await
}
