use super::{refusal, scope};
use crate::refusals::CONNECTOR_NOT_FOUND;
use crate::{ApiState, Caller, List, Operation, Paging, Path, Problem, Query, words};
use axum::extract::State;
use serde::Serialize;
use souk_app::connectors;
use souk_domain::ids::{CompanyId, ConnectionId};
use souk_domain::roles::{Permission, Role};
use souk_store::connections::Depending;
use utoipa::ToSchema;

const NOTES: &str = "Whom a change of the connector concerns: the connections to the engines of its versions, with how many published products run on \
each.";

crate::query::parameters! {
    pub struct Wanted {
        ..paging: Paging,
    }
}

pub const PLATFORM: Operation =
    Operation::get("connector_connections", "/connectors/{name}/connections")
        .about(
            "Connectors",
            "List the connections that a connector of the platform serves",
        )
        .notes(NOTES)
        .needs(Role::SuperAdmin, Permission::Read)
        .refuses(&[CONNECTOR_NOT_FOUND]);

pub const COMPANY: Operation = Operation::get(
    "company_connector_connections",
    "/companies/{company_id}/connectors/{name}/connections",
)
.about(
    "Connectors",
    "List the connections that the company's own connector serves",
)
.notes(NOTES)
.needs(Role::DataEngineer, Permission::Read)
.refuses(&[CONNECTOR_NOT_FOUND]);

#[derive(Serialize, ToSchema)]
#[schema(as = ConnectorConnection)]
pub struct DependingOut {
    #[schema(value_type = String)]
    connection_id: ConnectionId,
    #[schema(value_type = String)]
    company_id: CompanyId,
    name: String,
    engine: String,
    #[schema(value_type = words::ConnectionStatus)]
    status: String,
    #[schema(minimum = 0)]
    published_products: i64,
}

impl From<Depending> for DependingOut {
    fn from(one: Depending) -> DependingOut {
        DependingOut {
            connection_id: one.connection_id,
            company_id: one.company_id,
            name: one.name,
            engine: one.engine,
            status: one.status,
            published_products: one.published_products,
        }
    }
}

pub async fn connector_connections(
    api: State<ApiState>,
    caller: Caller,
    Path(name): Path<String>,
    query: Query<Wanted>,
) -> Result<List<DependingOut>, Problem> {
    depending(api, caller, name, query).await
}

pub async fn company_connector_connections(
    api: State<ApiState>,
    caller: Caller,
    Path((_, name)): Path<(CompanyId, String)>,
    query: Query<Wanted>,
) -> Result<List<DependingOut>, Problem> {
    depending(api, caller, name, query).await
}

async fn depending(
    State(api): State<ApiState>,
    caller: Caller,
    name: String,
    Query(query): Query<Wanted>,
) -> Result<List<DependingOut>, Problem> {
    let page = query.paging.page();
    let listed = connectors::depending(api.app(), &scope(&caller), &name, page.part())
        .await
        .map_err(refusal(&name))?;
    Ok(List::of(page, listed, DependingOut::from))
}
