use crate::data::{Address, Request, Rows};
use crate::products::own;
use crate::runs;
use crate::runs::page::RanPage;
use crate::{ApiState, Caller, Nothing, Open, Operation, Path, Problem, Query, RawBody};
use axum::extract::State;
use souk_domain::ids::{CompanyId, EndpointId};

pub const OPERATION: Operation = Operation::get("execute_endpoint", "/companies/{company_id}/endpoints/{endpoint_id}/execute")
    .about("Endpoints", "Fetch a page of an own endpoint")
    .notes("Free, and also before it is published. Parameters, formats and body are those of the data route.")
    .billed()
    .runs_connector();

/// Fetches a page as the owner.
pub async fn execute_endpoint(
    State(api): State<ApiState>,
    caller: Caller,
    Path((company, id)): Path<(CompanyId, EndpointId)>,
    Query(query): Query<Open<Rows>>,
    raw: RawBody<Nothing>,
) -> Result<RanPage, Problem> {
    let endpoint = own(&api, &caller, &id).await?;
    let wanted = Request::read(query);
    let address = Address::Own(company, id);
    // Platform staff fetch as the company they act in.
    let company = caller.company();
    runs::page(&api, &caller, &raw, endpoint, company, wanted, address).await
}
