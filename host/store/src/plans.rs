//! How SQLite carries out a statement, for tests that hold one to its indexes.

use crate::{Db, Fields, OpenOptions};
use sqlx::AssertSqlSafe;
use tempfile::TempDir;

/// A new store, in which statements are planned.
pub struct Plans {
    db: Db,
    _directory: TempDir,
}

impl Plans {
    pub async fn open() -> Plans {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("souk.db").display());
        Plans {
            db: Db::open(&OpenOptions::new(url)).await.unwrap(),
            _directory: directory,
        }
    }

    /// The steps of a statement, in SQLite's words. Its parameters have no values, which no plan depends on.
    pub async fn steps(&self, sql: &str) -> Vec<String> {
        let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")))
            .fetch_all(&mut *self.db.read().await.unwrap())
            .await
            .unwrap();
        rows.iter().map(|row| row.text("detail").unwrap()).collect()
    }
}
