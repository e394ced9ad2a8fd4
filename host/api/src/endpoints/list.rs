use super::shape::EndpointOut;
use crate::large::Large;
use crate::products::list::list;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query, SortOrder, Text};
use axum::extract::State;
use souk_domain::ids::EndpointId;
use souk_domain::products::ProductStatus;
use souk_store::products::{Filter, Sort};

choices! {
    pub enum SortBy {
        CreatedAt = "created_at",
        UpdatedAt = "updated_at",
        Name = "name",
        Requests = "requests",
    }
}

parameters! {
    pub struct Wanted {
        ..paging: Paging,
        /// Only endpoints in this state. Archived ones are listed only when asked for.
        status: Option<ProductStatus>,
        /// Only endpoints on this connection.
        connection_id: Option<Text<0, 255>>,
        /// Part of the name.
        q: Option<Text<0, 100>>,
        /// Newest (most requested) first unless sorted by name.
        sort_by: SortBy = SortBy::CreatedAt,
        /// Direction of `sort_by`.
        sort_order: Option<SortOrder>,
    }
}

pub const OPERATION: Operation =
    Operation::get("list_endpoints", "/companies/{company_id}/endpoints")
        .about("Endpoints", "List a company's endpoints");

/// Lists a company's endpoints.
pub async fn list_endpoints(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
) -> Result<Large<List<EndpointOut>>, Problem> {
    let q = query.q.as_deref().map(str::to_lowercase);
    let filter = Filter {
        status: query.status,
        connection_id: query.connection_id.as_deref(),
        q: q.as_deref(),
        ..Filter::default()
    };
    let sort = match query.sort_by {
        SortBy::Name => Sort::Name,
        SortBy::UpdatedAt => Sort::UpdatedAt,
        SortBy::Requests => Sort::Requests,
        SortBy::CreatedAt => Sort::CreatedAt,
    };
    let (order, paging) = (query.sort_order, &query.paging);
    list::<EndpointId>(&api, &caller, &filter, sort, order, paging).await
}
