//! The schema, as an ordered list of files that are each applied once. The same text runs on both backends; what only SQLite should read
//! is in a comment, `/* SQLite: … */`.
//!
//! After a crash, charges that are only in the charge log are booked after the migrations: a migration must not compute from the books.
//!
//! A file that was applied must never change again: its checksum is compared at every start.

use crate::audit::triggers;
use crate::error::StoreError;
use sha2::{Digest, Sha256};
use souk_domain::time::Timestamp;
use sqlx::{AnyConnection, AssertSqlSafe, Row};
use std::borrow::Cow;

/// Version, name, text. Append only. Numbers that are missing were given to work that came to nothing before it was applied anywhere; they are not
/// given again.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "core", include_str!("../migrations/0001_core.sql")),
    (2, "ledger", include_str!("../migrations/0002_ledger.sql")),
    (3, "sources", include_str!("../migrations/0003_sources.sql")),
    (
        4,
        "products",
        include_str!("../migrations/0004_products.sql"),
    ),
    (
        5,
        "commerce",
        include_str!("../migrations/0005_commerce.sql"),
    ),
    (
        7,
        "marketplace",
        include_str!("../migrations/0007_marketplace.sql"),
    ),
    (
        8,
        "payments",
        include_str!("../migrations/0008_payments.sql"),
    ),
    (
        9,
        "webhooks",
        include_str!("../migrations/0009_webhooks.sql"),
    ),
    (
        10,
        "charge log",
        include_str!("../migrations/0010_charge_log.sql"),
    ),
    (
        12,
        "kept answers",
        include_str!("../migrations/0012_kept_answers.sql"),
    ),
    (
        13,
        "samples",
        include_str!("../migrations/0013_samples.sql"),
    ),
    (
        15,
        "connectors",
        include_str!("../migrations/0015_connectors.sql"),
    ),
    (
        16,
        "one products table",
        include_str!("../migrations/0016_one_products_table.sql"),
    ),
    (20, "audit", include_str!("../migrations/0020_audit.sql")),
    (
        21,
        "favorites",
        include_str!("../migrations/0021_favorites.sql"),
    ),
    (22, "sales", include_str!("../migrations/0022_sales.sql")),
    (23, "users", include_str!("../migrations/0023_users.sql")),
    (
        24,
        "sessions",
        include_str!("../migrations/0024_sessions.sql"),
    ),
    (
        25,
        "statistics",
        include_str!("../migrations/0025_statistics.sql"),
    ),
    (
        26,
        "saved schemas",
        include_str!("../migrations/0026_saved_schemas.sql"),
    ),
    (27, "alerts", include_str!("../migrations/0027_alerts.sql")),
    (28, "search", include_str!("../migrations/0028_search.sql")),
    (29, "posts", include_str!("../migrations/0029_posts.sql")),
    (30, "sorts", include_str!("../migrations/0030_sorts.sql")),
    (
        32,
        "alert mails",
        include_str!("../migrations/0032_alert_mails.sql"),
    ),
    (
        33,
        "publications",
        include_str!("../migrations/0033_publications.sql"),
    ),
    (
        34,
        "failed executions",
        include_str!("../migrations/0034_failed_executions.sql"),
    ),
    (
        35,
        "connectors off",
        include_str!("../migrations/0035_connectors_off.sql"),
    ),
    (
        36,
        "spent nonces",
        include_str!("../migrations/0036_spent_nonces.sql"),
    ),
    (
        37,
        "usage times",
        include_str!("../migrations/0037_usage_times.sql"),
    ),
    (
        38,
        "connector canaries",
        include_str!("../migrations/0038_connector_canaries.sql"),
    ),
    (
        39,
        "unnamed objects",
        include_str!("../migrations/0039_unnamed_objects.sql"),
    ),
    (
        40,
        "search and lists",
        include_str!("../migrations/0040_search_and_lists.sql"),
    ),
    (
        41,
        "recent executions",
        include_str!("../migrations/0041_recent_executions.sql"),
    ),
    (42, "trino", include_str!("../migrations/0042_trino.sql")),
    (
        44,
        "snowflake",
        include_str!("../migrations/0044_snowflake.sql"),
    ),
    (
        45,
        "databricks",
        include_str!("../migrations/0045_databricks.sql"),
    ),
    (46, "duckdb", include_str!("../migrations/0046_duckdb.sql")),
    (47, "files", include_str!("../migrations/0047_files.sql")),
    (
        48,
        "live keys",
        include_str!("../migrations/0048_live_keys.sql"),
    ),
    (
        49,
        "schema bytes",
        include_str!("../migrations/0049_schema_bytes.sql"),
    ),
    (
        50,
        "mails of companies",
        include_str!("../migrations/0050_mails_of_companies.sql"),
    ),
    (
        51,
        "proven addresses",
        include_str!("../migrations/0051_proven_addresses.sql"),
    ),
    (
        52,
        "words due",
        include_str!("../migrations/0052_words_due.sql"),
    ),
    (
        53,
        "bounded records",
        include_str!("../migrations/0053_bounded_records.sql"),
    ),
    (54, "ends", include_str!("../migrations/0054_ends.sql")),
    (
        55,
        "lines by type",
        include_str!("../migrations/0055_lines_by_type.sql"),
    ),
    (
        56,
        "counted lines",
        include_str!("../migrations/0056_counted_lines.sql"),
    ),
    (
        57,
        "use of buyers",
        include_str!("../migrations/0057_use_of_buyers.sql"),
    ),
    (
        58,
        "due deliveries",
        include_str!("../migrations/0058_due_deliveries.sql"),
    ),
    (
        59,
        "excused",
        include_str!("../migrations/0059_excused.sql"),
    ),
    (
        60,
        "prices that end",
        include_str!("../migrations/0060_prices_that_end.sql"),
    ),
    (
        61,
        "errors of the triggered",
        include_str!("../migrations/0061_errors_of_the_triggered.sql"),
    ),
    (
        62,
        "why suspended",
        include_str!("../migrations/0062_why_suspended.sql"),
    ),
    (
        63,
        "who is staff",
        include_str!("../migrations/0063_who_is_staff.sql"),
    ),
    (
        64,
        "disputes",
        include_str!("../migrations/0064_disputes.sql"),
    ),
    (
        65,
        "kept headers",
        include_str!("../migrations/0065_kept_headers.sql"),
    ),
];

const CREATE_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS schema_migrations (
        version BIGINT PRIMARY KEY,
        name TEXT NOT NULL,
        checksum TEXT NOT NULL,
        applied_at BIGINT NOT NULL
    )";

/// Applies what is missing, inside the caller's transaction. The triggers of the audit log are away while tables change.
pub(crate) async fn run(connection: &mut AnyConnection, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query(CREATE_TABLE).execute(&mut *connection).await?;
    let rows = sqlx::query("SELECT version, checksum FROM schema_migrations ORDER BY version")
        .fetch_all(&mut *connection)
        .await?;
    let mut applied = std::collections::HashMap::new();
    for row in &rows {
        applied.insert(
            row.try_get::<i64, _>("version")?,
            row.try_get::<String, _>("checksum")?,
        );
    }
    // Which migrations made a store says nothing to whoever starts one.
    let is_first = rows.is_empty();
    let mut is_new = false;
    for (version, name, text) in MIGRATIONS {
        let checksum = hex::encode(Sha256::digest(text.as_bytes()));
        match applied.remove(version) {
            Some(known) if known == checksum => {}
            Some(_) => {
                return Err(StoreError::Corrupt(format!(
                    "migration {version} ({name}) was changed after it had been applied"
                )));
            }
            None => {
                if !is_new {
                    triggers::remove(connection).await?;
                }
                is_new = true;
                apply(connection, *version, name, text, &checksum, now).await?;
                if !is_first {
                    tracing::info!(version, name, "migration applied");
                }
            }
        }
    }
    if is_first {
        let version = MIGRATIONS.last().map(|(version, ..)| version);
        tracing::info!(version, "store made");
    }
    match applied.keys().min() {
        Some(version) => Err(StoreError::Corrupt(format!(
            "the store has migration {version}, which this version of souk does not know; use a newer one"
        ))),
        None => triggers::set(connection, is_new).await,
    }
}

async fn apply(
    connection: &mut AnyConnection,
    version: i64,
    name: &str,
    text: &'static str,
    checksum: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    use sqlx::Executor;
    let text = match connection.backend_name() {
        "SQLite" => only_for(text, "/* SQLite: "),
        _ => only_for(text, "/* PostgreSQL: "),
    };
    connection
        .execute(sqlx::raw_sql(AssertSqlSafe(text.into_owned())))
        .await?;
    sqlx::query("INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)")
        .bind(version)
        .bind(name)
        .bind(checksum)
        .bind(now.micros())
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// Takes the comment signs off what only one store should read.
fn only_for<'a>(text: &'a str, open: &str) -> Cow<'a, str> {
    let mut rest = text;
    let mut out = String::new();
    while let Some((before, after)) = rest.split_once(open) {
        let Some((inside, after)) = after.split_once(" */") else {
            break;
        };
        out.push_str(before);
        out.push_str(inside);
        rest = after;
    }
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}
