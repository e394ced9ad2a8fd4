//! Opening the store: the schema comes up to date, and what a former process left is booked, before anybody reads or writes.

use crate::charge_log::{self, ChargeLog};
use crate::db::{Db, OpenOptions};
use crate::error::StoreError;
use crate::migrations;
use crate::teller::log_applier;
use sqlx::Executor;
use std::time::SystemTime;

/// An advisory lock that every host takes while it migrates; the number is arbitrary but must not change.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_xact_lock(7305813046925033)";

/// Another host's migration, and whoever reads a table that is changed, are waited for as long as they take.
const PATIENT: &str = "SET LOCAL lock_timeout = 0";

impl Db {
    /// Opens the store, takes its lock, and applies missing migrations.
    ///
    /// Must be called on a runtime that outlives the store: its listener (on PostgreSQL) and its checkpoints (on SQLite) run there.
    pub async fn open(options: &OpenOptions) -> Result<Self, StoreError> {
        let db = Self::connect(options).await?;
        let mut write = db.write_schema().await?;
        if db.is_shared() {
            write.execute(PATIENT).await?;
            write.execute(MIGRATION_LOCK).await?;
        }
        migrations::run(&mut write, SystemTime::now().into()).await?;
        write.commit().await?;
        catch_up(&db).await?;
        Ok(db)
    }
}

/// Books what a former process left in its charge log.
async fn catch_up(db: &Db) -> Result<(), StoreError> {
    let Some((backlog, path)) = db.charge_log() else {
        return Ok(());
    };
    let booked = log_applier::booked(&mut *db.read().await?).await?;
    let frames = charge_log::read(path, booked)
        .map_err(|error| StoreError::unavailable(format!("{}: {error}", path.display())))?;
    let last = frames.last().map_or(booked, |frame| frame.number);
    if !frames.is_empty() {
        tracing::info!(
            frames = frames.len(),
            "booking charges that a former process logged"
        );
    }
    log_applier::book_frames(db, &frames).await?;
    *backlog.pen().await? = ChargeLog::new(path, last + 1);
    backlog.note_logged(last);
    backlog.note_booked(last);
    charge_log::remove(path);
    Ok(())
}
