use super::refusal;
use crate::query::parameters;
use crate::refusals::INVALID_PARAMETER;
use crate::{ApiState, Caller, FieldError, Operation, Path, PreparedData, Problem, Query, Text};
use axum::extract::State;
use serde::Serialize;
use souk_app::connections::catalog::{self, Catalog, CatalogFilter};
use souk_domain::ids::{CompanyId, ConnectionId};
use souk_domain::time::Timestamp;
use std::borrow::Cow;
use utoipa::openapi::{RefOr, schema::Schema};
use utoipa::{PartialSchema, ToSchema};

/// Names in one list: more is no filter.
const NAMES_MAX: usize = 100;

parameters! {
    pub struct Wanted {
        /// Whether tables come with their fields.
        include_fields: bool = true,
        /// Only these schemas, separated by commas.
        schemas: Option<Text<0, 10_000>>,
        /// Only these tables, separated by commas.
        tables: Option<Text<0, 10_000>>,
    }
}

pub const OPERATION: Operation = Operation::get(
    "get_connection_schema",
    "/companies/{company_id}/connections/{connection_id}/schema",
)
.about("Connections", "Read the catalog of a connection's source")
.notes("Read from the source at every call, never from a copy.")
.runs_connector();

/// The catalog as it was read.
#[derive(Serialize)]
#[serde(transparent)]
pub struct CatalogOut(Catalog);

impl PartialSchema for CatalogOut {
    fn schema() -> RefOr<Schema> {
        Shape::schema()
    }
}

impl ToSchema for CatalogOut {
    fn name() -> Cow<'static, str> {
        Shape::name()
    }

    fn schemas(nested: &mut Vec<(String, RefOr<Schema>)>) {
        Shape::schemas(nested);
    }
}

/// The tables of a source.
#[derive(ToSchema)]
#[schema(as = Catalog)]
#[allow(dead_code)]
struct Shape {
    schemas: Vec<CatalogSchema>,
    #[schema(value_type = String, format = DateTime)]
    fetched_at: Timestamp,
}

#[derive(ToSchema)]
#[allow(dead_code)]
struct CatalogSchema {
    name: String,
    tables: Vec<CatalogTable>,
}

#[derive(ToSchema)]
#[allow(dead_code)]
struct CatalogTable {
    name: String,
    /// `table`, `view` or what else the source calls it
    r#type: String,
    row_estimate: Option<i64>,
    /// Absent with `include_fields=false`.
    fields: Option<Vec<CatalogField>>,
}

#[derive(ToSchema)]
#[allow(dead_code)]
struct CatalogField {
    name: String,
    /// As the source calls it.
    r#type: String,
    nullable: bool,
    primary_key: bool,
}

/// Reads tables and fields from the source itself, never from a copy.
pub async fn get_connection_schema(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, ConnectionId)>,
    Query(query): Query<Wanted>,
) -> Result<PreparedData<CatalogOut>, Problem> {
    catalog_of(&api, &caller, &id, query).await
}

/// The catalog of a connection of the caller's company.
pub async fn catalog_of(
    api: &ApiState,
    caller: &Caller,
    id: &ConnectionId,
    query: Wanted,
) -> Result<PreparedData<CatalogOut>, Problem> {
    let filter = CatalogFilter {
        schemas: names("schemas", query.schemas)?,
        tables: names("tables", query.tables)?,
        include_fields: query.include_fields,
    };
    let show = |catalog| PreparedData::of(&CatalogOut(catalog));
    let shown = catalog::catalog(api.app(), caller.company(), id, filter, show).await;
    shown.map_err(refusal(id.as_str()))?
}

fn names(parameter: &'static str, given: Option<Text<0, 10_000>>) -> Result<Vec<String>, Problem> {
    let text = given.as_deref().unwrap_or_default();
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
                INVALID_PARAMETER,
                vec![FieldError::new(parameter, "invalid", message)],
            ))
        }
    }
}
