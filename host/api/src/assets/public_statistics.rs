use crate::period::{last_days, ratio};
use crate::products::not_found;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use serde::Serialize;
use serde_json::Number;
use souk_domain::ids::AssetId;
use souk_domain::products::ProductStatus;
use souk_domain::time::{DAY, Timestamp};
use souk_store::sales::Span;
use souk_store::{products, uses};
use utoipa::ToSchema;

/// Dates of what is counted lately.
const DAYS: u32 = 30;

pub const OPERATION: Operation = Operation::get("asset_public_statistics", "/assets/{asset_id}/public-statistics")
    .about("Assets", "Show how an asset on sale is used")
    .notes(
        "Of published assets of companies in good standing; any other is 404, whoever asks. What the seller ran itself is left out. 30 UTC dates, \
         the last of them today.",
    );

#[derive(Serialize, ToSchema)]
#[schema(as = AssetPublicStatistics)]
pub struct PublicOut {
    #[schema(value_type = String)]
    asset_id: AssetId,
    /// That succeeded.
    #[schema(minimum = 0)]
    executions_30d: i64,
    /// That ever succeeded.
    #[schema(minimum = 0)]
    total_executions: i64,
    /// Companies that hold a purchase today.
    #[schema(minimum = 0)]
    buyers: i64,
    /// Users who marked it.
    #[schema(minimum = 0)]
    favorites: i64,
    /// Of the runs of 30 days that did not fail for what their caller sent or for this host's own reasons, from 0 to 1, four decimals; `null` without any.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    success_rate: Option<Number>,
    /// Of 30 days, three decimals; `null` without a run.
    #[schema(value_type = Option<f64>, minimum = 0)]
    avg_execution_time_ms: Option<Number>,
    /// When these figures were read.
    #[schema(value_type = String, format = DateTime)]
    last_updated: Timestamp,
}

/// Shows how an asset on sale is used.
pub async fn asset_public_statistics(
    State(api): State<ApiState>,
    caller: Caller,
    Path(id): Path<AssetId>,
) -> Result<Data<PublicOut>, Problem> {
    let now = caller.now();
    let mut read = api.db().snapshot().await?;
    let asset = products::get_any(&mut read, &id).await?;
    let asset =
        asset.filter(|asset| asset.status == ProductStatus::Published && !asset.is_suspended);
    let asset = asset.ok_or_else(|| not_found(&id))?;
    let (seller, product) = (&asset.company_id, id.as_str());
    let lately = uses::over(&mut read, seller, product, last_days(DAYS, now)).await?;
    let ever = Span {
        from: Timestamp::from_micros(0),
        to: now.day_start().after(DAY),
    };
    let ever = uses::over(&mut read, seller, product, ever).await?;
    let interest = uses::interest(&mut read, product).await?;
    let (succeeded, runs) = (
        lately.succeeded - lately.own_succeeded,
        lately.runs() - lately.own_runs(),
    );
    let duration_us = lately.duration_us - lately.own_duration_us;
    Ok(Data(PublicOut {
        asset_id: id,
        executions_30d: succeeded,
        total_executions: ever.succeeded - ever.own_succeeded,
        buyers: interest.purchases,
        favorites: interest.favorites,
        success_rate: ratio(succeeded, lately.answerable() - lately.own_answerable(), 4),
        avg_execution_time_ms: ratio(duration_us, runs * 1_000, 3),
        last_updated: now,
    }))
}
