//! A copy of a SQLite store while it is in use.

use crate::db::{Db, file_url};
use crate::error::StoreError;
use crate::fields::Fields;
use sqlx::any::AnyConnectOptions;
use sqlx::{AnyConnection, ConnectOptions, Connection, Row};
use std::path::Path;

/// A company's file as the store names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    pub company: String,
    pub upload: String,
    pub name: String,
    pub size_bytes: i64,
    pub sha256: String,
}

/// Copies the whole store into a new file, as it is at one instant: everything that was answered before this was called is in it, charges that
/// were only logged then too. Readers and writers go on meanwhile. False: this store is no file, its server has tools of its own.
pub async fn copy(db: &Db, into: &Path) -> Result<bool, StoreError> {
    let Some(options) = db.file_options() else {
        return Ok(false);
    };
    // Whoever reads waits for what was logged before.
    drop(db.read().await?);
    let Some(into) = into.to_str() else {
        return Err(StoreError::unavailable("the path of a copy must be text"));
    };
    let mut connection = options.connect().await?;
    let copied = sqlx::query("VACUUM INTO $1")
        .bind(into)
        .execute(&mut connection)
        .await;
    connection.close().await?;
    copied?;
    Ok(true)
}

/// Opens a copy, to look into it.
pub async fn open_copy(path: &Path) -> Result<AnyConnection, StoreError> {
    sqlx::any::install_default_drivers();
    let options: AnyConnectOptions = file_url(path).parse()?;
    Ok(options.connect().await?)
}

pub async fn close_copy(copy: AnyConnection) -> Result<(), StoreError> {
    Ok(copy.close().await?)
}

/// All files of all companies.
pub async fn files(db: &mut AnyConnection) -> Result<Vec<NamedFile>, StoreError> {
    let rows = sqlx::query(
        "SELECT company_id, upload_id, name, size_bytes, sha256
         FROM files
         ORDER BY company_id, name",
    )
    .fetch_all(db)
    .await?;
    let file = |row: &sqlx::any::AnyRow| -> Result<NamedFile, StoreError> {
        Ok(NamedFile {
            company: row.text("company_id")?,
            upload: row.text("upload_id")?,
            name: row.text("name")?,
            size_bytes: row.try_get("size_bytes")?,
            sha256: row.text("sha256")?,
        })
    };
    rows.iter().map(file).collect()
}

/// What is wrong with the pages of a store that is a file. `None`: nothing, or a server keeps it, which looks after its own.
pub async fn damage(db: &Db) -> Result<Option<String>, StoreError> {
    if db.file_options().is_none() {
        return Ok(None);
    }
    let mut read = db.read().await?;
    let row = sqlx::query("PRAGMA quick_check(1)")
        .fetch_one(&mut *read)
        .await?;
    let found = row.text("quick_check")?;
    Ok(Some(found).filter(|found| found != "ok"))
}

/// The number of the last migration that was applied.
pub async fn schema_version(db: &mut AnyConnection) -> Result<i64, StoreError> {
    let row = sqlx::query("SELECT MAX(version) AS version FROM schema_migrations")
        .fetch_one(db)
        .await?;
    row.number("version")
}
