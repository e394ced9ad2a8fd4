//! What tests have learnt of the sources of endpoints, beside the endpoints. What the text says is the application's business.

use souk_domain::ids::{CompanyId, ConnectionId, EndpointId};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;

use super::EndpointDetails;
use crate::{Fields, StoreError, Topic, Write};

/// Endpoints of one source whose tests are looked at, those that changed last: a save reads them, each some kB, and others say the same.
pub const OTHERS_MAX: i64 = 32;

/// Keeps what a test has learnt of an endpoint's source, unless the endpoint changed since `read_at`. Nothing else changes.
pub async fn keep(
    tx: &mut Write,
    id: &EndpointId,
    read_at: Timestamp,
    learned: &str,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE products SET learned = $1 WHERE id = $2 AND updated_at = $3")
        .bind(learned)
        .bind(id.as_str())
        .bind(read_at.micros())
        .execute(&mut **tx)
        .await?;
    tx.touch(Topic::Product, id);
    Ok(())
}

/// What was learnt of endpoints of a company beside `id` that have the same table or statement on this connection, at most [`OTHERS_MAX`].
pub async fn of_others(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &EndpointId,
    connection: &ConnectionId,
    source: &EndpointDetails,
) -> Result<Vec<String>, StoreError> {
    let rows = sqlx::query(
        "SELECT p.learned FROM products p JOIN endpoint_details d ON d.id = p.id \
         WHERE p.connection_id = $1 AND p.company_id = $2 AND p.id <> $3 AND p.learned IS NOT NULL AND p.status <> 'archived' \
         AND COALESCE(d.source_schema, '') = $4 AND COALESCE(d.source_table, '') = $5 AND COALESCE(d.sql_logic, '') = $6 \
         ORDER BY p.updated_at DESC, p.id LIMIT $7",
    )
    .bind(connection.as_str())
    .bind(company.as_str())
    .bind(id.as_str())
    .bind(source.source_schema.as_deref().unwrap_or_default())
    .bind(source.source_table.as_deref().unwrap_or_default())
    .bind(source.sql_logic.as_deref().unwrap_or_default())
    .bind(OTHERS_MAX)
    .fetch_all(db)
    .await?;
    rows.iter().map(|row| row.text("learned")).collect()
}
