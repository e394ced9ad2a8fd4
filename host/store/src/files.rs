//! What is known about a company's files. Their bytes are on disk, one directory per upload.

use souk_domain::ids::{CompanyId, ConnectionId};
use souk_domain::time::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::lists::{List, Listed, Part, Values};
use crate::{Fields, StoreError, Write, connections};

#[derive(Debug, Clone)]
pub struct File {
    pub name: String,
    /// The directory that holds exactly this version of the file.
    pub upload_id: String,
    pub size_bytes: i64,
    pub sha256: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

static LIST: List = List::new(
    "name, upload_id, size_bytes, sha256, created_at, updated_at",
    "FROM files WHERE company_id = $1",
    "name",
    1,
);

/// By name.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    part: Part,
) -> Result<Listed<File>, StoreError> {
    let bind = |values: &mut Values| {
        values.text(Some(company.as_str()));
    };
    LIST.fetch(db, part, bind, file).await
}

pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    name: &str,
) -> Result<Option<File>, StoreError> {
    let row = sqlx::query(
        "SELECT name, upload_id, size_bytes, sha256, created_at, updated_at \
         FROM files \
         WHERE company_id = $1 AND name = $2",
    )
    .bind(company.as_str())
    .bind(name)
    .fetch_optional(db)
    .await?;
    row.as_ref().map(file).transpose()
}

/// How many files a company has, and their bytes together.
pub async fn totals(db: &mut AnyConnection, company: &CompanyId) -> Result<(i64, i64), StoreError> {
    let row = sqlx::query(
        "SELECT CAST(COUNT(*) AS BIGINT) AS files, CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) AS bytes \
         FROM files \
         WHERE company_id = $1",
    )
    .bind(company.as_str())
    .fetch_one(db)
    .await?;
    Ok((row.try_get("files")?, row.try_get("bytes")?))
}

/// Makes `file` the company's file of that name. `created_at` of a file that is replaced stays. Returns the connections that read it: their
/// sessions have the older version open.
pub async fn put(
    tx: &mut Write,
    company: &CompanyId,
    file: &File,
) -> Result<Vec<ConnectionId>, StoreError> {
    sqlx::query(
        "INSERT INTO files (company_id, name, upload_id, size_bytes, sha256, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) \
         ON CONFLICT (company_id, name) DO UPDATE SET upload_id = excluded.upload_id, size_bytes = excluded.size_bytes, \
         sha256 = excluded.sha256, updated_at = excluded.updated_at",
    )
    .bind(company.as_str())
    .bind(file.name.as_str())
    .bind(file.upload_id.as_str())
    .bind(file.size_bytes)
    .bind(file.sha256.as_str())
    .bind(file.created_at.micros())
    .bind(file.updated_at.micros())
    .execute(&mut **tx)
    .await?;
    let readers = connections::using_file(tx, company, &file.name).await?;
    connections::bump(tx, company, &readers).await?;
    Ok(readers)
}

/// Whether the file exists; until the transaction ends nobody can delete it.
pub async fn lock(tx: &mut Write, company: &CompanyId, name: &str) -> Result<bool, StoreError> {
    // An update that changes nothing locks the row on both backends.
    let done =
        sqlx::query("UPDATE files SET upload_id = upload_id WHERE company_id = $1 AND name = $2")
            .bind(company.as_str())
            .bind(name)
            .execute(&mut **tx)
            .await?;
    Ok(done.rows_affected() == 1)
}

/// Whether a file is this upload; until the transaction ends nobody can replace or delete it.
pub async fn lock_upload(
    tx: &mut Write,
    company: &CompanyId,
    upload: &str,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE files SET upload_id = upload_id WHERE company_id = $1 AND upload_id = $2",
    )
    .bind(company.as_str())
    .bind(upload)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Until the transaction ends nobody else holds this lock: what is counted of the company's files meanwhile stays true.
pub async fn lock_company(tx: &mut Write, company: &CompanyId) -> Result<(), StoreError> {
    sqlx::query("UPDATE companies SET updated_at = updated_at WHERE id = $1")
        .bind(company.as_str())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// False: there was none.
pub async fn delete(tx: &mut Write, company: &CompanyId, name: &str) -> Result<bool, StoreError> {
    let done = sqlx::query("DELETE FROM files WHERE company_id = $1 AND name = $2")
        .bind(company.as_str())
        .bind(name)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Every file of every company.
pub async fn all(db: &mut AnyConnection) -> Result<Vec<(CompanyId, File)>, StoreError> {
    let rows = sqlx::query(
        "SELECT company_id, name, upload_id, size_bytes, sha256, created_at, updated_at FROM files",
    )
    .fetch_all(db)
    .await?;
    rows.iter()
        .map(|row| Ok((row.id("company_id")?, file(row)?)))
        .collect()
}

/// Every directory that a file needs, as `(company, upload)`: what else lies there is left over.
pub async fn uploads(db: &mut AnyConnection) -> Result<Vec<(String, String)>, StoreError> {
    let rows = sqlx::query("SELECT company_id, upload_id FROM files")
        .fetch_all(db)
        .await?;
    rows.iter()
        .map(|row| Ok((row.try_get("company_id")?, row.try_get("upload_id")?)))
        .collect()
}

fn file(row: &AnyRow) -> Result<File, StoreError> {
    Ok(File {
        name: row.try_get("name")?,
        upload_id: row.try_get("upload_id")?,
        size_bytes: row.try_get("size_bytes")?,
        sha256: row.try_get("sha256")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}
