//! What is particular about SQLite: its settings, its URL, the lock that keeps a second host away, and when its log is checkpointed.

use super::connecting::prepare;
use crate::error::StoreError;
use sqlx::any::AnyConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AnyConnection, AssertSqlSafe, ConnectOptions, Connection, Executor, SqliteConnection};
use std::fs::{File, TryLockError};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Begins a transaction that writes. Plain `BEGIN` would find out at its first change that somebody else is writing.
pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";

/// WAL keeps readers and the writer apart; FULL syncs the log at every commit, so that what was answered survives a power cut.
const WRITER: &[&str] = &[
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA busy_timeout = 5000",
    "PRAGMA cache_size = -32768",
    "PRAGMA temp_store = MEMORY",
    // What is deleted is overwritten, sealed credentials among it. FAST would leave pages that become free as they are; on what charges do to the
    // store neither costs anything that can be measured.
    "PRAGMA secure_delete = ON",
    // Rows of an index that an `ANALYZE` looks at: some milliseconds, however large it is.
    "PRAGMA analysis_limit = 1000",
    // Checkpoints are made beside the commits, see `checkpoint`. Should those fail, a commit makes one when the log has 1 GiB.
    "PRAGMA wal_autocheckpoint = 262144",
    // `LOG_BYTES`: what a log that is begun anew keeps of its file.
    "PRAGMA journal_size_limit = 33554432",
];
pub(super) const READER: &[&str] = &[
    "PRAGMA foreign_keys = ON",
    "PRAGMA busy_timeout = 5000",
    "PRAGMA cache_size = -8192",
    // Pages are read where the system keeps them, which readers share: a search in 100,000 products reads thousands, and to ask for each took
    // most of its time.
    "PRAGMA mmap_size = 2147418112",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA query_only = ON",
];

/// The connections that write, one at a time.
pub(super) struct Writers {
    pub any: AnyConnection,
    /// For charges that are booked behind, of which there are many: sqlx's `Any` copies each text twice on its way to SQLite.
    pub books: SqliteConnection,
}

impl Writers {
    pub async fn open(options: &AnyConnectOptions) -> Result<Self, StoreError> {
        let mut any = options.connect().await?;
        prepare(&mut any, WRITER).await?;
        let direct = SqliteConnectOptions::from_url(&options.database_url)?;
        let mut books = direct.disable_statement_logging().connect().await?;
        // As `prepare` does for the other kind of connection.
        for statement in WRITER {
            books.execute(*statement).await?;
        }
        Ok(Self { any, books })
    }

    /// See [`super::Db::limit_pages`].
    pub async fn limit_pages(&mut self, pages: u32) -> Result<(), sqlx::Error> {
        let limit = format!("PRAGMA max_page_count = {pages}");
        self.any.execute(AssertSqlSafe(limit.clone())).await?;
        self.books.execute(AssertSqlSafe(limit)).await?;
        Ok(())
    }

    pub async fn close(self) -> Result<(), sqlx::Error> {
        self.books.close().await?;
        self.any.close().await
    }
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

/// So long is waited for the lock of a host that has just ended. A process that it was starting at that moment (a compiler, say) has the lock
/// too until it has become another program.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Takes the lock that keeps a second host away from the same file; the kernel releases it when the process ends, however it ends.
pub(super) async fn lock(path: &Path) -> Result<File, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name)
        .map_err(|error| StoreError::unavailable(format!("{}: {error}", name.display())))?;
    hand_over(&lock, path);
    let begun = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_WAIT => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::unavailable(format!(
                    "{} is open in another souk process; stop that one, or use a PostgreSQL store to run several",
                    path.display()
                )));
            }
            Err(TryLockError::Error(error)) => {
                return Err(StoreError::unavailable(format!(
                    "{}: {error}",
                    name.display()
                )));
            }
        }
    }
}

/// A lock that root makes, who looks into a store that was just restored say, is its owner's, or his host could not take it. SQLite does the same with the
/// files that it makes beside a store. Nobody else can, and need not.
fn hand_over(lock: &File, store: &Path) {
    let beside = std::fs::metadata(store);
    let beside = beside.or_else(|_| std::fs::metadata(store.parent().unwrap_or(store)));
    if let Ok(beside) = beside {
        let _ = fchown(lock, Some(beside.uid()), Some(beside.gid()));
    }
}

/// The turn to write. `None` after a failure that left a connection in doubt: the next writer opens new ones.
pub(super) type Writer = Arc<Mutex<Option<Writers>>>;

/// A log of this size is copied into the database: long enough that a page which many commits changed is copied once, short enough that a
/// start after a crash reads it in a moment.
const LOG_BYTES: u64 = 32 << 20;
/// How often its length is looked at. Charges write some 50 MB a second when nothing else keeps them.
const LOOK: Duration = Duration::from_millis(100);
/// A disk that takes longer for a copy of little, while others write to it say, is not waited for in the writer's turn: everybody who writes would
/// wait as well, and give up after [`super::Db`]'s five seconds (seen with syncs that were made slow; answers of 503 in one moment of a soak beside builds, on 2026-11-25, looked the same).
const COPY_SLOW: Duration = Duration::from_millis(250);
/// But a log of this size is.
const LOG_BYTES_MAX: u64 = 512 << 20;
/// How soon a disk that was slow is asked again.
const SLOW_LOOK: Duration = Duration::from_secs(1);
/// A turn that was this long is told.
const TURN_LONG: Duration = Duration::from_secs(1);

/// Keeps the log short for as long as the store is open. The commit that finds the log too long would else have to copy it, and all charges
/// would wait for that: tens of milliseconds, about ten times a second under load.
///
/// Only asks for the file's length and time. Opening one of SQLite's files here and closing it again would drop all locks that SQLite has on
/// it (POSIX locks belong to the process), and another program on the same store, an operator's `sqlite3` say, could then damage it.
pub(super) async fn keep_log_short(path: PathBuf, options: AnyConnectOptions, writer: Writer) {
    let mut log = path.into_os_string();
    log.push("-wal");
    let log = PathBuf::from(log);
    // The file is cut back by the first commit after a checkpoint, not before.
    let mut copied = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let Ok(metadata) = std::fs::metadata(&log) else {
            continue;
        };
        let state = (metadata.len(), metadata.modified().ok());
        if state.0 <= LOG_BYTES || copied == Some(state) {
            continue;
        }
        match checkpoint(&options, &writer, state.0).await {
            Ok(true) => copied = Some(state),
            Ok(false) => tokio::time::sleep(SLOW_LOOK).await,
            // A full disk, most likely: whoever writes next is told.
            Err(error) => {
                tracing::warn!(%error, "the store's log could not be checkpointed");
                tokio::time::sleep(SLOW_LOOK).await;
            }
        }
    }
}

/// Copies most of the log, which has `length` bytes, while others write, then, in the writer's turn, the little that they wrote meanwhile: the
/// next commit begins the log anew. (The file keeps [`LOG_BYTES`]: writing into it is faster than making it longer.) False where the disk is too
/// slow for that turn.
pub(super) async fn checkpoint(
    options: &AnyConnectOptions,
    writer: &Writer,
    length: u64,
) -> Result<bool, sqlx::Error> {
    const COPY: &str = "PRAGMA wal_checkpoint(PASSIVE)";
    let mut connection = options.connect().await?;
    connection.execute("PRAGMA busy_timeout = 5000").await?;
    connection.execute(COPY).await?;
    let begun = Instant::now();
    connection.execute(COPY).await?;
    let took = begun.elapsed();
    let has_turn = may_take_turn(took, length);
    if has_turn {
        let turn = writer.lock().await;
        let begun = Instant::now();
        connection.execute(COPY).await?;
        drop(turn);
        let took = begun.elapsed();
        if took > TURN_LONG {
            tracing::warn!(
                took_ms = took.as_millis(),
                "the disk is slow: everybody who writes has waited while the store's log was copied"
            );
        }
    } else {
        tracing::warn!(
            took_ms = took.as_millis(),
            log_bytes = length,
            "the disk is slow: the store's log is copied later"
        );
    }
    connection.close().await?;
    Ok(has_turn)
}

/// Whether a copy that would take as long as the last one is waited for by everybody who writes.
fn may_take_turn(last_copy: Duration, log_bytes: u64) -> bool {
    last_copy <= COPY_SLOW || log_bytes >= LOG_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::Row;

    /// Nobody waits for a slow disk, unless for a log that may not become longer.
    #[test]
    fn a_slow_disk_is_not_waited_for() {
        let (quick, slow) = (Duration::from_millis(1), Duration::from_secs(6));
        assert!(may_take_turn(quick, LOG_BYTES + 1));
        assert!(!may_take_turn(slow, LOG_BYTES + 1));
        assert!(may_take_turn(slow, LOG_BYTES_MAX));
    }

    /// Whoever else made it, the lock is its store's owner's.
    #[tokio::test]
    async fn a_lock_is_the_stores_owners() {
        const NOBODY: u32 = 65_534;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        std::fs::write(&path, "").unwrap();
        let is_root = std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).is_ok();
        let made = lock(&path).await.unwrap().metadata().unwrap();
        let store = std::fs::metadata(&path).unwrap();
        assert_eq!((made.uid(), made.gid()), (store.uid(), store.gid()));
        assert_eq!(made.uid() == NOBODY, is_root);
    }

    /// A log that has become long is copied and begun anew, and its file is cut back.
    #[tokio::test]
    async fn a_long_log_is_cut_back() {
        sqlx::any::install_default_drivers();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let options: AnyConnectOptions = url(&path).parse().unwrap();
        let mut writers = Writers::open(&options).await.unwrap();
        let connection = &mut writers.any;
        connection.execute("CREATE TABLE t (x BLOB)").await.unwrap();
        let insert = "INSERT INTO t VALUES (zeroblob(4000000))";
        for _ in 0..12 {
            connection.execute(insert).await.unwrap();
        }
        let length = || {
            std::fs::metadata(directory.path().join("store.db-wal"))
                .unwrap()
                .len()
        };
        assert!(length() > LOG_BYTES, "{}", length());

        let writer: Writer = Arc::new(Mutex::new(Some(writers)));
        checkpoint(&options, &writer, length()).await.unwrap();
        let mut slot = writer.lock().await;
        let connection = &mut slot.as_mut().unwrap().any;
        connection.execute(insert).await.unwrap();
        assert_eq!(length(), LOG_BYTES);
        let rows = connection
            .fetch_one("SELECT COUNT(*) FROM t")
            .await
            .unwrap();
        assert_eq!(rows.get::<i64, _>(0), 13);
    }
}
