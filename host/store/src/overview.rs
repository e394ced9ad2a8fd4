//! What a company has, at a glance: how many of each kind, and light lists of them.

use crate::error::StoreError;
use crate::fields::Fields;
use souk_domain::ids::CompanyId;
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;

/// How many of each there are. What was deleted, archived, revoked or deactivated is not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub assets: i64,
    pub endpoints: i64,
    pub connections: i64,
    pub files: i64,
    pub api_keys: i64,
    pub users: i64,
    pub webhooks: i64,
    /// Of other companies' products, active.
    pub purchases: i64,
    /// Of all users.
    pub favorites: i64,
    /// Of all users, active or not.
    pub alerts: i64,
    /// Drafts included.
    pub posts: i64,
}

pub async fn counts(
    db: &mut AnyConnection,
    company: &CompanyId,
    now: Timestamp,
) -> Result<Counts, StoreError> {
    let row = sqlx::query(
        "SELECT (SELECT COUNT(*) FROM products WHERE company_id = $1 AND product_type = 'asset' AND status <> 'archived') AS assets,
                (SELECT COUNT(*) FROM products WHERE company_id = $1 AND product_type = 'endpoint' AND status <> 'archived') AS endpoints,
                (SELECT COUNT(*) FROM connections WHERE company_id = $1 AND deleted_at IS NULL) AS connections,
                (SELECT COUNT(*) FROM files WHERE company_id = $1) AS files,
                (SELECT COUNT(*)
                 FROM api_keys
                 WHERE company_id = $1 AND (deactivated_at IS NULL OR deactivated_at > $2) AND (expires_at IS NULL OR expires_at > $2)
                ) AS api_keys,
                (SELECT COUNT(*) FROM users WHERE company_id = $1 AND status = 'active' AND deleted_at IS NULL) AS users,
                (SELECT COUNT(*) FROM webhooks WHERE company_id = $1) AS webhooks,
                (SELECT COUNT(*) FROM purchases WHERE company_id = $1 AND status = 'active') AS purchases,
                (SELECT COUNT(*) FROM favorites WHERE company_id = $1) AS favorites,
                (SELECT COUNT(*) FROM alerts WHERE company_id = $1) AS alerts,
                (SELECT COUNT(*) FROM posts WHERE company_id = $1) AS posts",
    )
    .bind(company.as_str())
    .bind(now.micros())
    .fetch_one(db)
    .await?;
    Ok(Counts {
        assets: row.number("assets")?,
        endpoints: row.number("endpoints")?,
        connections: row.number("connections")?,
        files: row.number("files")?,
        api_keys: row.number("api_keys")?,
        users: row.number("users")?,
        webhooks: row.number("webhooks")?,
        purchases: row.number("purchases")?,
        favorites: row.number("favorites")?,
        alerts: row.number("alerts")?,
        posts: row.number("posts")?,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Connections,
    Files,
    Assets,
    Endpoints,
    ApiKeys,
    Users,
    Webhooks,
    Purchases,
}

/// Enough of a thing to choose it from a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub id: String,
    pub name: String,
    pub status: String,
}

/// The newest of a kind, those that were deleted or archived left out.
pub async fn objects(
    db: &mut AnyConnection,
    company: &CompanyId,
    kind: Kind,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Object>, StoreError> {
    // Each takes all three parameters.
    let sql = match kind {
        Kind::Connections => {
            "SELECT id, name, status
             FROM connections
             WHERE company_id = $1 AND deleted_at IS NULL AND created_at <= $2
             ORDER BY created_at DESC, id LIMIT $3"
        }
        Kind::Files => {
            "SELECT name AS id, name, 'stored' AS status
             FROM files
             WHERE company_id = $1 AND created_at <= $2
             ORDER BY created_at DESC, name LIMIT $3"
        }
        Kind::Assets => {
            "SELECT id, name, status
             FROM products
             WHERE company_id = $1 AND product_type = 'asset' AND status <> 'archived' AND created_at <= $2
             ORDER BY created_at DESC, id LIMIT $3"
        }
        Kind::Endpoints => {
            "SELECT id, name, status
             FROM products
             WHERE company_id = $1 AND product_type = 'endpoint' AND status <> 'archived' AND created_at <= $2
             ORDER BY created_at DESC, id LIMIT $3"
        }
        Kind::ApiKeys => {
            "SELECT id, name, CASE WHEN deactivated_at <= $2 THEN 'deactivated' WHEN expires_at <= $2 THEN 'expired' ELSE 'active' END AS status
             FROM api_keys
             WHERE company_id = $1
             ORDER BY created_at DESC, id LIMIT $3"
        }
        Kind::Users => {
            "SELECT id, name, status
             FROM users
             WHERE company_id = $1 AND deleted_at IS NULL AND created_at <= $2
             ORDER BY created_at DESC, id LIMIT $3"
        }
        Kind::Webhooks => {
            "SELECT id, url AS name, CASE WHEN is_active = 1 THEN 'active' ELSE 'disabled' END AS status
             FROM webhooks
             WHERE company_id = $1 AND created_at <= $2
             ORDER BY created_at DESC, id LIMIT $3"
        }
        Kind::Purchases => {
            "SELECT p.purchase_id AS id, COALESCE(s.name, p.product_id) AS name, p.status
             FROM purchases p
             LEFT JOIN products s ON s.id = p.product_id
             WHERE p.company_id = $1 AND p.created_at <= $2
             ORDER BY p.created_at DESC, p.purchase_id LIMIT $3"
        }
    };
    let rows = sqlx::query(sql)
        .bind(company.as_str())
        .bind(now.micros())
        .bind(limit)
        .fetch_all(db)
        .await?;
    let object = |row: &sqlx::any::AnyRow| {
        Ok(Object {
            id: row.text("id")?,
            name: row.text("name")?,
            status: row.text("status")?,
        })
    };
    rows.iter().map(object).collect()
}
