//! What tables and fields a source has.

use std::time::{Duration, Instant};

use souk_domain::ids::{CompanyId, ConnectionId};
use souk_domain::time::Timestamp;
use souk_sandbox::{Blame, Cell, Fault, FaultKind, Limits, Output, Request, SchemaFilter};

use super::check::explain;
use super::{ConnectionError, source};
use crate::App;
use crate::failure::Cause;

/// Catalogs of large databases take a while.
const CATALOG_MAX: Duration = Duration::from_secs(30);
/// 50,000 fields: a thousand tables of fifty. Beyond that a filter is needed.
const FIELDS_MAX: u32 = 50_000;
const CATALOG_BYTES_MAX: u64 = 16 << 20;

#[derive(Debug, Clone, Default)]
pub struct CatalogFilter {
    pub schemas: Vec<String>,
    pub tables: Vec<String>,
    pub include_fields: bool,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Catalog {
    pub schemas: Vec<Schema>,
    pub fetched_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Schema {
    pub name: String,
    pub tables: Vec<Table>,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Table {
    pub name: String,
    /// `table` or `view`.
    pub r#type: String,
    pub row_estimate: Option<i64>,
    /// Absent when they were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<Field>>,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Field {
    pub name: String,
    pub r#type: String,
    pub nullable: bool,
    pub primary_key: bool,
}

/// Reads the catalog of a connection's source, and makes of it what `show` does, which may take as long as it is large.
pub async fn catalog<T: Send + 'static>(
    app: &App,
    company: &CompanyId,
    id: &ConnectionId,
    filter: CatalogFilter,
    show: impl FnOnce(Catalog) -> T + Send + 'static,
) -> Result<T, ConnectionError> {
    let source = source::source(app, company, id).await?;
    let engine = app.sandbox.engine(company.as_str(), &source.engine);
    if !engine.is_some_and(|engine| engine.has("schema")) {
        return Err(ConnectionError::NoCatalog(source.engine.clone()));
    }
    let include_fields = filter.include_fields;
    let request = Request::Schema(SchemaFilter {
        schemas: filter.schemas,
        tables: filter.tables,
        include_fields,
        limits: Limits::new(FIELDS_MAX, CATALOG_BYTES_MAX),
    });
    let deadline = Instant::now() + CATALOG_MAX;
    match app.sandbox.run(source.shared(), request, deadline).await {
        Ok(output) => {
            let fetched_at = app.clock.now();
            // Fifty thousand fields take a while to sort, to show and to drop.
            let shown = move || {
                show(Catalog {
                    schemas: group(&output, include_fields),
                    fetched_at,
                })
            };
            let shown = app.compute(company.as_str(), deadline, shown).await;
            shown.map_err(Cause::from)?.ok_or_else(stopping)
        }
        // Only the owner reads a catalog.
        Err(fault) => {
            let told = Fault {
                message: explain(&fault, &source),
                detail: None,
                ..fault
            };
            Err(Cause::from(told).into())
        }
    }
}

fn stopping() -> ConnectionError {
    let message = "this host is shutting down: try again";
    Cause::from(Fault::new(Blame::Host, FaultKind::ShuttingDown, message)).into()
}

/// One row per field (or per table) becomes a tree; the connector orders the rows by schema and table.
fn group(output: &Output, include_fields: bool) -> Vec<Schema> {
    let columns = [
        "schema",
        "table",
        "type",
        "row_estimate",
        "field",
        "field_type",
        "nullable",
        "primary_key",
    ]
    .map(|name| output.column(name));
    let mut schemas: Vec<Schema> = Vec::new();
    for row in 0..output.rows {
        let cell =
            |index: usize| columns[index].map_or(Cell::Null, |column| output.cell(row, column));
        let text = |index: usize| cell(index).as_str().unwrap_or_default().to_owned();
        let (schema, table) = (text(0), text(1));
        if schemas.last().is_none_or(|last| last.name != schema) {
            schemas.push(Schema {
                name: schema,
                tables: Vec::new(),
            });
        }
        let Some(last) = schemas.last_mut() else {
            continue;
        };
        if last.tables.last().is_none_or(|last| last.name != table) {
            last.tables.push(Table {
                name: table,
                r#type: text(2),
                row_estimate: cell(3).as_i64(),
                fields: include_fields.then(Vec::new),
            });
        }
        let fields = last
            .tables
            .last_mut()
            .and_then(|table| table.fields.as_mut());
        if let Some(fields) = fields.filter(|_| !cell(4).is_null()) {
            fields.push(Field {
                name: text(4),
                r#type: text(5),
                nullable: cell(6).as_bool().unwrap_or(true),
                primary_key: cell(7).as_bool().unwrap_or(false),
            });
        }
    }
    schemas
}
