//! A product by itself: how it is called, and how long it costs what it does. What its owner alone may see stays out, and what its source calls
//! the columns that no row shows, but for those that callers compare.

use super::shape::ProductOut;
use crate::words;
use serde::Serialize;
use serde_json::Value;
use souk_app::definition::{self, Field, Filter, Sorting};
use souk_app::products::Learned;
use souk_domain::ids::{AssetId, EndpointId};
use souk_domain::money::Credits;
use souk_domain::parameters::Parameter;
use souk_domain::products::ProductStatus;
use souk_domain::time::Timestamp;
use souk_store::prices::Price;
use souk_store::products::Row;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = ProductDetails)]
pub struct DetailsOut {
    #[serde(flatten)]
    product: ProductOut,
    /// `unpublished`: it is on sale no more, and stays with those who have bought it.
    #[schema(value_type = words::ProductStatus)]
    status: &'static str,
    /// Of a discounted price: what it was made from.
    #[schema(minimum = 0)]
    original_price_credits: Option<i64>,
    /// Of a discounted price.
    #[schema(minimum = 1, maximum = 100)]
    discount_percent: Option<i64>,
    /// When the present price ends, by itself or by one that is planned; null: that is not known.
    #[schema(value_type = Option<String>, format = DateTime)]
    price_until: Option<Timestamp>,
    /// Of an asset: what its calls give in `params`.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<ProductParameter>>,
    /// Of an asset, where its seller says what the result is counted in.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// Of an endpoint: what its rows are chosen by, `field=value` or `field[operator]=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    filters: Option<Vec<ProductFilter>>,
    /// Of an endpoint: the orders that `sort` may name, each with `order` behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sorts: Option<Vec<ProductSort>>,
    /// Of an endpoint: what its rows are sorted by. A column that rows do not show is left out, here and in `sorts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<Vec<ProductOrder>>,
    /// Of an endpoint: rows of a page where `limit` is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    default_limit: Option<i64>,
    /// Of an endpoint: the highest `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    max_limit: Option<i64>,
}

/// What a call of an asset may give.
#[derive(Serialize, ToSchema)]
struct ProductParameter {
    name: String,
    #[schema(value_type = words::ParameterType)]
    r#type: &'static str,
    /// A call without it is refused.
    required: bool,
    /// What it is in a call without it, of the type.
    default: Option<Value>,
    /// The only values that it takes, of the type; null: any.
    r#enum: Option<Vec<Value>>,
    /// Of the type.
    minimum: Option<Value>,
    /// Of the type.
    maximum: Option<Value>,
}

/// A column that callers may compare. It need not be one that rows show.
#[derive(Serialize, ToSchema)]
struct ProductFilter {
    /// As it is called in the query.
    field: String,
    r#type: Option<String>,
    #[schema(value_type = Vec<words::FilterOperator>)]
    operators: Vec<&'static str>,
}

/// An order that callers may ask for.
#[derive(Serialize, ToSchema)]
struct ProductSort {
    name: String,
    order_by: Vec<ProductOrder>,
}

/// A column that rows are sorted by.
#[derive(Serialize, ToSchema)]
struct ProductOrder {
    /// As it is called in a row.
    field: String,
    #[schema(value_type = words::Direction)]
    direction: &'static str,
}

impl DetailsOut {
    pub fn of_asset(product: ProductOut, price: Option<&Price>, row: Row<AssetId>) -> DetailsOut {
        let details = row.written.details;
        DetailsOut {
            parameters: Some(parameters(&details.parameters)),
            unit: details.unit,
            ..DetailsOut::new(product, price, row.status)
        }
    }

    pub fn of_endpoint(
        product: ProductOut,
        price: Option<&Price>,
        row: Row<EndpointId>,
    ) -> DetailsOut {
        let details = row.written.details;
        let learned: Learned = row
            .learned
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let fields: Vec<Field> = serde_json::from_str(&details.fields).unwrap_or_default();
        let filters = definition::filters(&json(&details.filters)).unwrap_or_default();
        let sorts = definition::sorts(&json(&details.sorts)).unwrap_or_default();
        let order_by: Vec<Sorting> = serde_json::from_str(&details.order_by).unwrap_or_default();
        let sorts = sorts.into_iter().map(|sort| ProductSort {
            name: sort.name,
            order_by: shown(sort.order_by, &fields),
        });
        let filters = filters.into_iter();
        DetailsOut {
            filters: Some(filters.map(|one| filter(one, &learned)).collect()),
            sorts: Some(sorts.collect()),
            order: Some(shown(with_key(order_by, &learned), &fields)),
            default_limit: Some(details.default_limit),
            max_limit: Some(details.max_limit),
            ..DetailsOut::new(product, price, row.status)
        }
    }

    /// What products of both kinds have.
    fn new(product: ProductOut, price: Option<&Price>, status: ProductStatus) -> DetailsOut {
        let original = price.and_then(|price| price.original_credits);
        DetailsOut {
            product,
            status: status.as_str(),
            original_price_credits: original.map(Credits::get),
            discount_percent: price.and_then(|price| price.discount_percent),
            price_until: price.and_then(|price| price.validity.to),
            parameters: None,
            unit: None,
            filters: None,
            sorts: None,
            order: None,
            default_limit: None,
            max_limit: None,
        }
    }
}

/// As calls are held against them, with the values as their seller wrote them.
fn parameters(stored: &str) -> Vec<ProductParameter> {
    let written: Value = serde_json::from_str(stored).unwrap_or_default();
    let read = definition::saved_parameters(&written).unwrap_or_default();
    let written = written.as_array().into_iter().flatten();
    let both = read.iter().zip(written);
    both.map(|(read, written)| parameter(read, written))
        .collect()
}

/// `written` may have members that nobody knows, and values that no call may give.
fn parameter(read: &Parameter, written: &Value) -> ProductParameter {
    let value = |member: &str| {
        written
            .get(member)
            .filter(|value| !value.is_null())
            .cloned()
    };
    let allowed = written.get("enum").and_then(Value::as_array);
    let allowed = allowed.filter(|values| !values.is_empty());
    let taken = allowed.map(|values| {
        let values = values.iter();
        let taken = values.filter(|value| read.takes(&definition::raw(value)));
        taken.cloned().collect()
    });
    ProductParameter {
        name: read.name().to_owned(),
        r#type: read.kind().word(),
        required: read.is_required(),
        default: value("default"),
        r#enum: taken,
        minimum: value("minimum"),
        maximum: value("maximum"),
    }
}

fn filter(filter: Filter, learned: &Learned) -> ProductFilter {
    ProductFilter {
        r#type: learned.kind(&filter.field).map(str::to_owned),
        operators: filter.operators.iter().map(|one| one.word()).collect(),
        field: filter.field,
    }
}

/// What rows are sorted by: as the seller says, then by the primary key of the table, where a test of what is on the market has found one.
fn with_key(mut order_by: Vec<Sorting>, learned: &Learned) -> Vec<Sorting> {
    let key = learned.key.iter().filter(|_| !learned.types_only);
    for field in key {
        if order_by.iter().all(|before| before.field != *field) {
            order_by.push(Sorting {
                field: field.clone(),
                descending: false,
                nullable: None,
            });
        }
    }
    order_by
}

/// Under the names that rows have.
fn shown(sorted_by: Vec<Sorting>, fields: &[Field]) -> Vec<ProductOrder> {
    let shown = sorted_by.into_iter().filter_map(|sorting| {
        let field = fields.iter().find(|field| field.name == sorting.field)?;
        Some(ProductOrder {
            field: field.published().to_owned(),
            direction: if sorting.descending { "desc" } else { "asc" },
        })
    });
    shown.collect()
}
