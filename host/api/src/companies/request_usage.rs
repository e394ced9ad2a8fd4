use crate::accepted::is_preferred;
use crate::credits::csv::{self, Csv};
use crate::large::of_lines;
use crate::query::{Parameter, choices, parameters};
use crate::{ApiState, Caller, Data, Either, Operation, Problem, Query};
use axum::extract::State;
use http::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};
use souk_domain::actors::Actor;
use souk_domain::time::{DAY, Timestamp};
use souk_store::usage::{self, ActorDay};
use std::collections::BTreeMap;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("request_usage", "/companies/{company_id}/request-usage")
    .about("Companies", "Show a month's requests")
    .notes(
        "Requests of the company's keys, and of its people who are signed in, in a UTC month by day, route, key and user, as JSON, or as CSV \
         (`format=csv` or `Accept: text/csv`) with a line for each day, route and key or user. Requests that were refused with 403 or 429 count as failed. A request is counted a moment after its answer.",
    );

choices! {
    pub enum Format {
        Json = "json",
        Csv = "csv",
    }
}

parameters! {
    pub struct UsageQuery {
        /// `YYYY-MM`. Default: this month.
        month: Option<Month>,
        /// Default json, or what `Accept` prefers.
        format: Option<Format>,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = RequestUsage)]
pub struct UsageOut {
    /// `YYYY-MM`
    month: String,
    #[schema(minimum = 0)]
    total_requests: i64,
    #[schema(minimum = 0)]
    failed_requests: i64,
    /// Ascending, without gaps, up to the end of the month.
    by_day: Vec<DayOut>,
    /// By route prefix, such as `/assets`, the most used first.
    by_route: Vec<RouteOut>,
    /// The most used first.
    by_key: Vec<KeyOut>,
    /// Of people who were signed in, the most used first.
    by_user: Vec<RequesterOut>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RequestDay)]
pub struct DayOut {
    /// `YYYY-MM-DD`
    date: String,
    #[schema(minimum = 0)]
    requests: i64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RequestRoute)]
pub struct RouteOut {
    route: String,
    #[schema(minimum = 0)]
    requests: i64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RequestKey)]
pub struct KeyOut {
    api_key_id: String,
    name: String,
    #[schema(minimum = 0)]
    requests: i64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RequestUser)]
pub struct RequesterOut {
    user_id: String,
    name: String,
    #[schema(minimum = 0)]
    requests: i64,
}

/// Shows a month's requests.
pub async fn request_usage(
    State(api): State<ApiState>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<UsageQuery>,
) -> Result<Either<Data<UsageOut>, Csv>, Problem> {
    let today = caller.now().date();
    let this_month = || Month::read(&today[.."2026-01".len()]).map_err(Problem::internal);
    let Month { name, from, to } = query.month.map_or_else(this_month, Ok)?;
    let mut read = api.db().read().await?;
    let days = usage::company_days(&mut read, caller.company(), from, to).await?;
    // Whoever waits for a turn to compute holds no reader.
    drop(read);
    let is_csv = match query.format {
        Some(format) => format == Format::Csv,
        None => is_preferred(&headers, csv::CONTENT_TYPE),
    };
    let lines = days.len();
    let show = move || match is_csv {
        true => table(&name, &days).map(Either::That),
        false => Ok(Either::This(Data(sums(&name, from, to, &days)))),
    };
    of_lines(&api, &caller, lines, show).await
}

/// A UTC month: its first midnight, and that of the next.
#[derive(Clone)]
pub struct Month {
    name: String,
    from: Timestamp,
    to: Timestamp,
}

impl Parameter for Month {
    fn schema() -> Value {
        let pattern = "^(19[7-9][0-9]|[2-9][0-9]{3})-(0[1-9]|1[0-2])$";
        json!({"type": "string", "pattern": pattern, "examples": ["2026-01"]})
    }

    fn read(text: &str) -> Result<Self, String> {
        let from = Timestamp::parse(&format!("{text}-01T00:00:00Z")).ok();
        let is_month = text.len() == "2026-01".len() && text.is_ascii();
        match from.filter(|from| is_month && from.micros() >= 0) {
            Some(from) => {
                let (from, to) = from.month();
                let name = text.to_owned();
                Ok(Month { name, from, to })
            }
            None => Err("must be a month such as 2026-01, not before 1970".to_owned()),
        }
    }
}

fn sums(month: &str, from: Timestamp, to: Timestamp, rows: &[ActorDay]) -> UsageOut {
    let mut days: BTreeMap<i64, i64> = BTreeMap::new();
    let mut routes: BTreeMap<&str, i64> = BTreeMap::new();
    let mut keys: BTreeMap<&str, (&str, i64)> = BTreeMap::new();
    let mut users = keys.clone();
    let (mut total, mut failed) = (0, 0);
    for row in rows {
        total += row.requests;
        failed += row.failed;
        *days.entry(row.day.micros()).or_default() += row.requests;
        *routes.entry(&row.route).or_default() += row.requests;
        let actors = match row.actor {
            Actor::User(_) => &mut users,
            _ => &mut keys,
        };
        let actor = actors.entry(row.actor.as_str());
        actor.or_insert((&row.name, 0)).1 += row.requests;
    }
    let mut by_day = Vec::new();
    let mut day = from;
    while day < to {
        by_day.push(DayOut {
            date: day.date(),
            requests: days.get(&day.micros()).copied().unwrap_or(0),
        });
        day = day.after(DAY);
    }
    let mut by_route: Vec<_> = routes.into_iter().collect();
    by_route.sort_by_key(|(_, requests)| -requests);
    UsageOut {
        month: month.to_owned(),
        total_requests: total,
        failed_requests: failed,
        by_day,
        by_route: by_route
            .into_iter()
            .map(|(route, requests)| RouteOut {
                route: route.to_owned(),
                requests,
            })
            .collect(),
        by_key: most_used(keys)
            .map(|(id, name, requests)| KeyOut {
                api_key_id: id,
                name,
                requests,
            })
            .collect(),
        by_user: most_used(users)
            .map(|(id, name, requests)| RequesterOut {
                user_id: id,
                name,
                requests,
            })
            .collect(),
    }
}

/// Ids, names and requests.
fn most_used(actors: BTreeMap<&str, (&str, i64)>) -> impl Iterator<Item = (String, String, i64)> {
    let mut actors: Vec<_> = actors.into_iter().collect();
    actors.sort_by_key(|(_, (_, requests))| -requests);
    actors
        .into_iter()
        .map(|(id, (name, requests))| (id.to_owned(), name.to_owned(), requests))
}

#[derive(Serialize)]
struct Line<'a> {
    date: String,
    route: &'a str,
    api_key_id: &'a str,
    name: String,
    requests: i64,
    failed_requests: i64,
    user_id: &'a str,
}

/// Each row is a line.
fn table(month: &str, rows: &[ActorDay]) -> Result<Csv, Problem> {
    let columns = [
        "date",
        "route",
        "api_key_id",
        "name",
        "requests",
        "failed_requests",
        "user_id",
    ];
    let lines = rows.iter().map(|row| {
        let id = row.actor.as_str();
        let is_user = matches!(row.actor, Actor::User(_));
        Line {
            date: row.day.date(),
            route: &row.route,
            api_key_id: if is_user { "" } else { id },
            name: csv::disarmed(&row.name),
            requests: row.requests,
            failed_requests: row.failed,
            user_id: if is_user { id } else { "" },
        }
    });
    Csv::table(&format!("request-usage-{month}.csv"), &columns, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A month is whole, whatever its length, and nothing else is one.
    #[test]
    fn months_are_whole() {
        let dates = |text| {
            let month = Month::read(text).ok()?;
            Some((month.from.date(), month.to.date()))
        };
        let whole = |from: &str, to: &str| Some((from.to_owned(), to.to_owned()));
        assert_eq!(dates("2026-02"), whole("2026-02-01", "2026-03-01"));
        assert_eq!(dates("2024-12"), whole("2024-12-01", "2025-01-01"));
        assert_eq!(dates("2026-01"), whole("2026-01-01", "2026-02-01"));
        for wrong in [
            "2026-13",
            "2026-1",
            "2026",
            "2026-01-01",
            "1969-12",
            "",
            "äää-01",
        ] {
            assert_eq!(dates(wrong), None, "{wrong}");
        }
    }
}
