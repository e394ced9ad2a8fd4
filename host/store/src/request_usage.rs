//! Requests of a company's keys by day, route and key.

use crate::error::StoreError;
use crate::fields::Fields;
use souk_domain::ids::{CompanyId, KeyId};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;

/// Requests of one key on one date on one route prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDay {
    /// Midnight UTC.
    pub day: Timestamp,
    /// Such as `/assets`.
    pub route: String,
    pub key_id: KeyId,
    pub key_name: String,
    pub requests: i64,
    pub failed: i64,
}

/// From `from` up to, not including, `to`, both midnights; by day, route and key.
pub async fn of_company(
    db: &mut AnyConnection,
    company: &CompanyId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<KeyDay>, StoreError> {
    // Times are microseconds: 86,400,000,000 to a day.
    let rows = sqlx::query(
        "SELECT u.hour - u.hour % 86400000000 AS day, u.route, k.id, k.name, CAST(SUM(u.requests) AS BIGINT) AS requests,
                CAST(SUM(u.failed) AS BIGINT) AS failed
         FROM api_keys k
         JOIN key_usage u ON u.key_id = k.id AND u.hour >= $2 AND u.hour < $3
         WHERE k.company_id = $1
         GROUP BY u.hour - u.hour % 86400000000, u.route, k.id, k.name
         ORDER BY 1, 2, 3",
    )
    .bind(company.as_str())
    .bind(from.micros())
    .bind(to.micros())
    .fetch_all(db)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(KeyDay {
                day: row.time("day")?,
                route: row.text("route")?,
                key_id: row.id("id")?,
                key_name: row.text("name")?,
                requests: row.number("requests")?,
                failed: row.number("failed")?,
            })
        })
        .collect()
}
