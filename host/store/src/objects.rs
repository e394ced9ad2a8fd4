//! Objects in an object store that no file names, not yet or not any more: what is left to delete there. What a file names is in `files`.

use souk_domain::ids::{CompanyId, FileId};
use souk_domain::time::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::leases::{self, Claim, Due};
use crate::{Fields, StoreError, Write};

/// An object that somebody deletes.
#[derive(Debug, Clone)]
pub struct Unnamed {
    pub upload: FileId,
    pub company: CompanyId,
    /// This one included.
    pub attempts: i64,
}

/// Nothing names the object, or nothing will from now on: it is deleted when it is due.
pub async fn unname(
    write: &mut Write,
    company: &CompanyId,
    upload: &str,
    due_at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO unnamed_objects (upload_id, company_id, due_at, attempts)
         VALUES ($1, $2, $3, 0)
         ON CONFLICT (upload_id) DO UPDATE SET due_at = excluded.due_at",
    )
    .bind(upload)
    .bind(company.as_str())
    .bind(due_at.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// A file names the object: it stays. False: it is too late, somebody deletes it or has.
pub async fn name(write: &mut Write, upload: &str) -> Result<bool, StoreError> {
    let named =
        sqlx::query("DELETE FROM unnamed_objects WHERE upload_id = $1 AND claimed_by IS NULL")
            .bind(upload)
            .execute(&mut **write)
            .await?;
    Ok(named.rows_affected() == 1)
}

/// What may be deleted now: companies by turns, the most overdue first. What a file names is not among it, whatever the table says.
pub async fn due(
    db: &mut AnyConnection,
    now: Timestamp,
    per_company: i64,
    limit: i64,
) -> Result<Vec<Due<FileId>>, StoreError> {
    leases::due(
        db,
        "SELECT upload_id AS id, company_id
         FROM (SELECT upload_id, company_id, due_at,
                      ROW_NUMBER() OVER (PARTITION BY company_id ORDER BY due_at, upload_id) AS turn
               FROM unnamed_objects
               WHERE due_at <= $1 AND (lease_until IS NULL OR lease_until <= $1)
                 AND NOT EXISTS (SELECT 1 FROM files WHERE files.upload_id = unnamed_objects.upload_id)) AS waiting
         WHERE turn <= $2
         ORDER BY turn, due_at, upload_id
         LIMIT $3",
        now,
        per_company,
        limit,
    )
    .await
}

/// Takes an object to delete it, again if need be, which is no other attempt. `None`: somebody else was first, or a file names it.
pub async fn claim(
    write: &mut Write,
    upload: &FileId,
    claim: &Claim<'_>,
) -> Result<Option<Unnamed>, StoreError> {
    const SQL: &str = "UPDATE unnamed_objects
         SET claimed_by = $2, lease_until = $4,
             attempts = attempts + CASE WHEN claimed_by = $2 AND lease_until > $3 THEN 0 ELSE 1 END
         WHERE upload_id = $1 AND due_at <= $3 AND (lease_until IS NULL OR lease_until <= $3 OR claimed_by = $2)
           AND NOT EXISTS (SELECT 1 FROM files WHERE files.upload_id = unnamed_objects.upload_id)
         RETURNING upload_id, company_id, attempts";
    leases::claim(write, SQL, upload.as_str(), claim, from_row).await
}

/// It is gone.
pub async fn deleted(write: &mut Write, upload: &FileId, claimant: &str) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM unnamed_objects WHERE upload_id = $1 AND claimed_by = $2")
        .bind(upload.as_str())
        .bind(claimant)
        .execute(&mut **write)
        .await?;
    Ok(())
}

/// It could not be deleted: it is due again at `due_at`.
pub async fn put_off(
    write: &mut Write,
    upload: &FileId,
    claimant: &str,
    due_at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE unnamed_objects
         SET due_at = $3, claimed_by = NULL, lease_until = NULL
         WHERE upload_id = $1 AND claimed_by = $2",
    )
    .bind(upload.as_str())
    .bind(claimant)
    .bind(due_at.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Ends all claims: of a host that has its store to itself and has just started, so that nobody holds one.
pub async fn release_all(write: &mut Write) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE unnamed_objects SET claimed_by = NULL, lease_until = NULL WHERE lease_until IS NOT NULL",
    )
    .execute(&mut **write)
    .await?;
    Ok(())
}

fn from_row(row: &AnyRow) -> Result<Unnamed, StoreError> {
    Ok(Unnamed {
        upload: row.id("upload_id")?,
        company: row.id("company_id")?,
        attempts: row.try_get("attempts")?,
    })
}
