//! Requests of keys and of people who are signed in, per hour and route prefix; and each key's totals.
//!
//! Who sent them stands in `key_usage.key_id`: a key, or a user, whose ids begin otherwise.

use crate::bulk::Bulk;
use crate::error::StoreError;
use crate::fields::Fields;
use crate::lists::read_all;
use souk_domain::actors::Actor;
use souk_domain::ids::{CompanyId, KeyId};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

/// Requests of one key in one hour on one route prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHour {
    pub hour: Timestamp,
    pub route: String,
    pub requests: i64,
    pub failed: i64,
}

/// What a key was used for, hour by hour, from `from` up to, not including, `to`.
pub async fn key_hours(
    db: &mut AnyConnection,
    key: &KeyId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<KeyHour>, StoreError> {
    let rows = sqlx::query(
        "SELECT hour, route, requests, failed
         FROM key_usage
         WHERE key_id = $1 AND hour >= $2 AND hour < $3
         ORDER BY hour, route",
    )
    .bind(key.as_str())
    .bind(from.micros())
    .bind(to.micros())
    .fetch_all(db)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(KeyHour {
                hour: row.time("hour")?,
                route: row.text("route")?,
                requests: row.number("requests")?,
                failed: row.number("failed")?,
            })
        })
        .collect()
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

/// What a company's keys and users asked for from `from` up to, not including, `to`, both midnights; by day, route and who asked.
pub async fn company_days(
    db: &mut AnyConnection,
    company: &CompanyId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<ActorDay>, StoreError> {
    // Times are microseconds: 86,400,000,000 to a day.
    let rows = sqlx::query(
        "SELECT u.hour - u.hour % 86400000000 AS day, u.route, a.id, a.name, CAST(SUM(u.requests) AS BIGINT) AS requests,
                CAST(SUM(u.failed) AS BIGINT) AS failed
         FROM (SELECT id, name FROM api_keys WHERE company_id = $1
               UNION ALL
               SELECT id, name FROM users WHERE company_id = $1) a
         JOIN key_usage u ON u.key_id = a.id AND u.hour >= $2 AND u.hour < $3
         GROUP BY u.hour - u.hour % 86400000000, u.route, a.id, a.name
         ORDER BY 1, 2, 3",
    )
    .bind(company.as_str())
    .bind(from.micros())
    .bind(to.micros())
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

/// How many requests a company's keys and users sent from `from` up to, not including, `to`, both full hours; refused ones included.
pub async fn company_requests(
    db: &mut AnyConnection,
    company: &CompanyId,
    from: Timestamp,
    to: Timestamp,
) -> Result<i64, StoreError> {
    let row = sqlx::query(
        "SELECT CAST(COALESCE(SUM(u.requests), 0) AS BIGINT) AS requests
         FROM (SELECT id FROM api_keys WHERE company_id = $1
               UNION ALL
               SELECT id FROM users WHERE company_id = $1) a
         JOIN key_usage u ON u.key_id = a.id AND u.hour >= $2 AND u.hour < $3",
    )
    .bind(company.as_str())
    .bind(from.micros())
    .bind(to.micros())
    .fetch_one(db)
    .await?;
    row.number("requests")
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct HourKey {
    pub actor: Actor,
    /// The beginning of the hour.
    pub hour: i64,
    pub route: &'static str,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HourCounts {
    pub requests: i64,
    pub failed: i64,
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
    }
}

static ADD_HOURS: Bulk = Bulk::new(
    "INSERT INTO key_usage (key_id, hour, route, requests, failed)
     SELECT column1, column2, column3, column4, column5",
    5,
    "WHERE column1 IS NOT NULL
     ON CONFLICT (key_id, hour, route) DO UPDATE
     SET requests = key_usage.requests + excluded.requests,
         failed = key_usage.failed + excluded.failed",
);

/// Adds counts. `hours` has nothing twice and is sorted.
pub(crate) async fn add_hours(
    db: &mut AnyConnection,
    hours: &[(HourKey, HourCounts)],
) -> Result<(), StoreError> {
    ADD_HOURS
        .run(db, hours, |values, row| {
            values
                .text(row.map(|(key, _)| key.actor.as_str()))
                .number(row.map(|(key, _)| key.hour))
                .text(row.map(|(key, _)| key.route))
                .number(row.map(|(_, counts)| counts.requests))
                .number(row.map(|(_, counts)| counts.failed));
        })
        .await?;
    Ok(())
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
