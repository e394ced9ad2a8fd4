use crate::products::own;
use crate::refusals::{INVALID_PARAMETER, INVALID_STATE, PRIVACY_THRESHOLD, VALIDATION_ERROR};
use crate::runs::{Params, refusal};
use crate::words;
use crate::{
    AnyObject, ApiState, AsSent, Body, Caller, Data, FieldError, Operation, Path, Problem,
};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use souk_app::definition::COLUMN_CHARS_MAX;
use souk_app::scan::{self, ROWS_DEFAULT, ROWS_MAX, Scan};
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::roles::{Permission, Role};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("scan_asset_column", "/companies/{company_id}/assets/{asset_id}/column-scan")
    .about("Assets", "Look at the values of a column")
    .notes(
        "A column of what the asset's `sql_logic` finds, with these `params`, in so many rows as the source gives first. Every figure is of those \
         rows: `truncated` says that there are more. Rows that the asset's `privacy` withholds are not looked at. Free, and for the owner only; \
         nothing is kept. An asset that calls a seller's API has no columns (400).",
    )
    .needs(Role::DataScientist, Permission::Read)
    .runs_connector()
    .refuses(&[INVALID_PARAMETER, INVALID_STATE, PRIVACY_THRESHOLD]);

#[derive(Deserialize, ToSchema)]
pub struct ScanIn {
    /// As the result calls it.
    #[schema(min_length = 1, max_length = 128)]
    column: String,
    /// Rows to look at, at most 5000. Default 1000.
    #[schema(minimum = 1, maximum = 5000)]
    limit: Option<i64>,
    /// The asset's parameters by name.
    #[schema(value_type = Option<AnyObject>)]
    params: Option<Map<String, Value>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ColumnScan)]
pub struct ScanOut {
    column: String,
    #[schema(value_type = words::ColumnType)]
    r#type: &'static str,
    /// The source's own name of the type.
    native_type: String,
    scanned_rows: usize,
    null_count: usize,
    /// Different values, `null` not among them.
    distinct_count: usize,
    /// `null` without a value. Texts are shown by their first 200 characters, here and below.
    #[schema(value_type = Option<Value>)]
    min: Option<Box<RawValue>>,
    #[schema(value_type = Option<Value>)]
    max: Option<Box<RawValue>>,
    /// Ten bins of equal width over numbers and times (dates as the instants that they begin at), one where all values are equal; empty
    /// of other types.
    histogram: Vec<BinOut>,
    /// The ten most frequent.
    top_values: Vec<TopOut>,
    /// There are more rows than were looked at.
    truncated: bool,
}

/// From one bound up to, not including, the other; the last bin includes both.
#[derive(Serialize, ToSchema)]
#[schema(as = ColumnBin)]
pub struct BinOut {
    #[schema(value_type = Value)]
    from: Box<RawValue>,
    #[schema(value_type = Value)]
    to: Box<RawValue>,
    count: usize,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ColumnValue)]
pub struct TopOut {
    #[schema(value_type = Value)]
    value: Box<RawValue>,
    count: usize,
}

impl ScanOut {
    fn new(column: String, scan: Scan) -> ScanOut {
        let histogram = scan.histogram.into_iter().map(|bin| BinOut {
            from: bin.from,
            to: bin.to,
            count: bin.count,
        });
        let top_values = scan.top.into_iter().map(|top| TopOut {
            value: top.value,
            count: top.count,
        });
        ScanOut {
            column,
            r#type: scan.kind,
            native_type: scan.native,
            scanned_rows: scan.rows,
            null_count: scan.nulls,
            distinct_count: scan.distinct,
            min: scan.min,
            max: scan.max,
            histogram: histogram.collect(),
            top_values: top_values.collect(),
            truncated: scan.truncated,
        }
    }
}

/// Looks at the values of a column of an own asset's result.
pub async fn scan_asset_column(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    sent: AsSent<Body<ScanIn>>,
) -> Result<Data<ScanOut>, Problem> {
    let Body(body) = sent.body;
    let mut errors = Vec::new();
    if body.column.is_empty() || body.column.chars().count() > COLUMN_CHARS_MAX {
        let message = format!("must have 1 to {COLUMN_CHARS_MAX} characters");
        errors.push(FieldError::new("column", "invalid", message));
    }
    let rows = body.limit.map_or(Ok(ROWS_DEFAULT), u32::try_from);
    let rows = rows.ok().filter(|rows| (1..=ROWS_MAX).contains(rows));
    if rows.is_none() {
        let message = format!("must be 1 to {ROWS_MAX}");
        errors.push(FieldError::new("limit", "invalid", message));
    }
    let (true, Some(rows)) = (errors.is_empty(), rows) else {
        return Err(Problem::fields(VALIDATION_ERROR, errors));
    };
    let asset = own(&api, &caller, &id).await?;
    let (beside, parameters) = (["column", "limit"], &asset.plan.parameters);
    let params = Params::of_members(body.params, &sent.bytes, &beside, parameters)?;
    let scanned = scan::scan(api.app(), &asset, &body.column, rows, &params.raw()).await;
    let scanned = scanned.map_err(refusal("asset", id.as_str()))?;
    Ok(Data(ScanOut::new(body.column, scanned)))
}
