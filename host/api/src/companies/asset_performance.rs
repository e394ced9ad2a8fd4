use crate::period::{Period, change_percent, ratio};
use crate::query::{choices, parameters};
use crate::words;
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query, SortOrder};
use axum::extract::State;
use serde::Serialize;
use serde_json::Number;
use souk_store::sales::{self, AssetOrder, AssetSales};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("asset_performance", "/companies/{company_id}/asset-performance")
    .about("Companies", "List how a seller's assets do")
    .notes(
        "What other companies did with each asset in the period, which ends with today's UTC date: day 1 date, week 7, month 30, quarter 90. \
         Assets that nobody used are listed too, archived ones only when they were used.",
    );

choices! {
    pub enum SortBy {
        CreditsEarned = "credits_earned",
        Executions = "executions",
        UniqueBuyers = "unique_buyers",
        SuccessRate = "success_rate",
        Duration = "avg_execution_time_ms",
        Name = "name",
    }
}

parameters! {
    pub struct PerformanceQuery {
        ..paging: Paging,
        /// How many dates, today the last of them.
        period: Period = Period::Month,
        /// What the list is sorted by.
        sort_by: SortBy = SortBy::CreditsEarned,
        /// Default desc, of name asc.
        sort_order: Option<SortOrder>,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AssetPerformance)]
pub struct PerformanceOut {
    asset_id: String,
    name: String,
    #[schema(value_type = words::ProductStatus)]
    status: String,
    /// That succeeded.
    #[schema(minimum = 0)]
    executions: i64,
    #[schema(minimum = 0)]
    failed_executions: i64,
    /// Of the runs that did not fail for what their caller sent or for this host's own reasons, from 0 to 1, four decimals; `null` without any.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    success_rate: Option<Number>,
    /// What was charged less what was refunded, in buyers' credits.
    credits_earned: i64,
    #[schema(minimum = 0)]
    unique_buyers: i64,
    /// Of all runs, the failed ones included; three decimals.
    #[schema(value_type = Option<f64>, minimum = 0)]
    avg_execution_time_ms: Option<Number>,
    /// How executions changed against the period before, in percent with one decimal; `null` when there were none then.
    #[schema(value_type = Option<f64>)]
    trend_percent: Option<Number>,
}

impl From<AssetSales> for PerformanceOut {
    fn from(asset: AssetSales) -> PerformanceOut {
        let sold = asset.sold;
        let runs = sold.executions + sold.failed;
        PerformanceOut {
            asset_id: asset.id,
            name: asset.name,
            status: asset.status,
            executions: sold.executions,
            failed_executions: sold.failed,
            success_rate: ratio(sold.executions, sold.answerable(), 4),
            credits_earned: sold.revenue_credits(),
            unique_buyers: sold.buyers,
            avg_execution_time_ms: ratio(sold.duration_us, runs * 1_000, 3),
            trend_percent: change_percent(sold.executions, asset.executions_before),
        }
    }
}

/// Lists how a seller's assets do.
pub async fn asset_performance(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<PerformanceQuery>,
) -> Result<List<PerformanceOut>, Problem> {
    let order = match query.sort_by {
        SortBy::CreditsEarned => AssetOrder::Revenue,
        SortBy::Executions => AssetOrder::Executions,
        SortBy::UniqueBuyers => AssetOrder::Buyers,
        SortBy::SuccessRate => AssetOrder::SuccessRate,
        SortBy::Duration => AssetOrder::Duration,
        SortBy::Name => AssetOrder::Name,
    };
    let is_descending = match query.sort_order {
        Some(chosen) => chosen == SortOrder::Descending,
        None => order != AssetOrder::Name,
    };
    let page = query.paging.page();
    let mut read = api.db().snapshot().await?;
    let spans = query.period.spans(caller.now());
    let (seller, part) = (caller.company(), page.part());
    let listed = sales::assets(&mut read, seller, spans, order, is_descending, part).await?;
    Ok(List::of(page, listed, PerformanceOut::from))
}
