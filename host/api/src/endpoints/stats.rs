use crate::period::{dates, last_days, ratio};
use crate::products::find;
use crate::query::parameters;
use crate::{ApiState, Caller, Data, Integer, Operation, Path, Problem, Query};
use axum::extract::State;
use serde::Serialize;
use serde_json::Number;
use souk_domain::ids::{CompanyId, EndpointId};
use souk_domain::time::Timestamp;
use souk_store::{times, uses};
use std::collections::HashMap;
use utoipa::ToSchema;

const DAYS_DEFAULT: i64 = 30;

pub const OPERATION: Operation = Operation::get("endpoint_stats", "/companies/{company_id}/endpoints/{endpoint_id}/stats")
    .about("Endpoints", "Show how an own endpoint is used")
    .notes(
        "So many UTC dates, the last of them today. Requests of your own keys are counted as requests; they are neither buyers nor income. What \
         the gate refuses (keys, limits) never became a request of the endpoint; a request that failed later is in `failed_requests`.",
    );

parameters! {
    pub struct StatsQuery {
        /// Dates, at most 365.
        days: Integer<1, 365> = Integer::of(DAYS_DEFAULT),
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = EndpointStats)]
pub struct StatsOut {
    #[schema(value_type = String)]
    endpoint_id: EndpointId,
    #[schema(minimum = 0)]
    days: i64,
    #[schema(minimum = 0)]
    total_requests: i64,
    #[schema(minimum = 0)]
    successful_requests: i64,
    #[schema(minimum = 0)]
    failed_requests: i64,
    /// Of `total_requests`, those by your own keys.
    #[schema(minimum = 0)]
    own_requests: i64,
    #[schema(minimum = 0)]
    rows_served: i64,
    /// What was charged less what was refunded in the period, in buyers' credits.
    credits_earned: i64,
    /// Other companies for which a request succeeded.
    #[schema(minimum = 0)]
    unique_buyers: i64,
    /// Of all requests; three decimals; `null` without one.
    #[schema(value_type = Option<f64>, minimum = 0)]
    avg_latency_ms: Option<Number>,
    /// 95 of 100 requests took at most this, told to within 3 %: the nearest rank of all in the period, a second after they ended.
    #[schema(value_type = Option<f64>, minimum = 0)]
    p95_latency_ms: Option<Number>,
    /// Ascending, without gaps.
    requests_by_day: Vec<RequestDay>,
    /// The newest request whenever it was; known a second after its end.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_request_at: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = EndpointRequestDay)]
pub struct RequestDay {
    /// `YYYY-MM-DD`
    date: String,
    #[schema(minimum = 0)]
    requests: i64,
}

/// Shows how an own endpoint is used.
pub async fn endpoint_stats(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, EndpointId)>,
    Query(query): Query<StatsQuery>,
) -> Result<Data<StatsOut>, Problem> {
    let days = query.days.get();
    let span = last_days(days as u32, caller.now());
    let (seller, product) = (caller.company(), id.as_str());
    let mut read = api.db().snapshot().await?;
    find(&mut read, seller, &id).await?;
    let total = uses::over(&mut read, seller, product, span).await?;
    let by_day = uses::by_day(&mut read, product, span).await?;
    let by_day: HashMap<Timestamp, i64> = by_day
        .into_iter()
        .map(|(day, uses)| (day, uses.runs()))
        .collect();
    let p95_us = times::p95_us(&mut read, product, span).await?;
    let last_request_at = times::last_at(&mut read, product).await?;
    let day = |date: souk_store::sales::Span| RequestDay {
        date: date.from.date(),
        requests: by_day.get(&date.from).copied().unwrap_or(0),
    };
    Ok(Data(StatsOut {
        endpoint_id: id,
        days,
        total_requests: total.runs(),
        successful_requests: total.succeeded,
        failed_requests: total.failed,
        own_requests: total.own_runs(),
        rows_served: total.rows,
        credits_earned: total.earned_credits(),
        unique_buyers: total.buyers,
        avg_latency_ms: ratio(total.duration_us, total.runs() * 1_000, 3),
        p95_latency_ms: p95_us.and_then(|us| ratio(us, 1_000, 3)),
        requests_by_day: dates(span).into_iter().map(day).collect(),
        last_request_at,
    }))
}
