use super::shape::EndpointOut;
use crate::{
    ApiState, Caller, List, Operation, PAGE, PER_PAGE, Page, Param, ParamKind, Problem, Query,
    SORT_ORDER, Shape, schema,
};
use axum::extract::State;
use souk_store::endpoints::{self, Filter, Sort};
use souk_store::prices;

const STATUS: Param = Param {
    name: "status",
    kind: ParamKind::OneOf(&["draft", "published", "unpublished", "archived"]),
    about: "Only endpoints in this state. Archived ones are listed only when asked for.",
};
const CONNECTION: Param = Param {
    name: "connection_id",
    kind: ParamKind::Text { chars_max: 255 },
    about: "Only endpoints on this connection.",
};
const Q: Param = Param {
    name: "q",
    kind: ParamKind::Text { chars_max: 100 },
    about: "Part of the name.",
};
const SORT_BY: Param = Param {
    name: "sort_by",
    kind: ParamKind::OneOf(&["created_at", "updated_at", "name", "requests"]),
    about: "Default created_at; newest (most requested) first unless sorted by name.",
};

pub const OPERATION: Operation =
    Operation::get("list_endpoints", "/companies/{company_id}/endpoints")
        .about("Endpoints", "List a company's endpoints")
        .query(&[PAGE, PER_PAGE, STATUS, CONNECTION, Q, SORT_BY, SORT_ORDER])
        .returns(200, Shape::List(schema::<EndpointOut>));

/// Lists a company's endpoints.
pub async fn list_endpoints(
    State(api): State<ApiState>,
    caller: Caller,
    query: Query,
) -> Result<List<EndpointOut>, Problem> {
    let page = Page::of(&query);
    let q = query.text("q").map(str::to_lowercase);
    let filter = Filter {
        status: query.text("status"),
        connection_id: query.text("connection_id"),
        q: q.as_deref(),
    };
    let sort = match query.text("sort_by") {
        Some("name") => Sort::Name,
        Some("updated_at") => Sort::UpdatedAt,
        Some("requests") => Sort::Requests,
        _ => Sort::CreatedAt,
    };
    let descending = query
        .text("sort_order")
        .map_or(sort != Sort::Name, |order| order == "desc");
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
