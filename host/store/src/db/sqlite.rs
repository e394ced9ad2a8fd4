//! What is particular about SQLite: its settings, its URL, and the lock that keeps a second host away.

use super::unavailable;
use crate::error::StoreError;
use sqlx::any::AnyConnectOptions;
use sqlx::{AnyConnection, ConnectOptions, Executor};
use std::fs::File;
use std::path::Path;

/// Begins a transaction that writes. Plain `BEGIN` would find out at its first change that somebody else is writing.
pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";

/// WAL keeps readers and the writer apart; FULL syncs the log at every commit, so that what was answered survives a power cut.
const WRITER: &[&str] = &[
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA busy_timeout = 5000",
    "PRAGMA cache_size = -65536",
    "PRAGMA temp_store = MEMORY",
    // 4,000 pages of 4 KiB: a checkpoint about every 16 MiB of log instead of every 4.
    "PRAGMA wal_autocheckpoint = 4000",
];
pub(super) const READER: &[&str] = &[
    "PRAGMA foreign_keys = ON",
    "PRAGMA busy_timeout = 5000",
    "PRAGMA cache_size = -8192",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA query_only = ON",
];

pub(super) async fn open_writer(options: &AnyConnectOptions) -> Result<AnyConnection, StoreError> {
    let mut connection = options.connect().await?;
    prepare(&mut connection, WRITER).await?;
    Ok(connection)
}

pub(super) async fn prepare(
    connection: &mut AnyConnection,
    statements: &[&'static str],
) -> Result<(), sqlx::Error> {
    for statement in statements {
        connection.execute(*statement).await?;
    }
    Ok(())
}

pub(super) fn url(path: &Path) -> String {
    let mut url = String::from("sqlite:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                url.push(*byte as char)
            }
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url.push_str("?mode=rwc");
    url
}

/// Takes the lock that keeps a second host away from the same file; the kernel releases it when the process ends, however it ends.
pub(super) fn lock(path: &Path) -> Result<File, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name)
        .map_err(|error| unavailable(format!("{}: {error}", name.display())))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => Err(unavailable(format!(
            "{} is open in another souk process; stop that one, or use a PostgreSQL store to run several",
            path.display()
        ))),
        Err(std::fs::TryLockError::Error(error)) => {
            Err(unavailable(format!("{}: {error}", name.display())))
        }
    }
}
