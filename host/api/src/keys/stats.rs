use super::find;
use crate::period::{DAYS_MAX, Recent, dates, last_days};
use crate::query::parameters;
use crate::refusals::INVALID_PERIOD;
use crate::words;
use crate::{ApiState, Caller, Data, Operation, Path, Problem, Query, Text};
use axum::extract::State;
use serde::Serialize;
use souk_domain::ids::{CompanyId, KeyId};
use souk_domain::time::{DAY, HOUR, Timestamp};
use souk_store::sales::Span;
use souk_store::usage;
use std::collections::BTreeMap;
use utoipa::ToSchema;

parameters! {
    pub struct Wanted {
        /// Up to now. Default 30d. Not together with dates.
        period: Option<Recent>,
        /// Begin of a custom period: a date or an instant, UTC.
        start_date: Option<Text<0, 40>>,
        /// End of a custom period: an instant, or a date that is included.
        end_date: Option<Text<0, 40>>,
    }
}

pub const OPERATION: Operation = Operation::get("key_stats", "/companies/{company_id}/api-keys/{api_key_id}/stats")
    .alias("/companies/{company_id}/api_keys/{api_key_id}/stats", "api_key_stats")
    .about("API keys", "Usage of a key")
    .notes(
        "Days are UTC, ascending and without gaps. Counts are kept per hour of today and yesterday, and per day before: a custom period begins and \
         ends at full hours, and of earlier days at midnight. Requests that were refused with 403 or 429 count as failed.",
    )
    .hourly(100)
    .refuses(&[INVALID_PERIOD]);

#[derive(Serialize, ToSchema)]
pub struct KeyStats {
    #[schema(value_type = String)]
    api_key_id: KeyId,
    #[schema(value_type = words::StatisticsPeriod)]
    period: String,
    #[schema(minimum = 0)]
    total_requests: i64,
    #[schema(minimum = 0)]
    successful_requests: i64,
    #[schema(minimum = 0)]
    failed_requests: i64,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_used: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    first_used: Option<Timestamp>,
    /// Requests by route prefix, such as `/assets`.
    usage_by_endpoint: BTreeMap<String, i64>,
    usage_by_day: Vec<Day>,
}

#[derive(Serialize, ToSchema)]
pub struct Day {
    /// `YYYY-MM-DD`
    date: String,
    #[schema(minimum = 0)]
    requests: i64,
}

/// Usage of a key over a period.
pub async fn key_stats(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, KeyId)>,
    Query(query): Query<Wanted>,
) -> Result<Data<KeyStats>, Problem> {
    let (period, from, to) = period(&query, caller.now())?;
    let mut read = api.db().read().await?;
    let key = find(&mut read, &caller, &id).await?;
    let (begin, end) = kept(from, to, caller.now());
    let hours = usage::key_hours(&mut read, &id, begin, end).await?;
    let routes = usage::key_routes(&mut read, &id, begin, end).await?;
    let (total, failed) = hours.iter().fold((0, 0), |(total, failed), hour| {
        (total + hour.requests, failed + hour.failed)
    });
    let mut days = zero_filled(from, to);
    for hour in hours {
        *days.entry(hour.hour.date()).or_insert(0) += hour.requests;
    }
    Ok(Data(KeyStats {
        api_key_id: id,
        period,
        total_requests: total,
        successful_requests: total - failed,
        failed_requests: failed,
        last_used: key.last_used_at,
        first_used: key.first_used_at,
        usage_by_endpoint: routes
            .into_iter()
            .map(|of| (of.route, of.requests))
            .collect(),
        usage_by_day: days
            .into_iter()
            .map(|(date, requests)| Day { date, requests })
            .collect(),
    }))
}

/// Name, begin and end of the period: 7d, 30d and 90d are that many dates ending today, 24h the last day to the hour.
fn period(query: &Wanted, now: Timestamp) -> Result<(String, Timestamp, Timestamp), Problem> {
    let (start, end) = (query.start_date.as_deref(), query.end_date.as_deref());
    if start.is_none() && end.is_none() {
        let name = query.period.unwrap_or(Recent::Month);
        let from = match name {
            Recent::Day => now.before(DAY),
            name => last_days(name.dates(), now).from,
        };
        return Ok((name.as_str().to_owned(), from, now));
    }
    let invalid = |message: &'static str| {
        Problem::of(INVALID_PERIOD, message).detail("errors", serde_json::json!([]))
    };
    if query.period.is_some() {
        return Err(invalid("send either period or start_date and end_date"));
    }
    let (Some(start), Some(end)) = (start, end) else {
        return Err(invalid("send both start_date and end_date"));
    };
    let from = instant(start)
        .ok_or_else(|| invalid("start_date must be a date or an ISO 8601 instant"))?;
    let to = match instant(end)
        .ok_or_else(|| invalid("end_date must be a date or an ISO 8601 instant"))?
    {
        midnight if is_date(end) => midnight.after(DAY),
        instant => instant,
    };
    if to <= from {
        return Err(invalid("end_date must be after start_date"));
    }
    if to.since(from) > DAY * DAYS_MAX {
        return Err(invalid("a custom period has at most 366 days"));
    }
    Ok(("custom".to_owned(), from, to))
}

/// The same period in full hours, and of days whose hours are not kept in whole days.
fn kept(from: Timestamp, to: Timestamp, now: Timestamp) -> (Timestamp, Timestamp) {
    let hours_since = usage::hours_since(now);
    let begin = match from < hours_since {
        true => from.day_start(),
        false => hour_start(from),
    };
    let midnight = to.day_start();
    let end = match to < hours_since && midnight < to {
        true => midnight.after(DAY),
        false => to,
    };
    (begin, end)
}

fn hour_start(instant: Timestamp) -> Timestamp {
    let hour = HOUR.as_micros() as i64;
    Timestamp::from_micros(instant.micros().div_euclid(hour) * hour)
}

fn is_date(text: &str) -> bool {
    text.len() == "2026-01-31".len()
}

fn instant(text: &str) -> Option<Timestamp> {
    if is_date(text) {
        Timestamp::parse(&format!("{text}T00:00:00Z")).ok()
    } else {
        Timestamp::parse(text).ok()
    }
}

fn zero_filled(from: Timestamp, to: Timestamp) -> BTreeMap<String, i64> {
    let span = Span {
        from: from.day_start(),
        to,
    };
    let dates = dates(span).into_iter();
    dates.map(|date| (date.from.date(), 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Reader;

    fn dates(query: &str) -> Result<usize, String> {
        let now = Timestamp::parse("2026-03-10T12:30:00Z").unwrap();
        let request = axum::extract::Request::builder().uri(format!("/?{query}"));
        let mut request = request.body(axum::body::Body::empty()).unwrap();
        let read = Reader::of::<Wanted>().read(&mut request);
        read.map_err(|problem| problem.code().to_owned())?;
        let Query(query) = request.extensions_mut().remove().unwrap_or_default();
        period(&query, now)
            .map(|(_, from, to)| zero_filled(from, to).len())
            .map_err(|problem| problem.code().to_owned())
    }

    /// 7d, 30d and 90d have exactly that many dates; 24h those it touches; a date-only end is inclusive.
    #[test]
    fn periods_have_their_dates() {
        assert_eq!(
            (
                dates("period=7d"),
                dates("period=30d"),
                dates("period=90d"),
                dates("")
            ),
            (Ok(7), Ok(30), Ok(90), Ok(30))
        );
        assert_eq!(dates("period=24h"), Ok(2));
        assert_eq!(dates("start_date=2026-01-01&end_date=2026-01-03"), Ok(3));
        assert_eq!(
            dates("start_date=2026-01-01T00:00:00Z&end_date=2026-01-03T00:00:00Z"),
            Ok(2)
        );
    }

    /// Of days whose hours are not kept all that the period touches is counted, of others its hours.
    #[test]
    fn periods_are_what_is_kept_of_them() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let now = at("2026-03-10T12:30:00Z");
        for (from, to, begin, end) in [
            ("05T10:30", "07T15:00", "05T00:00", "08T00:00"),
            ("05T00:00", "07T00:00", "05T00:00", "07T00:00"),
            ("05T10:30", "09T15:20", "05T00:00", "09T15:20"),
            ("09T12:30", "10T12:30", "09T12:00", "10T12:30"),
        ] {
            let [from, to, begin, end] =
                [from, to, begin, end].map(|time| at(&format!("2026-03-{time}:00Z")));
            assert_eq!(kept(from, to, now), (begin, end), "{from}");
        }
    }

    /// Half, contradictory, reversed and endless periods are refused.
    #[test]
    fn what_is_no_period_is_refused() {
        for query in [
            "start_date=2026-01-01",
            "period=7d&start_date=2026-01-01&end_date=2026-01-02",
            "start_date=2026-01-02&end_date=2026-01-01",
            "start_date=2020-01-01&end_date=2026-01-01",
            "start_date=x&end_date=2026-01-01",
        ] {
            assert_eq!(dates(query), Err("INVALID_PERIOD".to_owned()), "{query}");
        }
    }
}
