//! What products on sale are labelled with.

use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use sqlx::AnyConnection;
use std::collections::HashMap;

/// How many products on sale name each industry. Products that are labelled alike are counted by the store: there are far fewer kinds of
/// labels than products.
pub async fn products_by_industry(db: &mut AnyConnection) -> Result<HashMap<i64, i64>, StoreError> {
    let rows = sqlx::query(
        "SELECT p.labels, COUNT(*) AS products
         FROM products p
         JOIN companies c ON c.id = p.company_id AND c.status = 'active'
         WHERE p.status = 'published'
         GROUP BY p.labels",
    )
    .fetch_all(db)
    .await?;
    #[derive(serde::Deserialize)]
    struct Labels {
        #[serde(default)]
        industry_ids: Vec<i64>,
    }
    let mut counts = HashMap::new();
    for row in &rows {
        let labels: Labels =
            serde_json::from_str(&row.text("labels")?).map_err(|error| corrupt("labels", error))?;
        let mut ids = labels.industry_ids;
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            *counts.entry(id).or_insert(0) += row.number("products")?;
        }
    }
    Ok(counts)
}
