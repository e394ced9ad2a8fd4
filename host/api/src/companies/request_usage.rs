use crate::accepted::is_preferred;
use crate::credits::csv::{self, Csv};
use crate::large::of_lines;
use crate::query::{Parameter, choices, parameters};
use crate::refusals::INVALID_PARAMETER;
use crate::{ApiState, Caller, Data, Either, FieldError, Operation, Problem, Query};
use axum::extract::State;
use http::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};
use souk_domain::actors::Actor;
use souk_domain::ids::CompanyId;
use souk_domain::time::{DAY, Timestamp};
use souk_store::usage::{self, ActorDay, ActorRequests, Hour, RouteRequests};
use souk_store::{AnyConnection, StoreError};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Keys and users that JSON names: written in less than a millisecond.
const ACTORS_MAX: i64 = 1_000;
/// Lines of a table: some 5 MB, which a lane writes in less than a tenth of a second.
const LINES_MAX: usize = 50_000;

pub const OPERATION: Operation = Operation::get("request_usage", "/companies/{company_id}/request-usage")
    .about("Companies", "Show a month's requests")
    .notes(
        "Requests of the company's keys, and of its people who are signed in, in a UTC month by day, route, key and user, as JSON, or as CSV \
         (`format=csv` or `Accept: text/csv`) with a line for each day, route and key or user, 50,000 at most. JSON names the 1,000 keys and users that sent most. Requests that were refused with 403 or 429 count as failed. A request is counted a moment after its answer.",
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
    let month = query.month.map_or_else(this_month, Ok)?;
    let is_csv = match query.format {
        Some(format) => format == Format::Csv,
        None => is_preferred(&headers, csv::CONTENT_TYPE),
    };
    if is_csv {
        return file(&api, &caller, month).await.map(Either::That);
    }
    let mut read = api.db().snapshot().await?;
    let sums = Sums::read(&mut read, caller.company(), &month).await?;
    Ok(Either::This(Data(sums.shown(month))))
}

/// The month as a table.
async fn file(api: &ApiState, caller: &Caller, month: Month) -> Result<Csv, Problem> {
    let mut read = api.db().read().await?;
    // One more than there may be.
    let most = i64::try_from(LINES_MAX + 1).unwrap_or(i64::MAX);
    let (company, from, to) = (caller.company(), month.from, month.to);
    let days = usage::company_days(&mut read, company, from, to, most).await?;
    // Whoever waits for a turn to compute holds no reader.
    drop(read);
    let lines = days.len();
    if lines > LINES_MAX {
        let message = format!("the month has more than {LINES_MAX} lines: ask for json");
        let errors = vec![FieldError::new("format", "too_many", message)];
        return Err(Problem::fields(INVALID_PARAMETER, errors));
    }
    of_lines(api, caller, lines, move || table(&month.name, &days)).await
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

/// A month's requests as they are added up by day, by route, and by who asked.
struct Sums {
    hours: Vec<Hour>,
    routes: Vec<RouteRequests>,
    actors: Vec<ActorRequests>,
}

impl Sums {
    /// To be read in one view of the store.
    async fn read(
        db: &mut AnyConnection,
        company: &CompanyId,
        month: &Month,
    ) -> Result<Sums, StoreError> {
        let (from, to) = (month.from, month.to);
        Ok(Sums {
            hours: usage::company_hours(db, company, from, to).await?,
            routes: usage::company_routes(db, company, from, to).await?,
            actors: usage::company_actors(db, company, from, to, ACTORS_MAX).await?,
        })
    }

    fn shown(self, month: Month) -> UsageOut {
        let mut days: BTreeMap<i64, i64> = BTreeMap::new();
        for hour in &self.hours {
            *days.entry(hour.hour.day_start().micros()).or_default() += hour.requests;
        }
        let mut by_day = Vec::new();
        let mut day = month.from;
        while day < month.to {
            by_day.push(DayOut {
                date: day.date(),
                requests: days.get(&day.micros()).copied().unwrap_or(0),
            });
            day = day.after(DAY);
        }
        let (mut by_key, mut by_user) = (Vec::new(), Vec::new());
        for of in self.actors {
            let (id, name, requests) = (of.actor.to_string(), of.name, of.requests);
            match of.actor {
                Actor::User(_) => by_user.push(RequesterOut {
                    user_id: id,
                    name,
                    requests,
                }),
                _ => by_key.push(KeyOut {
                    api_key_id: id,
                    name,
                    requests,
                }),
            }
        }
        UsageOut {
            month: month.name,
            total_requests: self.hours.iter().map(|hour| hour.requests).sum(),
            failed_requests: self.hours.iter().map(|hour| hour.failed).sum(),
            by_day,
            by_route: self
                .routes
                .into_iter()
                .map(|of| RouteOut {
                    route: of.route,
                    requests: of.requests,
                })
                .collect(),
            by_key,
            by_user,
        }
    }
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
