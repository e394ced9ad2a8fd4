use crate::money::Usd;
use crate::money::usd;
use crate::period::{Recent, chosen, dates, last_date, last_days, ratio};
use crate::products::find;
use crate::query::{Date, parameters};
use crate::refusals::INVALID_PERIOD;
use crate::words;
use crate::{ApiState, Caller, Data, Operation, Path, Problem, Query};
use axum::extract::State;
use serde::Serialize;
use serde_json::Number;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::time::Timestamp;
use souk_store::sales::Span;
use souk_store::times;
use souk_store::uses::{self, Uses};
use std::collections::HashMap;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("asset_statistics", "/companies/{company_id}/assets/{asset_id}/statistics")
    .about("Assets", "Show how an own asset is used")
    .notes(
        "Whole UTC dates: `7d`, `30d` and `90d` are that many, the last of them today; `24h` has the dates that the last 24 hours touch. Or \
         `start_date` and `end_date`, at most 366 dates. A run counts on the date on which it began, a refund on the date on which it was \
         booked. Runs of your own keys, tests included, are counted as runs; they are neither buyers nor income. Without a use the dates are \
         there with zeros. What was used more than 400 days ago is counted on the first date of its month, and how long that took is not known \
         any more.",
    )
    .refuses(&[INVALID_PERIOD]);

parameters! {
    pub struct StatisticsQuery {
        /// Default 30d. Not together with dates.
        period: Option<Recent>,
        /// The first date, `YYYY-MM-DD`.
        start_date: Option<Date>,
        /// The last date, which is included.
        end_date: Option<Date>,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AssetStatistics)]
pub struct StatisticsOut {
    #[schema(value_type = String)]
    asset_id: AssetId,
    #[schema(value_type = words::StatisticsPeriod)]
    period: &'static str,
    /// The first date, `YYYY-MM-DD`.
    start_date: String,
    /// The last date.
    end_date: String,
    #[schema(minimum = 0)]
    executions: i64,
    #[schema(minimum = 0)]
    successful_executions: i64,
    #[schema(minimum = 0)]
    failed_executions: i64,
    /// Of these, for what their caller sent, or for this host's own reasons.
    #[schema(minimum = 0)]
    excused_executions: i64,
    /// Of `executions`, those by your own keys.
    #[schema(minimum = 0)]
    own_executions: i64,
    /// Of the executions but the excused ones, from 0 to 1, four decimals; `null` without any.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    success_rate: Option<Number>,
    /// Other companies for which a run succeeded.
    #[schema(minimum = 0)]
    unique_buyers: i64,
    /// What was charged less what was refunded in the period, in buyers' credits: below zero when older charges were refunded.
    credits_earned: i64,
    #[schema(minimum = 0)]
    refunded_credits: i64,
    #[schema(value_type = Usd)]
    seller_earnings_usd: Number,
    /// Of all runs; three decimals; `null` without a run.
    #[schema(value_type = Option<f64>, minimum = 0)]
    avg_execution_time_ms: Option<Number>,
    /// 95 of 100 runs took at most this, told to within 3 %: the nearest rank of all in the period, a second after they ended.
    #[schema(value_type = Option<f64>, minimum = 0)]
    p95_execution_time_ms: Option<Number>,
    /// Users who marked it, today.
    #[schema(minimum = 0)]
    favorites: i64,
    /// Companies that hold a purchase, today.
    #[schema(minimum = 0)]
    active_purchases: i64,
    /// The newest run whenever it was; known a second after its end.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_execution_at: Option<Timestamp>,
    /// Ascending, without gaps.
    executions_by_day: Vec<ExecutionDay>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ExecutionDay)]
pub struct ExecutionDay {
    /// `YYYY-MM-DD`
    date: String,
    #[schema(minimum = 0)]
    executions: i64,
    #[schema(minimum = 0)]
    failed_executions: i64,
    #[schema(minimum = 0)]
    unique_buyers: i64,
    /// What was charged.
    #[schema(minimum = 0)]
    credits: i64,
}

/// Shows how an own asset is used.
pub async fn asset_statistics(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, AssetId)>,
    Query(query): Query<StatisticsQuery>,
) -> Result<Data<StatisticsOut>, Problem> {
    let (period, span) = span(&query, caller.now())?;
    let (seller, product) = (caller.company(), id.as_str());
    let mut read = api.db().snapshot().await?;
    find(&mut read, seller, &id).await?;
    let total = uses::over(&mut read, seller, product, span).await?;
    let days = uses::by_day(&mut read, product, span).await?;
    let p95_us = times::p95_us(&mut read, product, span).await?;
    let interest = uses::interest(&mut read, product).await?;
    let last_execution_at = times::last_at(&mut read, product).await?;
    Ok(Data(StatisticsOut {
        asset_id: id,
        period,
        start_date: span.from.date(),
        end_date: last_date(span),
        executions: total.runs(),
        successful_executions: total.succeeded,
        failed_executions: total.failed,
        excused_executions: total.excused,
        own_executions: total.own_runs(),
        success_rate: ratio(total.succeeded, total.answerable(), 4),
        unique_buyers: total.buyers,
        credits_earned: total.earned_credits(),
        refunded_credits: total.refunded_credits,
        seller_earnings_usd: usd(total.earnings()),
        avg_execution_time_ms: ratio(total.duration_us, total.runs() * 1_000, 3),
        p95_execution_time_ms: p95_us.and_then(|us| ratio(us, 1_000, 3)),
        favorites: interest.favorites,
        active_purchases: interest.purchases,
        last_execution_at,
        executions_by_day: by_day(span, days),
    }))
}

fn span(query: &StatisticsQuery, now: Timestamp) -> Result<(&'static str, Span), Problem> {
    let dates = chosen(query.start_date, query.end_date)?;
    match (dates, query.period) {
        (Some(_), Some(_)) => {
            let message = "send either period or start_date and end_date";
            Err(Problem::of(INVALID_PERIOD, message))
        }
        (Some(span), None) => Ok(("custom", span)),
        (None, period) => {
            let period = period.unwrap_or(Recent::Month);
            Ok((period.as_str(), last_days(period.dates(), now)))
        }
    }
}

/// Dates without a run are filled in.
fn by_day(span: Span, days: Vec<(Timestamp, Uses)>) -> Vec<ExecutionDay> {
    let used: HashMap<Timestamp, Uses> = days.into_iter().collect();
    let of = |date: Span| {
        let uses = used.get(&date.from).copied().unwrap_or_default();
        ExecutionDay {
            date: date.from.date(),
            executions: uses.runs(),
            failed_executions: uses.failed,
            unique_buyers: uses.buyers,
            credits: uses.charged_credits,
        }
    };
    dates(span).into_iter().map(of).collect()
}
