//! Uploaded connectors: their bytes, and which version each scope chose ([`canaries`]: beside which one another is tried out).
//!
//! The bytes are in the store, not beside it, so that every host that shares the store can load them
//! and one backup holds all that a restart needs. Bundled connectors have no row here.

pub mod canaries;

use souk_domain::ids::CompanyId;
use souk_domain::time::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use crate::{Fields, Read, StoreError, Topic, Write, companies};

/// `scope` of connectors that every company may use; any other scope is a company's id.
pub const PLATFORM: &str = "platform";

/// One piece of a component: a commit of this size takes milliseconds, so charges never wait long.
pub const CHUNK_BYTES: usize = 1024 * 1024;

#[derive(Debug, Clone)]
pub struct StoredConnector {
    pub scope: String,
    pub name: String,
    pub version: String,
    /// SHA-256 of the component, hexadecimal.
    pub digest: String,
    pub size_bytes: i64,
    pub uploaded_by: String,
    pub created_at: Timestamp,
    /// JSON, of whoever wrote it: what the component says about itself.
    pub described: Option<String>,
    /// Why the last attempt to put it to work failed.
    pub error: Option<String>,
}

/// The version that a scope runs, or ran until it was taken off work, and the one that a rollback returns to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub scope: String,
    pub name: String,
    pub version: String,
    pub previous_version: Option<String>,
    pub activated_at: Timestamp,
    /// No version of it is at work since then.
    pub deactivated_at: Option<Timestamp>,
    /// It was the platform's staff, and its company cannot put it back.
    pub blocked: bool,
    /// Why it was taken off work, in somebody's words, or why this version was gone back to.
    pub reason: Option<String>,
}

/// What a company's connectors have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub versions: i64,
    pub bytes: i64,
}

/// Oldest first. Without what they say about themselves.
pub async fn list(db: &mut AnyConnection) -> Result<Vec<StoredConnector>, StoreError> {
    let rows = sqlx::query(
        "SELECT scope, name, version, digest, size_bytes, uploaded_by, created_at, CAST(NULL AS TEXT) AS described, \
                CAST(NULL AS TEXT) AS error \
         FROM connectors \
         ORDER BY created_at, scope, name, version",
    )
    .fetch_all(db)
    .await?;
    rows.iter().map(connector).collect()
}

/// The versions of one scope, oldest first.
pub async fn of_scope(
    db: &mut AnyConnection,
    scope: &str,
) -> Result<Vec<StoredConnector>, StoreError> {
    described(db, Some(scope)).await
}

/// The versions of one scope or of all, oldest first.
pub async fn described(
    db: &mut AnyConnection,
    scope: Option<&str>,
) -> Result<Vec<StoredConnector>, StoreError> {
    let rows = sqlx::query(
        "SELECT scope, name, version, digest, size_bytes, uploaded_by, created_at, described, error \
         FROM connectors \
         WHERE CAST($1 AS TEXT) IS NULL OR scope = $1 \
         ORDER BY created_at, scope, name, version",
    )
    .bind(scope)
    .fetch_all(db)
    .await?;
    rows.iter().map(connector).collect()
}

/// What a scope has stored. Versions with the same bytes count each: deleting one of them need not make room.
pub async fn stored(db: &mut AnyConnection, scope: &str) -> Result<Stored, StoreError> {
    let row = sqlx::query(
        "SELECT CAST(COUNT(*) AS BIGINT) AS versions, CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT) AS bytes \
         FROM connectors \
         WHERE scope = $1",
    )
    .bind(scope)
    .fetch_one(db)
    .await?;
    Ok(Stored {
        versions: row.try_get("versions")?,
        bytes: row.try_get("bytes")?,
    })
}

/// The same for whoever is about to insert one: nobody else can until `tx` ends.
pub async fn stored_to_insert(tx: &mut Write, company: &CompanyId) -> Result<Stored, StoreError> {
    companies::lock(tx, company).await?;
    stored(tx, company.as_str()).await
}

pub async fn get(
    db: &mut AnyConnection,
    scope: &str,
    name: &str,
    version: &str,
) -> Result<Option<StoredConnector>, StoreError> {
    let row = sqlx::query(
        "SELECT scope, name, version, digest, size_bytes, uploaded_by, created_at, described, error \
         FROM connectors \
         WHERE scope = $1 AND name = $2 AND version = $3",
    )
    .bind(scope)
    .bind(name)
    .bind(version)
    .fetch_optional(db)
    .await?;
    row.as_ref().map(connector).transpose()
}

pub async fn insert(tx: &mut Write, new: &StoredConnector) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO connectors (scope, name, version, digest, size_bytes, uploaded_by, created_at, described) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")
        .bind(new.scope.as_str())
        .bind(new.name.as_str())
        .bind(new.version.as_str())
        .bind(new.digest.as_str())
        .bind(new.size_bytes)
        .bind(new.uploaded_by.as_str())
        .bind(new.created_at.micros())
        .bind(new.described.as_deref())
        .execute(&mut **tx)
        .await?;
    tx.touch(Topic::Connector, &new.scope);
    Ok(())
}

/// Notes why a version could not be put to work, or that it could.
pub async fn note_error(
    tx: &mut Write,
    (scope, name, version): (&str, &str, &str),
    error: Option<&str>,
) -> Result<(), StoreError> {
    let done = sqlx::query(
        "UPDATE connectors SET error = $4 \
         WHERE scope = $1 AND name = $2 AND version = $3 AND COALESCE(error, '') <> COALESCE($4, '')",
    )
    .bind(scope)
    .bind(name)
    .bind(version)
    .bind(error)
    .execute(&mut **tx)
    .await?;
    if done.rows_affected() > 0 {
        tx.touch(Topic::Connector, scope);
    }
    Ok(())
}

/// Whether a version is stored. If it is, no other host deletes it until `tx` ends.
pub async fn lock(
    tx: &mut Write,
    (scope, name, version): (&str, &str, &str),
) -> Result<bool, StoreError> {
    // An update that changes nothing locks the row on both backends.
    let done = sqlx::query(
        "UPDATE connectors SET error = error WHERE scope = $1 AND name = $2 AND version = $3",
    )
    .bind(scope)
    .bind(name)
    .bind(version)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Waits for whoever has locked it ([`lock`]).
pub async fn delete(
    tx: &mut Write,
    scope: &str,
    name: &str,
    version: &str,
) -> Result<bool, StoreError> {
    let done =
        sqlx::query("DELETE FROM connectors WHERE scope = $1 AND name = $2 AND version = $3")
            .bind(scope)
            .bind(name)
            .bind(version)
            .execute(&mut **tx)
            .await?;
    tx.touch(Topic::Connector, scope);
    Ok(done.rows_affected() == 1)
}

/// Writes one piece; the same piece of the same component again changes nothing.
pub async fn put_chunk(
    tx: &mut Write,
    digest: &str,
    piece: i64,
    bytes: &[u8],
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO connector_chunks (digest, piece, bytes, created_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (digest, piece) DO UPDATE SET created_at = excluded.created_at",
    )
    .bind(digest)
    .bind(piece)
    .bind(bytes)
    .bind(now.micros())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The component, or `None` when a piece is missing. Each piece is an answer for itself: where the store is far away a large one takes its time.
pub async fn bytes(
    read: &mut Read,
    digest: &str,
    size_bytes: i64,
) -> Result<Option<Vec<u8>>, StoreError> {
    let size = usize::try_from(size_bytes)
        .map_err(|_| StoreError::Corrupt(format!("connector {digest} has size {size_bytes}")))?;
    let mut whole = Vec::with_capacity(size);
    for piece in 0..size.div_ceil(CHUNK_BYTES) {
        let row =
            sqlx::query("SELECT bytes FROM connector_chunks WHERE digest = $1 AND piece = $2")
                .bind(digest)
                .bind(piece as i64)
                .fetch_optional(&mut **read)
                .await?;
        let Some(row) = row else { return Ok(None) };
        whole.extend_from_slice(row.try_get::<&[u8], _>("bytes")?);
    }
    Ok((whole.len() == size).then_some(whole))
}

/// Whether all pieces of a component are there.
pub async fn is_whole(
    db: &mut AnyConnection,
    digest: &str,
    size_bytes: i64,
) -> Result<bool, StoreError> {
    let row = sqlx::query(
        "SELECT CAST(COUNT(*) AS BIGINT) AS pieces FROM connector_chunks WHERE digest = $1",
    )
    .bind(digest)
    .fetch_one(db)
    .await?;
    let pieces: i64 = row.try_get("pieces")?;
    Ok(usize::try_from(size_bytes).is_ok_and(|size| pieces as usize == size.div_ceil(CHUNK_BYTES)))
}

/// The versions of which pieces are missing or cut off, oldest first, without what they say about themselves.
pub async fn incomplete(db: &mut AnyConnection) -> Result<Vec<StoredConnector>, StoreError> {
    let rows = sqlx::query(
        "SELECT scope, name, version, digest, size_bytes, uploaded_by, created_at, CAST(NULL AS TEXT) AS described, \
                CAST(NULL AS TEXT) AS error \
         FROM connectors \
         WHERE size_bytes <> (SELECT COALESCE(SUM(LENGTH(bytes)), 0) \
                              FROM connector_chunks \
                              WHERE connector_chunks.digest = connectors.digest) \
         ORDER BY created_at, scope, name, version",
    )
    .fetch_all(db)
    .await?;
    rows.iter().map(connector).collect()
}

/// Deletes one piece of a component that no connector names any more, unless it was written after `before`: somebody may be uploading the
/// same bytes again.
pub async fn drop_chunk(
    tx: &mut Write,
    digest: &str,
    piece: i64,
    before: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "DELETE FROM connector_chunks \
         WHERE digest = $1 AND piece = $2 AND created_at <= $3 \
         AND NOT EXISTS (SELECT 1 FROM connectors WHERE digest = $1)",
    )
    .bind(digest)
    .bind(piece)
    .bind(before.micros())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Deletes pieces that no connector names, if they are older than `before`: an upload writes its
/// pieces first and its row last.
pub async fn sweep_chunks(tx: &mut Write, before: Timestamp) -> Result<u64, StoreError> {
    let done = sqlx::query(
        "DELETE \
         FROM connector_chunks \
         WHERE created_at < $1 AND digest NOT IN (SELECT digest \
         FROM connectors)",
    )
    .bind(before.micros())
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

pub async fn choices(db: &mut AnyConnection) -> Result<Vec<Choice>, StoreError> {
    let rows = sqlx::query(
        "SELECT scope, name, version, previous_version, activated_at, deactivated_at, blocked, reason \
         FROM connector_choices \
         ORDER BY scope, name",
    )
    .fetch_all(db)
    .await?;
    rows.iter().map(choice).collect()
}

pub async fn choice_of(
    db: &mut AnyConnection,
    scope: &str,
    name: &str,
) -> Result<Option<Choice>, StoreError> {
    let row = sqlx::query(
        "SELECT scope, name, version, previous_version, activated_at, deactivated_at, blocked, reason \
         FROM connector_choices \
         WHERE scope = $1 AND name = $2",
    )
    .bind(scope)
    .bind(name)
    .fetch_optional(db)
    .await?;
    row.as_ref().map(choice).transpose()
}

/// What was tried out beside the version of before is not, from now on.
pub async fn choose(tx: &mut Write, chosen: &Choice) -> Result<(), StoreError> {
    canaries::end(tx, &chosen.scope, &chosen.name).await?;
    sqlx::query(
        "INSERT INTO connector_choices (scope, name, version, previous_version, activated_at, deactivated_at, blocked, reason) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
         ON CONFLICT (scope, name) DO UPDATE SET version = excluded.version, previous_version = excluded.previous_version, \
         activated_at = excluded.activated_at, deactivated_at = excluded.deactivated_at, blocked = excluded.blocked, \
         reason = excluded.reason",
    )
    .bind(chosen.scope.as_str())
    .bind(chosen.name.as_str())
    .bind(chosen.version.as_str())
    .bind(chosen.previous_version.as_deref())
    .bind(chosen.activated_at.micros())
    .bind(chosen.deactivated_at.map(Timestamp::micros))
    .bind(i64::from(chosen.blocked))
    .bind(chosen.reason.as_deref())
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Connector, &chosen.scope);
    Ok(())
}

/// A rollback to a version that is gone must not be offered.
pub async fn forget_previous(
    tx: &mut Write,
    scope: &str,
    name: &str,
    version: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE connector_choices \
         SET previous_version = NULL \
         WHERE scope = $1 AND name = $2 AND previous_version = $3",
    )
    .bind(scope)
    .bind(name)
    .bind(version)
    .execute(&mut **tx)
    .await?;
    tx.touch(Topic::Connector, scope);
    Ok(())
}

fn connector(row: &AnyRow) -> Result<StoredConnector, StoreError> {
    Ok(StoredConnector {
        scope: row.try_get("scope")?,
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        digest: row.try_get("digest")?,
        size_bytes: row.try_get("size_bytes")?,
        uploaded_by: row.try_get("uploaded_by")?,
        created_at: row.time("created_at")?,
        described: row.try_get("described")?,
        error: row.try_get("error")?,
    })
}

fn choice(row: &AnyRow) -> Result<Choice, StoreError> {
    Ok(Choice {
        scope: row.try_get("scope")?,
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        previous_version: row.try_get("previous_version")?,
        activated_at: row.time("activated_at")?,
        deactivated_at: row.time_opt("deactivated_at")?,
        blocked: row.flag("blocked")?,
        reason: row.try_get("reason")?,
    })
}
