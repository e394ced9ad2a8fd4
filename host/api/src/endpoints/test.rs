use crate::products::own;
use crate::query::parameters;
use crate::refusals::{INVALID_STATE, PRIVACY_THRESHOLD};
use crate::runs::refusal;
use crate::{AnyObject, ApiState, Caller, Data, Integer, Operation, Path, Problem, Query};
use axum::extract::State;
use serde::Serialize;
use serde_json::value::RawValue;
use souk_app::{fetch, preview};
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::roles::{Permission, Role};
use utoipa::ToSchema;

const LIMIT_DEFAULT: i64 = 10;

parameters! {
    pub struct Wanted {
        /// Rows, at most 100.
        limit: Integer<1, 100> = Integer::of(LIMIT_DEFAULT),
    }
}

pub const OPERATION: Operation = Operation::get(
    "test_endpoint",
    "/companies/{company_id}/endpoints/{endpoint_id}/test",
)
.about("Endpoints", "Try an own endpoint")
.notes("Free, and also before it is published. Where there is no preview, its first three rows become it.")
.needs(Role::DataScientist, Permission::Read)
.runs_connector()
.refuses(&[INVALID_STATE, PRIVACY_THRESHOLD]);

#[derive(Serialize, ToSchema)]
#[schema(as = EndpointTest)]
pub struct EndpointTestOut {
    #[schema(value_type = Vec<AnyObject>)]
    pub rows: Box<RawValue>,
    pub fields: Vec<EndpointTestField>,
    pub row_count: u32,
    pub execution_time_ms: u64,
    /// Always true.
    pub sample: bool,
}

#[derive(Serialize, ToSchema)]
pub struct EndpointTestField {
    /// As it is published.
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

/// Fetches the first rows of an own endpoint.
pub async fn test_endpoint(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, EndpointId)>,
    Query(query): Query<Wanted>,
) -> Result<Data<EndpointTestOut>, Problem> {
    let endpoint = own(&api, &caller, &id).await?;
    let limit = query.limit.get() as u32;
    let tested = fetch::test(api.app(), &endpoint, limit)
        .await
        .map_err(refusal("endpoint", id.as_str()))?;
    preview::keep_tested_endpoint(api.app(), &endpoint, &tested.rows).await;
    let rows = String::from_utf8(tested.rows).map_err(Problem::internal)?;
    let field = |field: &souk_app::definition::Field| EndpointTestField {
        name: field.published().to_owned(),
        kind: tested.learned.kind(&field.name).map(str::to_owned),
    };
    Ok(Data(EndpointTestOut {
        rows: RawValue::from_string(rows).map_err(Problem::internal)?,
        fields: endpoint.plan.fields.iter().map(field).collect(),
        row_count: tested.row_count,
        execution_time_ms: tested.elapsed_ms,
        sample: true,
    }))
}
