use super::refusal;
use crate::openapi::any_object;
use crate::{
    ApiState, Caller, Data, FieldError, Operation, Param, ParamKind, Path, Problem, Query, Shape,
};
use axum::extract::State;
use souk_app::connections::catalog::{self, Catalog, Filter};
use souk_domain::ids::{CompanyId, ConnectionId};

/// Names in one list: more is no filter.
const NAMES_MAX: usize = 100;

const INCLUDE_FIELDS: Param = Param {
    name: "include_fields",
    kind: ParamKind::Boolean,
    about: "Whether tables come with their fields. Default true.",
};
const SCHEMAS: Param = Param {
    name: "schemas",
    kind: ParamKind::Text { chars_max: 10_000 },
    about: "Only these schemas, separated by commas.",
};
const TABLES: Param = Param {
    name: "tables",
    kind: ParamKind::Text { chars_max: 10_000 },
    about: "Only these tables, separated by commas.",
};

pub const OPERATION: Operation = Operation::get(
    "get_connection_schema",
    "/companies/{company_id}/connections/{connection_id}/schema",
)
.about("Connections", "Read the catalog of a connection's source")
.notes("`{schemas: [{name, tables: [{name, type, row_estimate, fields: [{name, type, nullable, primary_key}]}]}], fetched_at}`")
.runs_connector()
.query(&[INCLUDE_FIELDS, SCHEMAS, TABLES])
.returns(200, Shape::One(any_object));

/// Reads tables and fields from the source itself, never from a copy.
pub async fn get_connection_schema(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, ConnectionId)>,
    query: Query,
) -> Result<Data<Catalog>, Problem> {
    let filter = Filter {
        schemas: names(&query, "schemas")?,
        tables: names(&query, "tables")?,
        include_fields: query.boolean("include_fields").unwrap_or(true),
    };
    let catalog = catalog::catalog(api.app(), caller.company(), &id, filter).await;
    Ok(Data(catalog.map_err(refusal(id.as_str()))?))
}

fn names(query: &Query, parameter: &'static str) -> Result<Vec<String>, Problem> {
    let text = query.text(parameter).unwrap_or_default();
    let names: Vec<String> = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    match names.len() > NAMES_MAX {
        false => Ok(names),
        true => {
            let message = format!("must name at most {NAMES_MAX}");
            Err(Problem::fields(
                "INVALID_PARAMETER",
                vec![FieldError::new(parameter, "invalid", message)],
            ))
        }
    }
}
