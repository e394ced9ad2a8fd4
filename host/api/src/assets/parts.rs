//! The parts of an asset that are stored as JSON, as the document tells them. `souk_app::definition` reads them.

use crate::words;
use serde_json::Value;
use utoipa::ToSchema;

/// What a caller gives: `:name` in the SQL, or a member of `params` of a seller's API.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct AssetParameter {
    /// Letters, digits and `_`, no digit first.
    #[schema(min_length = 1, max_length = 63)]
    name: String,
    #[schema(value_type = words::ParameterType)]
    r#type: String,
    /// Default true. What is required may be left out where it has a default, and is never `null`.
    #[schema(value_type = Option<bool>)]
    required: Option<bool>,
    /// Of the type. Stands in where a caller leaves the parameter out.
    default: Option<Value>,
    /// The only values that it takes, of the type and within the bounds.
    #[schema(max_items = 200)]
    r#enum: Option<Vec<Value>>,
    /// Of the type.
    minimum: Option<Value>,
    /// Of the type.
    maximum: Option<Value>,
}

/// How a chart is drawn. What is absent is chosen from the columns.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct AssetVisualization {
    #[schema(value_type = Option<words::ChartMark>)]
    mark: Option<String>,
    #[schema(min_length = 1, max_length = 128)]
    x: Option<String>,
    #[schema(min_length = 1, max_length = 128)]
    y: Option<String>,
    #[schema(min_length = 1, max_length = 128)]
    series: Option<String>,
    #[schema(max_length = 200)]
    title: Option<String>,
}

/// What is forecast from which columns. What is absent is chosen from the columns.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct AssetPrediction {
    #[schema(min_length = 1, max_length = 128)]
    time_column: Option<String>,
    #[schema(min_length = 1, max_length = 128)]
    value_column: Option<String>,
    /// How far apart the points are, and the rows: one for each of most periods. Left out, it is what lies between most rows, such as 15 minutes.
    #[schema(value_type = Option<words::Frequency>)]
    frequency: Option<String>,
    /// Points to forecast. Default 12.
    #[schema(value_type = Option<i32>, minimum = 1, maximum = 1000)]
    horizon: Option<u32>,
    /// Of the interval. Default 0.95.
    #[schema(minimum = 0.5, maximum = 0.999)]
    level: Option<f64>,
}

/// A row is released only when it stands for at least so many of the people or things whose number is in the column.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct AssetPrivacy {
    #[schema(value_type = i64, minimum = 1, maximum = 4294967295_i64)]
    min_group_size: u32,
    /// Is never released itself: `visualization` and `prediction` may not name it.
    #[schema(min_length = 1, max_length = 128)]
    privacy_unit_column: String,
}

/// The privacy of an asset as it is shown.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct ShownPrivacy {
    #[schema(value_type = i64, minimum = 1, maximum = 4294967295_i64)]
    min_group_size: u32,
    /// Absent for others than the owner.
    #[schema(required = false, min_length = 1, max_length = 128)]
    privacy_unit_column: String,
}
