use super::shape::EndpointOut;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query, SortOrder, Text};
use axum::extract::State;
use souk_store::endpoints::{self, Filter, Sort};
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
        status: Option<Status>,
        /// Only endpoints on this connection.
        connection_id: Option<Text<0, 255>>,
        /// Part of the name.
        q: Option<Text<0, 100>>,
        /// Default created_at; newest (most requested) first unless sorted by name.
        sort_by: Option<SortBy>,
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
) -> Result<List<EndpointOut>, Problem> {
    let page = query.paging.page();
    let q = query.q.as_deref().map(str::to_lowercase);
    let filter = Filter {
        status: query.status.map(Status::as_str),
        connection_id: query.connection_id.as_deref(),
        q: q.as_deref(),
    };
    let sort = match query.sort_by {
        Some(SortBy::Name) => Sort::Name,
        Some(SortBy::UpdatedAt) => Sort::UpdatedAt,
        Some(SortBy::Requests) => Sort::Requests,
        Some(SortBy::CreatedAt) | None => Sort::CreatedAt,
    };
    let descending = query
        .sort_order
        .map_or(sort != Sort::Name, |order| order == SortOrder::Descending);
    let mut read = api.db().read().await?;
    let (endpoints, total) = endpoints::list(
        &mut read,
        caller.company(),
        &filter,
        sort,
        descending,
        page.limit(),
        page.offset(),
    )
    .await?;
    let ids = endpoints.iter().map(|endpoint| endpoint.id.as_str());
    let prices = prices::active_of(&mut read, ids, caller.now()).await?;
    let data = endpoints.into_iter().map(|endpoint| {
        let price = prices.get(endpoint.id.as_str());
        EndpointOut::new(endpoint, price)
    });
    let data = data.collect();
    Ok(List { data, total, page })
}
