//! What is particular about SQLite: its settings, its URL, the lock that keeps a second host away, and when its log is checkpointed.

use super::unavailable;
use crate::error::StoreError;
use sqlx::any::AnyConnectOptions;
use sqlx::{AnyConnection, ConnectOptions, Connection, Executor};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

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
    // Checkpoints are made beside the commits, see `checkpoint`. Should those fail, a commit makes one when the log has 256 MiB.
    "PRAGMA wal_autocheckpoint = 65536",
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

/// The path without links, as far as it exists.
pub(super) fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new(".")).canonicalize();
    match (parent, path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
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

/// The one connection that writes. `None` after a failure that left it in doubt: the next writer opens a new one.
pub(super) type Writer = Arc<Mutex<Option<AnyConnection>>>;

/// A log of this many pages (32 MiB) is copied into the database: long enough that a page which many commits changed is copied once, short
/// enough that a start after a crash reads it in a moment.
const LOG_PAGES: u32 = 8_192;
/// How often its length is looked at. Charges write some 50 MB a second when nothing else keeps them.
const LOOK: Duration = Duration::from_millis(100);

/// Keeps the log short for as long as the store is open. The commit that finds the log too long would else have to copy it, and all charges
/// would wait for that: tens of milliseconds, about ten times a second under load.
pub(super) async fn keep_log_short(path: PathBuf, options: AnyConnectOptions, writer: Writer) {
    let mut index = path.into_os_string();
    index.push("-shm");
    let index = PathBuf::from(index);
    loop {
        tokio::time::sleep(LOOK).await;
        let is_long =
            log_length(&index).is_ok_and(|(pages, copied)| pages > LOG_PAGES && copied < pages);
        if is_long && let Err(error) = checkpoint(&options, &writer).await {
            // A full disk, most likely: whoever writes next is told.
            tracing::warn!(%error, "the store's log could not be checkpointed");
        }
    }
}

/// The pages in the log, and how many of them have been copied. SQLite has no way to ask without a checkpoint, but documents where it keeps
/// both numbers ("WAL-mode File Format", the WAL-index header: `mxFrame` and `nBackfill`, in the machine's byte order).
fn log_length(index: &Path) -> std::io::Result<(u32, u32)> {
    const PAGES_AT: usize = 16;
    const COPIED_AT: usize = 96;
    let mut header = [0; COPIED_AT + 4];
    File::open(index)?.read_exact(&mut header)?;
    let number = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&header[at..at + 4]);
        u32::from_ne_bytes(bytes)
    };
    Ok((number(PAGES_AT), number(COPIED_AT)))
}

/// Copies most of the log while others write, then, in the writer's turn, the little that they wrote meanwhile: the next commit begins the
/// log anew. (The file keeps its size: writing into it is faster than making it longer.)
pub(super) async fn checkpoint(
    options: &AnyConnectOptions,
    writer: &Writer,
) -> Result<(), sqlx::Error> {
    const COPY: &str = "PRAGMA wal_checkpoint(PASSIVE)";
    let mut connection = options.connect().await?;
    connection.execute("PRAGMA busy_timeout = 5000").await?;
    connection.execute(COPY).await?;
    let turn = writer.lock().await;
    connection.execute(COPY).await?;
    drop(turn);
    connection.close().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::Row;

    /// The two numbers that are read out of SQLite's own file are those that SQLite tells.
    #[tokio::test]
    async fn the_length_of_the_log_is_what_sqlite_says() {
        sqlx::any::install_default_drivers();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let options: AnyConnectOptions = url(&path).parse().unwrap();
        let mut writer = open_writer(&options).await.unwrap();
        writer.execute("CREATE TABLE t (x TEXT)").await.unwrap();
        writer.execute("INSERT INTO t VALUES (1)").await.unwrap();
        let index = directory.path().join("store.db-shm");
        let (before, copied) = log_length(&index).unwrap();
        assert!(before > 1 && copied == 0, "{before} {copied}");

        let told = writer
            .fetch_one("PRAGMA wal_checkpoint(PASSIVE)")
            .await
            .unwrap();
        let told = (told.get::<i64, _>(1) as u32, told.get::<i64, _>(2) as u32);
        assert_eq!(log_length(&index).unwrap(), told);
        assert_eq!(told, (before, before));

        writer.execute("INSERT INTO t VALUES (2)").await.unwrap();
        let (after, copied) = log_length(&index).unwrap();
        assert!(
            after < before && copied == 0,
            "begun anew: {after} {copied}"
        );
    }
}
