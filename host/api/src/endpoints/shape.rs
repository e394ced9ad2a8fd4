//! An endpoint as clients write and read it.

use super::parts::{
    EndpointField, EndpointFilter, EndpointOrder, EndpointSort, FieldOut, FilterOut, SortOut,
    SortingOut, TableSource, filter_out, sorting_out,
};
use crate::products::check::{
    Errors, LABEL_CHARS_MAX, NAME_CHARS_MAX, TEXT_CHARS_MAX, connection, engine, slug, timeout,
};
use crate::products::labels::Labels;
use crate::products::{Common, Offered};
use crate::refusals::VALIDATION_ERROR;
use crate::runs::{Params, not_found};
use crate::texts::ProductTag;
use crate::words;
use crate::{ApiState, Caller, Problem};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use souk_app::definition::{self, Field, Sorting};
use souk_app::failure::Failure;
use souk_app::products::{Learned, impossible};
use souk_app::publish;
use souk_domain::ids::EndpointId;
use souk_domain::pages::{DEFAULT_LIMIT, DEFAULT_MAX_LIMIT, LIMIT_MAX};
use souk_domain::sql::{self, Dialect};
use souk_domain::time::Timestamp;
use souk_store::prices::Price;
use souk_store::products::{EndpointDetails, Row, Tested, Written};
use utoipa::ToSchema;

/// An endpoint to create. Exactly one of `source` and `sql_logic` says where its rows come from.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct EndpointIn {
    /// A user of the company; the key's user when absent.
    pub user_id: Option<String>,
    #[schema(value_type = String, required = true)]
    pub connection_id: Option<String>,
    #[schema(value_type = String, required = true, min_length = 1, max_length = 255)]
    pub name: Option<String>,
    /// Unique in the company; made from the name when absent.
    #[schema(
        min_length = 1,
        max_length = 63,
        pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
    )]
    pub slug: Option<String>,
    #[schema(max_length = 5000)]
    pub description: Option<String>,
    #[schema(max_length = 100)]
    pub category: Option<String>,
    /// Of `GET /industries`.
    #[schema(max_items = 50)]
    pub industry_ids: Option<Vec<i64>>,
    /// Of `GET /asset-use-cases`.
    #[schema(max_items = 50)]
    pub use_case_ids: Option<Vec<i64>>,
    #[schema(value_type = Option<Vec<ProductTag>>, max_items = 50)]
    pub tags: Option<Vec<String>>,
    pub source: Option<TableSource>,
    /// One statement that begins with SELECT, WITH, VALUES or TABLE, without parameters.
    #[schema(max_length = 65536)]
    pub sql_logic: Option<String>,
    /// The published columns.
    #[schema(value_type = Vec<EndpointField>, required = true, min_items = 1, max_items = 200)]
    pub fields: Option<Value>,
    /// With a unique tail. On a table the primary key when absent; with `sql_logic` required. `nullable: false` vouches that there is a
    /// value in every row, which makes pages of a statement faster; a row without one would be left out.
    #[schema(value_type = Option<Vec<EndpointOrder>>, max_items = 10)]
    pub order_by: Option<Value>,
    /// Columns that a caller may compare; `like` finds texts by how they begin. Documents, arrays, bytes and composites cannot be
    /// compared: a column that a test has found to be one is refused.
    #[schema(value_type = Option<Vec<EndpointFilter>>, max_items = 20)]
    pub filters: Option<Value>,
    /// Orders that a caller may ask for by `sort`, each with `order_by` behind it as its unique tail.
    #[schema(value_type = Option<Vec<EndpointSort>>, max_items = 10)]
    pub sorts: Option<Value>,
    /// Default 100.
    #[schema(minimum = 1, maximum = 10000)]
    pub default_limit: Option<i64>,
    /// Default 1000.
    #[schema(minimum = 1, maximum = 10000)]
    pub max_limit: Option<i64>,
    /// Default 10000.
    #[schema(minimum = 100, maximum = 60000)]
    pub timeout_ms: Option<i64>,
    /// Sets the price, like `POST …/prices`.
    #[schema(minimum = 0, maximum = 100000000000_i64)]
    pub price_credits: Option<i64>,
    /// Default true.
    pub allow_ai_training: Option<bool>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Endpoint)]
pub struct EndpointOut {
    pub id: String,
    pub endpoint_id: String,
    pub company_id: String,
    pub company_handle: String,
    pub user_id: String,
    pub connection_id: String,
    pub name: String,
    pub slug: String,
    pub description: String,
    pub category: Option<String>,
    pub industry_ids: Vec<i64>,
    pub use_case_ids: Vec<i64>,
    pub tags: Vec<String>,
    pub source: Option<TableSource>,
    pub sql_logic: Option<String>,
    pub fields: Vec<FieldOut>,
    pub order_by: Vec<SortingOut>,
    pub filters: Vec<FilterOut>,
    pub sorts: Vec<SortOut>,
    #[schema(minimum = 0)]
    pub default_limit: i64,
    #[schema(minimum = 0)]
    pub max_limit: i64,
    #[schema(minimum = 0)]
    pub timeout_ms: i64,
    #[schema(minimum = 0)]
    pub price_credits: Option<i64>,
    pub allow_ai_training: bool,
    #[schema(value_type = words::ProductStatus)]
    pub status: &'static str,
    #[schema(value_type = words::Version)]
    pub version: &'static str,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub published_at: Option<Timestamp>,
}

impl Offered for EndpointId {
    const WRITABLE: &'static [&'static str] = &[
        "connection_id",
        "name",
        "slug",
        "description",
        "category",
        "industry_ids",
        "use_case_ids",
        "tags",
        "source",
        "sql_logic",
        "fields",
        "order_by",
        "filters",
        "sorts",
        "default_limit",
        "max_limit",
        "timeout_ms",
        "allow_ai_training",
    ];
    const SOURCES: &'static [&'static str] = &["source", "sql_logic"];
    type In = EndpointIn;
    type Out = EndpointOut;

    fn common(body: &EndpointIn) -> Common<'_> {
        Common {
            user_id: body.user_id.as_deref(),
            slug: body.slug.as_deref(),
            price_credits: body.price_credits,
            params: None,
        }
    }

    async fn checked(
        body: EndpointIn,
        api: &ApiState,
        caller: &Caller,
    ) -> Result<Written<EndpointDetails>, Problem> {
        body.checked(api, caller).await
    }

    async fn possible(
        api: &ApiState,
        caller: &Caller,
        id: &EndpointId,
        written: &Written<EndpointDetails>,
        before: Option<&Row<EndpointId>>,
    ) -> Result<(), Problem> {
        let mut read = api.db().read().await?;
        let errors = impossible(&mut read, caller.company(), id, written, before)
            .await
            .map_err(|error| not_found(error, "endpoint", id.as_str()))?;
        match errors.is_empty() {
            true => Ok(()),
            false => Err(Problem::fields(VALIDATION_ERROR, errors)),
        }
    }

    async fn tested(
        api: &ApiState,
        caller: &Caller,
        before: &Row<EndpointId>,
        written: &Written<EndpointDetails>,
        _: &Params,
    ) -> Result<Tested, Failure> {
        publish::test_changed_endpoint(api.app(), before, written, caller.now()).await
    }

    fn out(row: Row<EndpointId>, price: Option<&Price>, _: bool) -> EndpointOut {
        let written = row.written;
        let details = written.details;
        let labels = Labels::stored(&written.labels);
        let learned: Option<Learned> = row
            .learned
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        let fields: Vec<Field> = serde_json::from_str(&details.fields).unwrap_or_default();
        let sorting: Vec<Sorting> = serde_json::from_str(&details.order_by).unwrap_or_default();
        let filters: Value = serde_json::from_str(&details.filters).unwrap_or_default();
        let sorts: Value = serde_json::from_str(&details.sorts).unwrap_or_default();
        let kind = |name: &str| {
            learned
                .as_ref()
                .and_then(|learned| learned.kind(name))
                .map(str::to_owned)
        };
        EndpointOut {
            id: row.id.to_string(),
            endpoint_id: row.id.to_string(),
            company_id: row.company_id.to_string(),
            company_handle: row.company_handle,
            user_id: row.user_id.to_string(),
            connection_id: written.connection_id.to_string(),
            name: written.name,
            slug: written.slug,
            description: written.description,
            category: written.category,
            industry_ids: labels.industry_ids,
            use_case_ids: labels.use_case_ids,
            tags: labels.tags,
            source: details.source_table.map(|table| TableSource {
                schema: details.source_schema,
                table,
            }),
            sql_logic: details.sql_logic,
            fields: fields
                .into_iter()
                .map(|field| FieldOut {
                    kind: kind(&field.name),
                    name: field.name,
                    alias: field.alias,
                    description: field.description,
                })
                .collect(),
            order_by: sorting.into_iter().map(sorting_out).collect(),
            filters: definition::filters(&filters)
                .unwrap_or_default()
                .into_iter()
                .map(filter_out)
                .collect(),
            sorts: definition::sorts(&sorts)
                .unwrap_or_default()
                .into_iter()
                .map(|sort| SortOut {
                    name: sort.name,
                    order_by: sort.order_by.into_iter().map(sorting_out).collect(),
                })
                .collect(),
            default_limit: details.default_limit,
            max_limit: details.max_limit,
            timeout_ms: written.timeout_ms,
            price_credits: price.map(|price| price.credits.get()),
            allow_ai_training: written.allow_ai_training,
            status: row.status.as_str(),
            version: "v1",
            created_at: row.created_at,
            updated_at: row.updated_at,
            published_at: row.published_at,
        }
    }

    fn bytes(row: &Row<EndpointId>) -> usize {
        let details = &row.written.details;
        let optional = [&details.sql_logic, &row.learned];
        let optional = optional.into_iter().flatten().map(String::len);
        row.written.description.len() + details.fields.len() + optional.sum::<usize>()
    }
}

impl EndpointIn {
    async fn checked(
        self,
        api: &ApiState,
        caller: &Caller,
    ) -> Result<Written<EndpointDetails>, Problem> {
        let mut errors = Errors::default();
        let name = errors.required("name", self.name, NAME_CHARS_MAX);
        let slug = slug(&mut errors, self.slug, &name, "endpoint");
        errors.json("fields", self.fields.as_ref());
        let fields = match &self.fields {
            Some(json) => errors.take(definition::fields(json)),
            None => {
                errors.add(
                    "fields",
                    "required",
                    "is required: name the columns to publish",
                );
                Vec::new()
            }
        };
        let order_by = errors.take(definition::order_by(
            &self.order_by.unwrap_or_else(|| json!([])),
        ));
        let filters = errors.take(definition::filters(
            &self.filters.unwrap_or_else(|| json!([])),
        ));
        let sorts = errors.take(definition::sorts(&self.sorts.unwrap_or_else(|| json!([]))));
        let max_limit = limit(
            &mut errors,
            "max_limit",
            self.max_limit,
            i64::from(DEFAULT_MAX_LIMIT),
            i64::from(LIMIT_MAX),
        );
        let default = i64::from(DEFAULT_LIMIT).min(max_limit);
        let default_limit = limit(
            &mut errors,
            "default_limit",
            self.default_limit,
            default,
            max_limit,
        );
        let timeout_ms = timeout(&mut errors, self.timeout_ms);
        let labels = Labels::given(&mut errors, self.industry_ids, self.use_case_ids, self.tags);
        let labels = serde_json::to_string(&labels).map_err(Problem::internal)?;
        let description = errors
            .text("description", self.description, TEXT_CHARS_MAX)
            .unwrap_or_default();
        let category = errors.text("category", self.category, LABEL_CHARS_MAX);
        match (&self.source, &self.sql_logic) {
            (Some(_), None) => {}
            (None, Some(_)) => {}
            _ => errors.add(
                "source",
                "required",
                "exactly one of source, such as {\"table\": \"matches\"}, and sql_logic is required",
            ),
        }
        if let Some(source) = &self.source {
            check_table("source.table", &source.table, &mut errors);
            if let Some(schema) = &source.schema {
                check_table("source.schema", schema, &mut errors);
            }
        }
        let connection = connection(&mut errors, self.connection_id);

        let speaks = match &connection {
            Some(connection) => engine(&mut errors, api, caller, connection).await?,
            None => None,
        };
        let is_opaque = speaks
            .as_ref()
            .is_some_and(|speaks| speaks.sql == Some(Dialect::Opaque));
        if self.source.is_none() && self.sql_logic.is_some() && order_by.is_empty() && !is_opaque {
            errors.add(
                "order_by",
                "required",
                "is required with sql_logic: name columns that sort the rows, with a unique tail",
            );
        }
        if let Some(speaks) = speaks {
            match (&self.sql_logic, speaks.sql) {
                (_, Some(Dialect::Opaque)) => {
                    let asked = [
                        ("source", self.source.is_some()),
                        ("order_by", !order_by.is_empty()),
                        ("filters", !filters.is_empty()),
                        ("sorts", !sorts.is_empty()),
                    ];
                    for (member, _) in asked.into_iter().filter(|(_, is_there)| *is_there) {
                        let message = format!(
                            "{} takes a text of its own, in sql_logic: nothing can be added to it, and its rows come in its own order",
                            speaks.engine
                        );
                        errors.add(member, "unsupported", message);
                    }
                    if let Some(text) = &self.sql_logic
                        && let Err(error) = sql::check(Dialect::Opaque, text, &[])
                    {
                        return Err(errors.sql(&error));
                    }
                }
                (Some(text), Some(dialect)) => {
                    if let Err(error) = sql::check(dialect, text, &[]) {
                        return Err(errors.sql(&error));
                    }
                }
                (None, Some(_)) => {}
                (_, None) => {
                    let message = format!("{} has no tables and takes no SQL", speaks.engine);
                    errors.add("connection_id", "unsupported", message);
                }
            }
        }
        errors.check()?;
        let Some(connection_id) = connection else {
            return Err(Problem::internal(
                "an endpoint without errors lacks its connection",
            ));
        };
        let json = |value: Result<String, serde_json::Error>| value.map_err(Problem::internal);
        let (source_schema, source_table) = match self.source {
            Some(source) => (source.schema, Some(source.table)),
            None => (None, None),
        };
        let details = EndpointDetails {
            source_schema,
            source_table,
            sql_logic: self.sql_logic,
            fields: json(serde_json::to_string(&fields))?,
            order_by: json(serde_json::to_string(&order_by))?,
            filters: json(serde_json::to_string(&filters))?,
            sorts: json(serde_json::to_string(&sorts))?,
            default_limit,
            max_limit,
        };
        Ok(Written {
            connection_id,
            name,
            slug,
            description,
            category,
            labels,
            timeout_ms,
            allow_ai_training: self.allow_ai_training.unwrap_or(true),
            details,
        })
    }
}

fn limit(errors: &mut Errors, field: &str, given: Option<i64>, default: i64, max: i64) -> i64 {
    let limit = given.unwrap_or(default);
    if !(1..=max).contains(&limit) {
        errors.add(
            field,
            "out_of_range",
            format!("must be between 1 and {max}"),
        );
    }
    limit
}

fn check_table(field: &str, name: &str, errors: &mut Errors) {
    if name.is_empty() || name.chars().count() > definition::COLUMN_CHARS_MAX || name.contains('\0')
    {
        errors.add(
            field,
            "invalid",
            format!(
                "must be a name of 1 to {} characters",
                definition::COLUMN_CHARS_MAX
            ),
        );
    }
}
