use crate::products::own;
use crate::query::parameters;
use crate::refusals::{INVALID_STATE, PRIVACY_THRESHOLD};
use crate::runs::refusal;
use crate::{AnyObject, ApiState, Caller, Integer, Operation, Path, PreparedData, Problem, Query};
use axum::extract::State;
use serde::Serialize;
use souk_app::{fetch, preview};
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::roles::{Permission, Role};
use utoipa::ToSchema;

const LIMIT_DEFAULT: i64 = 10;

/// What stands before the rows, which are JSON already.
const HEAD: &[u8] = b"{\"data\":{\"rows\":";

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

#[derive(ToSchema)]
#[schema(as = EndpointTest)]
pub struct EndpointTestOut {
    pub rows: Vec<AnyObject>,
    pub fields: Vec<EndpointTestField>,
    pub row_count: u32,
    /// What is wrong with the rows although they came: that the order does not tell some apart, so that pages may repeat or leave out rows.
    pub warnings: Vec<String>,
    pub execution_time_ms: u64,
    /// Always true.
    pub sample: bool,
}

/// The members of an [`EndpointTestOut`] behind its rows.
#[derive(Serialize)]
struct Rest {
    fields: Vec<EndpointTestField>,
    row_count: u32,
    warnings: Vec<String>,
    execution_time_ms: u64,
    sample: bool,
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
) -> Result<PreparedData<EndpointTestOut>, Problem> {
    let endpoint = own(&api, &caller, &id).await?;
    let limit = query.limit.get() as u32;
    let tested = fetch::test(api.app(), &endpoint, limit, HEAD)
        .await
        .map_err(refusal("endpoint", id.as_str()))?;
    preview::keep_tested_endpoint(api.app(), &endpoint, tested.sample.as_deref()).await;
    fetch::keep_learned(api.app(), &endpoint, &tested.learned).await;
    let field = |field: &souk_app::definition::Field| EndpointTestField {
        name: field.published().to_owned(),
        kind: tested.learned.kind(&field.name).map(str::to_owned),
    };
    let rest = Rest {
        fields: endpoint.plan.fields.iter().map(field).collect(),
        row_count: tested.row_count,
        warnings: tested.warnings,
        execution_time_ms: tested.elapsed_ms,
        sample: true,
    };
    ended(tested.rows, &rest).map(PreparedData::new)
}

/// The whole body: behind the rows, the rest of their object and the end of the envelope.
fn ended(mut body: Vec<u8>, rest: &Rest) -> Result<Vec<u8>, Problem> {
    let comma = body.len();
    serde_json::to_writer(&mut body, rest).map_err(Problem::internal)?;
    if let Some(brace) = body.get_mut(comma) {
        *brace = b',';
    }
    body.push(b'}');
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written around the rows makes them the answer that is described.
    #[test]
    fn the_rows_are_within_their_object() {
        let field = |name: &str, kind: Option<&str>| EndpointTestField {
            name: name.to_owned(),
            kind: kind.map(str::to_owned),
        };
        let rest = Rest {
            fields: vec![field("id", Some("int64")), field("a \"b\"", None)],
            row_count: 2,
            warnings: vec![],
            execution_time_ms: 7,
            sample: true,
        };
        let body = ended([HEAD, b"[{\"id\":1},{\"id\":2}]"].concat(), &rest).unwrap();
        assert_eq!(
            String::from_utf8(body).unwrap(),
            r#"{"data":{"rows":[{"id":1},{"id":2}],"fields":[{"name":"id","type":"int64"},{"name":"a \"b\"","type":null}],"row_count":2,"warnings":[],"execution_time_ms":7,"sample":true}}"#
        );
    }
}
