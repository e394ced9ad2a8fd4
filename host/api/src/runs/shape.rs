//! What a run or a preview answers, for the document: the bodies themselves are written by [`super::answer`].

use crate::answer::AnyObject;
use crate::words;
use souk_domain::time::Timestamp;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// The one insight of an asset.
#[derive(ToSchema)]
pub struct AssetAnswer {
    pub data: AssetResult,
    pub meta: AssetMeta,
}

/// Has one of `answer_value`, `visualization` and `prediction`, as `result_type` says.
#[derive(ToSchema)]
pub struct AssetResult {
    /// Null of a preview, which runs nothing.
    pub execution_id: Option<String>,
    pub asset_id: String,
    #[schema(value_type = words::AssetType)]
    pub asset_type: &'static str,
    #[schema(value_type = words::ResultType)]
    pub result_type: &'static str,
    #[schema(required = false)]
    pub answer_value: AnswerValue,
    #[schema(required = false)]
    pub visualization: Option<VisualizationResult>,
    #[schema(required = false)]
    pub prediction: Option<PredictionResult>,
    pub unit: Option<String>,
    /// When it was answered.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Timestamp,
}

/// A number with all its digits or a text, as `result_type` says; null if the source has none.
pub struct AnswerValue;

impl PartialSchema for AnswerValue {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::Number, Type::String, Type::Null]))
            .description(Some(
                "A number with all its digits or a text, as `result_type` says; null if the source has none.",
            ))
            .into()
    }
}

impl ToSchema for AnswerValue {}

/// A chart to draw, with its data.
#[derive(ToSchema)]
pub struct VisualizationResult {
    #[schema(value_type = words::ChartFormat)]
    pub format: &'static str,
    /// Of Vega-Lite.
    #[schema(minimum = 5, maximum = 5)]
    pub version: i64,
    pub spec: AnyObject,
}

/// A forecast with its interval.
#[derive(ToSchema)]
pub struct PredictionResult {
    /// Of the interval: 0.9 of what comes lies in it.
    #[schema(minimum = 0, maximum = 1)]
    pub level: f64,
    pub model: String,
    pub points: Vec<PredictedPoint>,
}

#[derive(ToSchema)]
pub struct PredictedPoint {
    /// A date or a time, as the series has them.
    pub t: String,
    pub value: f64,
    pub lower: f64,
    pub upper: f64,
}

#[derive(ToSchema)]
pub struct AssetMeta {
    /// Only of previews.
    #[schema(required = false)]
    pub preview: Option<bool>,
    /// Only of the seller's tests.
    #[schema(required = false)]
    pub test: Option<bool>,
    #[schema(minimum = 0)]
    pub execution_time_ms: i64,
    #[schema(minimum = 0)]
    pub credits_used: i64,
    /// Why it cost nothing; absent when it was charged.
    #[schema(required = false)]
    pub billing_reason: Option<FreeOf>,
    /// How old the data are: what the source says, or the time of the question.
    #[schema(value_type = String, format = DateTime)]
    pub data_freshness: Timestamp,
    pub request_id: String,
    pub ai_training_allowed: bool,
    #[schema(required = false)]
    pub purchase_id: Option<String>,
    #[schema(required = false)]
    pub transaction_id: Option<String>,
}

/// Why a run cost nothing.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum FreeOf {
    Owner,
    Preview,
    Test,
    EmptyPage,
    Free,
    Failed,
}

/// A page of an endpoint.
#[derive(ToSchema)]
pub struct PageAnswer {
    pub data: PageData,
}

#[derive(ToSchema)]
pub struct PageData {
    pub response: PageRows,
    pub service: Service,
}

#[derive(ToSchema)]
pub struct PageRows {
    /// Rows with the published columns as members. Decimals are numbers with all their digits.
    pub data: Vec<AnyObject>,
}

/// What the host says about the page.
#[derive(ToSchema)]
pub struct Service {
    pub endpoint_id: String,
    pub endpoint_slug: String,
    pub company_handle: String,
    #[schema(value_type = words::Version)]
    pub version: &'static str,
    pub request_id: String,
    /// Absent of previews.
    #[schema(required = false)]
    pub pagination: Option<Pagination>,
    pub billing: PageBilling,
    pub execution: PageExecution,
    pub license: License,
}

#[derive(ToSchema)]
pub struct Pagination {
    #[schema(minimum = 0)]
    pub start: i64,
    #[schema(minimum = 1)]
    pub limit: i64,
    #[schema(minimum = 0)]
    pub returned: i64,
    pub has_more: bool,
    /// Null on the last page.
    #[schema(minimum = 0)]
    pub next_start: Option<i64>,
    /// Where the next page begins, for `cursor`: sealed, and good for the filters and the order of this page; null on the last.
    pub next_cursor: Option<String>,
    /// The next page, with limit, sort, fields and filters of this one; null on the last.
    pub next_url: Option<String>,
    /// How the next page is found: by the place of this one's last row, or, where the source cannot compare that, by counting.
    pub paging: Option<Paging>,
    /// Not counted: always null.
    #[schema(minimum = 0)]
    pub total: Option<i64>,
}

#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum Paging {
    Keyset,
    Offset,
}

#[derive(ToSchema)]
pub struct PageBilling {
    pub billable: bool,
    #[schema(minimum = 0)]
    pub credits_used: i64,
    #[schema(minimum = 0)]
    pub price_credits: i64,
    /// What the buyer has left, if it was charged. Absent of previews.
    #[schema(required = false)]
    pub balance_credits: Option<i64>,
    #[schema(required = false)]
    pub transaction_id: Option<String>,
    /// Why it cost nothing; null when it was charged.
    pub reason: Option<FreeOf>,
}

#[derive(ToSchema)]
pub struct PageExecution {
    #[schema(minimum = 0)]
    pub execution_time_ms: i64,
    #[schema(value_type = String, format = DateTime)]
    pub data_freshness: Timestamp,
}

#[derive(ToSchema)]
pub struct License {
    pub ai_training_allowed: bool,
    pub redistribution_allowed: bool,
}

/// What a product shows for free. `meta` is of an asset; of an endpoint the same stands in `data.service`.
#[derive(ToSchema)]
pub struct PreviewAnswer {
    pub data: PreviewData,
    #[schema(required = false)]
    pub meta: AssetMeta,
}

/// Of an asset its one insight, of an endpoint its rows.
pub struct PreviewData;

impl PartialSchema for PreviewData {
    fn schema() -> RefOr<Schema> {
        let of = |name| Ref::from_schema_name(name);
        // Not `anyOf`: of that openapi-generator makes one type that has to have the members of all.
        OneOfBuilder::new()
            .item(of(AssetResult::name()))
            .item(of(PageData::name()))
            .into()
    }
}

impl ToSchema for PreviewData {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((AssetResult::name().into(), AssetResult::schema()));
        AssetResult::schemas(schemas);
        schemas.push((PageData::name().into(), PageData::schema()));
        PageData::schemas(schemas);
    }
}
