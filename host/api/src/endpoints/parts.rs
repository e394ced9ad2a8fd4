//! What an endpoint is made of: its source, its columns, and how its rows may be sorted and compared, as clients write and read them.

use crate::texts::text;
use crate::words;
use serde::{Deserialize, Serialize};
use souk_app::definition::{COLUMN_CHARS_MAX, Filter, Sorting};
use souk_domain::sql::Operator;
use utoipa::openapi::schema::{OneOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// A table or a view of the source.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct TableSource {
    #[serde(default)]
    #[schema(min_length = 1, max_length = 128)]
    pub schema: Option<String>,
    #[schema(min_length = 1, max_length = 128)]
    pub table: String,
}

/// A column to publish.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct EndpointField {
    #[schema(min_length = 1, max_length = 128)]
    name: String,
    /// Under which name.
    #[schema(min_length = 1, max_length = 128)]
    alias: Option<String>,
    description: Option<String>,
}

/// A column to sort by, with `-` before it if descending; or both said by name.
pub struct EndpointOrder;

impl PartialSchema for EndpointOrder {
    fn schema() -> RefOr<Schema> {
        let order = OneOfBuilder::new().item(text(1, COLUMN_CHARS_MAX + 1));
        order
            .item(Ref::from_schema_name(EndpointSorting::name()))
            .into()
    }
}

impl ToSchema for EndpointOrder {
    fn schemas(nested: &mut Vec<(String, RefOr<Schema>)>) {
        nested.push((
            EndpointSorting::name().into_owned(),
            EndpointSorting::schema(),
        ));
        EndpointSorting::schemas(nested);
    }
}

/// A column to sort by.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct EndpointSorting {
    #[schema(min_length = 1, max_length = 128)]
    field: String,
    /// `asc` when absent.
    #[schema(value_type = words::Direction, required = false)]
    direction: Option<String>,
    /// Whether it may be NULL.
    nullable: Option<bool>,
}

/// A column that a caller may compare: its name where only `=` is allowed, else with its operators.
pub struct EndpointFilter;

impl PartialSchema for EndpointFilter {
    fn schema() -> RefOr<Schema> {
        let filter = OneOfBuilder::new().item(text(1, COLUMN_CHARS_MAX));
        filter
            .item(Ref::from_schema_name(EndpointComparison::name()))
            .into()
    }
}

impl ToSchema for EndpointFilter {
    fn schemas(nested: &mut Vec<(String, RefOr<Schema>)>) {
        nested.push((
            EndpointComparison::name().into_owned(),
            EndpointComparison::schema(),
        ));
        EndpointComparison::schemas(nested);
    }
}

/// A column with how it may be compared.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct EndpointComparison {
    #[schema(min_length = 1, max_length = 128)]
    field: String,
    /// Only `eq` when it is left out.
    #[schema(value_type = Option<Vec<words::FilterOperator>>, min_items = 1)]
    operators: Option<Vec<String>>,
}

/// An order that callers may ask for.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct EndpointSort {
    #[schema(min_length = 1, max_length = 63, pattern = "^[A-Za-z0-9_-]+$")]
    name: String,
    #[schema(min_items = 1, max_items = 10)]
    order_by: Vec<EndpointOrder>,
}

/// A published column.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PublishedField)]
pub struct FieldOut {
    pub name: String,
    pub alias: Option<String>,
    /// As the last test found it.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub description: Option<String>,
}

/// What rows are sorted by.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sorting)]
pub struct SortingOut {
    pub field: String,
    #[schema(value_type = words::Direction)]
    pub direction: &'static str,
    /// Whether it may be NULL, if the seller says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub nullable: Option<bool>,
}

/// A column that a caller may compare: its name where only `=` is allowed, else with its operators.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = DeclaredFilter)]
pub enum FilterOut {
    Equality(String),
    Operators(FilterOperators),
}

#[derive(Debug, Serialize, ToSchema)]
pub struct FilterOperators {
    field: String,
    #[schema(value_type = Vec<words::FilterOperator>)]
    operators: Vec<&'static str>,
}

/// An order that callers may ask for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeclaredSort)]
pub struct SortOut {
    pub name: String,
    pub order_by: Vec<SortingOut>,
}

pub(super) fn sorting_out(sorting: Sorting) -> SortingOut {
    SortingOut {
        field: sorting.field,
        direction: if sorting.descending { "desc" } else { "asc" },
        nullable: sorting.nullable,
    }
}

pub(super) fn filter_out(filter: Filter) -> FilterOut {
    match filter.operators.as_slice() {
        [Operator::Eq] => FilterOut::Equality(filter.field),
        operators => FilterOut::Operators(FilterOperators {
            operators: operators.iter().map(|operator| operator.word()).collect(),
            field: filter.field,
        }),
    }
}
