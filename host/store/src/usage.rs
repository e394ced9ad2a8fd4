//! Requests of keys and of people who are signed in, per hour and route prefix; each key's totals; and each company's months.
//!
//! Who sent them stands in `key_usage.key_id`: a key, or a user, whose ids begin otherwise. Hours are kept of today and yesterday; all of a day
//! before that are in the row of its first hour ([`sweep`]). What a plan is held against is kept by itself, and never forgotten.

use crate::bulk::Bulk;
use crate::db::{Db, Write};
use crate::error::StoreError;
use crate::fields::Fields;
use crate::lists::read_all;
use hashbrown::HashMap;
use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, KeyId};
use souk_domain::time::{DAY, Timestamp};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::BTreeMap;

/// Of one company: a thousand keys on five routes for two months, or 160 of them for a year. A month of so many is added up in some tenths of a
/// second.
pub const ROWS_KEPT: i64 = 300_000;
/// A commit of so many holds nobody up.
const SWEPT_AT_ONCE: i64 = 256;

/// From when on hours are kept: a period of 24 hours begins yesterday.
pub fn hours_since(now: Timestamp) -> Timestamp {
    now.day_start().before(DAY)
}

/// Requests in one hour, or on one day of those whose hours are not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hour {
    /// Its beginning.
    pub hour: Timestamp,
    pub requests: i64,
    pub failed: i64,
}

/// Requests on one route prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteRequests {
    /// Such as `/assets`.
    pub route: String,
    pub requests: i64,
}

/// Requests by the hour.
macro_rules! hours {
    () => {
        "hour, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(failed) AS BIGINT) AS failed FROM key_usage"
    };
}

macro_rules! routes {
    () => {
        "route, CAST(SUM(requests) AS BIGINT) AS requests FROM key_usage"
    };
}

/// Of whom, and from when until when.
macro_rules! of_whom {
    () => {
        " = $1 AND hour >= $2 AND hour < $3 GROUP BY "
    };
}

/// What a key was used for, hour by hour, from `from` up to, not including, `to`.
pub async fn key_hours(
    db: &mut AnyConnection,
    key: &KeyId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Hour>, StoreError> {
    let sql = concat!(
        "SELECT ",
        hours!(),
        " WHERE key_id",
        of_whom!(),
        "hour ORDER BY hour"
    );
    sums(db, sql, (key.as_str(), from, to), hour).await
}

/// What a key was used for, by route.
pub async fn key_routes(
    db: &mut AnyConnection,
    key: &KeyId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<RouteRequests>, StoreError> {
    let sql = concat!(
        "SELECT ",
        routes!(),
        " WHERE key_id",
        of_whom!(),
        "route ORDER BY route"
    );
    sums(db, sql, (key.as_str(), from, to), route).await
}

/// Requests of a company's keys and users, hour by hour, from `from` up to, not including, `to`, both midnights.
pub async fn company_hours(
    db: &mut AnyConnection,
    company: &CompanyId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Hour>, StoreError> {
    let sql = concat!(
        "SELECT ",
        hours!(),
        " WHERE company_id",
        of_whom!(),
        "hour ORDER BY hour"
    );
    sums(db, sql, (company.as_str(), from, to), hour).await
}

/// The same by route, the most used first.
pub async fn company_routes(
    db: &mut AnyConnection,
    company: &CompanyId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<RouteRequests>, StoreError> {
    let sql = concat!(
        "SELECT ",
        routes!(),
        " WHERE company_id",
        of_whom!(),
        "route ORDER BY 2 DESC, 1"
    );
    sums(db, sql, (company.as_str(), from, to), route).await
}

async fn sums<T>(
    db: &mut AnyConnection,
    sql: &'static str,
    (id, from, to): (&str, Timestamp, Timestamp),
    read: fn(&AnyRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let rows = sqlx::query(sql)
        .bind(id)
        .bind(from.micros())
        .bind(to.micros())
        .fetch_all(db)
        .await?;
    rows.iter().map(read).collect()
}

/// Requests of one key or user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorRequests {
    pub actor: Actor,
    /// The key's or the user's.
    pub name: String,
    pub requests: i64,
}

/// The same by who asked, the most used first, `most` of them.
pub async fn company_actors(
    db: &mut AnyConnection,
    company: &CompanyId,
    from: Timestamp,
    to: Timestamp,
    most: i64,
) -> Result<Vec<ActorRequests>, StoreError> {
    let rows = sqlx::query(
        "SELECT u.key_id AS id, COALESCE(k.name, p.name, '') AS name, u.requests
         FROM (SELECT key_id, CAST(SUM(requests) AS BIGINT) AS requests
               FROM key_usage
               WHERE company_id = $1 AND hour >= $2 AND hour < $3
               GROUP BY key_id
               ORDER BY 2 DESC, 1
               LIMIT $4) u
         LEFT JOIN api_keys k ON k.id = u.key_id
         LEFT JOIN users p ON p.id = u.key_id
         ORDER BY 3 DESC, 1",
    )
    .bind(company.as_str())
    .bind(from.micros())
    .bind(to.micros())
    .bind(most)
    .fetch(db);
    read_all(rows, |row: &AnyRow| {
        Ok(ActorRequests {
            actor: row.id("id")?,
            name: row.text("name")?,
            requests: row.number("requests")?,
        })
    })
    .await
}

/// Requests of one key or user on one date on one route prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorDay {
    /// Midnight UTC.
    pub day: Timestamp,
    /// Such as `/assets`.
    pub route: String,
    pub actor: Actor,
    /// The key's or the user's.
    pub name: String,
    pub requests: i64,
    pub failed: i64,
}

/// What a company's keys and users asked for from `from` up to, not including, `to`, both midnights; by day, route and who asked, `most` of them.
pub async fn company_days(
    db: &mut AnyConnection,
    company: &CompanyId,
    from: Timestamp,
    to: Timestamp,
    most: i64,
) -> Result<Vec<ActorDay>, StoreError> {
    // Times are microseconds: 86,400,000,000 to a day.
    let rows = sqlx::query(
        "SELECT u.day, u.route, u.key_id AS id, COALESCE(k.name, p.name, '') AS name, u.requests, u.failed
         FROM (SELECT hour - hour % 86400000000 AS day, route, key_id, CAST(SUM(requests) AS BIGINT) AS requests,
                      CAST(SUM(failed) AS BIGINT) AS failed
               FROM key_usage
               WHERE company_id = $1 AND hour >= $2 AND hour < $3
               GROUP BY hour - hour % 86400000000, route, key_id
               ORDER BY 1, 2, 3
               LIMIT $4) u
         LEFT JOIN api_keys k ON k.id = u.key_id
         LEFT JOIN users p ON p.id = u.key_id
         ORDER BY 1, 2, 3",
    )
    .bind(company.as_str())
    .bind(from.micros())
    .bind(to.micros())
    .bind(most)
    .fetch(db);
    // Every key on every route on every day.
    read_all(rows, |row: &AnyRow| {
        Ok(ActorDay {
            day: row.time("day")?,
            route: row.text("route")?,
            actor: row.id("id")?,
            name: row.text("name")?,
            requests: row.number("requests")?,
            failed: row.number("failed")?,
        })
    })
    .await
}

fn hour(row: &AnyRow) -> Result<Hour, StoreError> {
    Ok(Hour {
        hour: row.time("hour")?,
        requests: row.number("requests")?,
        failed: row.number("failed")?,
    })
}

fn route(row: &AnyRow) -> Result<RouteRequests, StoreError> {
    Ok(RouteRequests {
        route: row.text("route")?,
        requests: row.number("requests")?,
    })
}

/// How many requests a company's keys and users have sent in the UTC month that begins at `month`; refused ones included. One row is read for it.
pub async fn company_requests(
    db: &mut AnyConnection,
    company: &CompanyId,
    month: Timestamp,
) -> Result<i64, StoreError> {
    let row =
        sqlx::query("SELECT requests FROM company_months WHERE company_id = $1 AND month = $2")
            .bind(company.as_str())
            .bind(month.micros())
            .fetch_optional(db)
            .await?;
    row.map_or(Ok(0), |row| row.number("requests"))
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct HourKey {
    pub actor: Actor,
    /// Whose key or user it is.
    pub company: CompanyId,
    /// The beginning of the hour.
    pub hour: i64,
    pub route: &'static str,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HourCounts {
    pub requests: i64,
    pub failed: i64,
    /// Of the requests: those that count against the company's plan.
    pub admitted: i64,
    pub first_at: i64,
    pub last_at: i64,
}

impl HourCounts {
    pub(crate) fn add(&mut self, other: &HourCounts) {
        self.first_at = if self.requests == 0 {
            other.first_at
        } else {
            self.first_at.min(other.first_at)
        };
        self.last_at = self.last_at.max(other.last_at);
        self.requests += other.requests;
        self.failed += other.failed;
        self.admitted += other.admitted;
    }
}

static ADD_ROWS: Bulk = Bulk::new(
    "INSERT INTO key_usage (company_id, hour, key_id, route, requests, failed)
     SELECT column1, column2, column3, column4, column5, column6",
    6,
    "WHERE column1 IS NOT NULL
     ON CONFLICT (company_id, hour, key_id, route) DO UPDATE
     SET requests = key_usage.requests + excluded.requests,
         failed = key_usage.failed + excluded.failed",
);

/// What is added to one row.
struct Added<'a> {
    company: &'a str,
    hour: i64,
    actor: &'a str,
    route: &'a str,
    requests: i64,
    failed: i64,
}

/// `rows` has nothing twice.
async fn add_rows(db: &mut AnyConnection, rows: &[Added<'_>]) -> Result<(), StoreError> {
    ADD_ROWS
        .run(db, rows, |values, row| {
            values
                .text(row.map(|row| row.company))
                .number(row.map(|row| row.hour))
                .text(row.map(|row| row.actor))
                .text(row.map(|row| row.route))
                .number(row.map(|row| row.requests))
                .number(row.map(|row| row.failed));
        })
        .await?;
    Ok(())
}

static ADD_TO_MONTHS: Bulk = Bulk::new(
    "INSERT INTO company_months (company_id, month, requests)
     SELECT column1, column2, column3",
    3,
    "WHERE column1 IS NOT NULL
     ON CONFLICT (company_id, month) DO UPDATE
     SET requests = company_months.requests + excluded.requests",
);

/// Adds counts, to the hours and to the months of their companies. `hours` has nothing twice and is sorted.
pub(crate) async fn add_hours(
    db: &mut AnyConnection,
    hours: &[(HourKey, HourCounts)],
) -> Result<(), StoreError> {
    let rows = hours.iter().map(|(key, counts)| Added {
        company: key.company.as_str(),
        hour: key.hour,
        actor: key.actor.as_str(),
        route: key.route,
        requests: counts.requests,
        failed: counts.failed,
    });
    add_rows(db, &rows.collect::<Vec<_>>()).await?;
    let months: Vec<_> = months(hours).into_iter().collect();
    ADD_TO_MONTHS
        .run(db, &months, |values, row| {
            values
                .text(row.map(|((company, _), _)| company.as_str()))
                .number(row.map(|((_, month), _)| *month))
                .number(row.map(|(_, requests)| *requests));
        })
        .await?;
    Ok(())
}

/// Requests by company and month that count against a plan.
fn months(hours: &[(HourKey, HourCounts)]) -> BTreeMap<(&CompanyId, i64), i64> {
    // There are a few hours, whose months are found by their dates.
    let mut known: HashMap<i64, i64> = HashMap::new();
    let mut months = BTreeMap::new();
    for (key, counts) in hours {
        let month = known
            .entry(key.hour)
            .or_insert_with(|| Timestamp::from_micros(key.hour).month().0.micros());
        *months.entry((&key.company, *month)).or_default() += counts.admitted;
    }
    months
}

/// Turns some of the hours that are not kept any more into days. `false`: there is nothing left of them.
pub async fn sweep(write: &mut Write, now: Timestamp) -> Result<bool, StoreError> {
    let hours = sqlx::query(
        "DELETE FROM key_usage
         WHERE (company_id, hour, key_id, route) IN (SELECT company_id, hour, key_id, route
                                                     FROM key_usage
                                                     WHERE hour % 86400000000 <> 0 AND hour < $1
                                                     ORDER BY hour
                                                     LIMIT $2)
         RETURNING company_id, hour, key_id, route, requests, failed",
    )
    .bind(hours_since(now).micros())
    .bind(SWEPT_AT_ONCE)
    .fetch_all(&mut **write)
    .await?;
    let mut days: BTreeMap<(String, i64, String, String), (i64, i64)> = BTreeMap::new();
    for row in &hours {
        let day = row.time("hour")?.day_start().micros();
        let (company, actor, route) = (
            row.text("company_id")?,
            row.text("key_id")?,
            row.text("route")?,
        );
        let (requests, failed) = days.entry((company, day, actor, route)).or_default();
        *requests += row.number("requests")?;
        *failed += row.number("failed")?;
    }
    let rows = days
        .iter()
        .map(|((company, day, actor, route), (requests, failed))| Added {
            company,
            hour: *day,
            actor,
            route,
            requests: *requests,
            failed: *failed,
        });
    add_rows(write, &rows.collect::<Vec<_>>()).await?;
    Ok(!hours.is_empty())
}

/// Companies that have sent anything this month.
pub(crate) async fn active(db: &Db, now: Timestamp) -> Result<Vec<CompanyId>, StoreError> {
    let rows = sqlx::query("SELECT company_id FROM company_months WHERE month = $1")
        .bind(now.month().0.micros())
        .fetch_all(&mut *db.read().await?)
        .await?;
    rows.iter().map(|row| row.id("company_id")).collect()
}

/// Forgets the oldest counts of companies that have sent anything this month and have more than so many rows, those of an hour or a day together.
pub async fn keep_newest(db: &Db, rows_max: i64, now: Timestamp) -> Result<(), StoreError> {
    for company in active(db, now).await? {
        let Some(oldest) = oldest_kept(db, &company, rows_max).await? else {
            continue;
        };
        while db
            .write(async |write| forget_before(write, &company, oldest).await)
            .await?
        {}
    }
    Ok(())
}

/// The hour of the oldest row of a company's newest, if it has more.
async fn oldest_kept(
    db: &Db,
    company: &CompanyId,
    rows_max: i64,
) -> Result<Option<Timestamp>, StoreError> {
    let row = sqlx::query(
        "SELECT hour FROM key_usage WHERE company_id = $1 ORDER BY hour DESC LIMIT 1 OFFSET $2",
    )
    .bind(company.as_str())
    .bind(rows_max - 1)
    .fetch_optional(&mut *db.read().await?)
    .await?;
    row.map(|row| row.time("hour")).transpose()
}

/// Forgets some of a company's counts of before. `false`: there is nothing left of them.
async fn forget_before(
    write: &mut Write,
    company: &CompanyId,
    oldest: Timestamp,
) -> Result<bool, StoreError> {
    let forgotten = sqlx::query(
        "DELETE FROM key_usage
         WHERE (company_id, hour, key_id, route) IN (SELECT company_id, hour, key_id, route
                                                     FROM key_usage
                                                     WHERE company_id = $1 AND hour < $2
                                                     ORDER BY hour
                                                     LIMIT $3)",
    )
    .bind(company.as_str())
    .bind(oldest.micros())
    .bind(SWEPT_AT_ONCE)
    .execute(&mut **write)
    .await?;
    Ok(forgotten.rows_affected() > 0)
}

static ADD_TO_KEYS: Bulk = Bulk::new(
    "UPDATE api_keys
     SET usage_count = usage_count + v.column2,
         failed_count = failed_count + v.column3,
         first_used_at = COALESCE(first_used_at, v.column4),
         last_used_at = CASE WHEN last_used_at > v.column5 THEN last_used_at ELSE v.column5 END",
    5,
    "WHERE api_keys.id = v.column1",
);

/// Adds to the totals of each key, which appears once.
pub(crate) async fn add_to_keys(
    db: &mut AnyConnection,
    keys: &[(KeyId, HourCounts)],
) -> Result<(), StoreError> {
    ADD_TO_KEYS
        .run(db, keys, |values, row| {
            values
                .text(row.map(|(key, _)| key.as_str()))
                .number(row.map(|(_, counts)| counts.requests))
                .number(row.map(|(_, counts)| counts.failed))
                .number(row.map(|(_, counts)| counts.first_at))
                .number(row.map(|(_, counts)| counts.last_at));
        })
        .await?;
    Ok(())
}

static LOCK_KEYS: Bulk = Bulk::new(
    "SELECT id FROM api_keys WHERE id IN (SELECT column1",
    1,
    ") ORDER BY id FOR UPDATE",
);

/// Locks the keys in the order of their ids, so that hosts which share a store never wait for each other in a circle.
pub(crate) async fn lock_keys(
    db: &mut AnyConnection,
    keys: &[(KeyId, HourCounts)],
) -> Result<(), StoreError> {
    LOCK_KEYS
        .fetch(db, keys, |values, row| {
            values.text(row.map(|(key, _)| key.as_str()));
        })
        .await?;
    Ok(())
}
