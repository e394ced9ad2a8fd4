//! One open database file: how it is opened, what may be done with it, and when it must stop.

use crate::{authorizer, errors, quoted};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, MAIN_DB, OpenFlags};
use souk_sdk::{Error, FileName};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Pages of a scan that find no room here are read through the host again, every time.
const CACHE_KIB: u32 = 128 * 1024;
/// All that SQLite allocates, sorters included: past it a statement fails and the session goes on. The host's cap
/// on the component's memory lies above it, and leaves room for the answer.
const HEAP_BYTES: u64 = 256 << 20;
/// The longest text, blob or row.
const VALUE_BYTES_MAX: i32 = 64 << 20;
const STATEMENT_BYTES_MAX: i32 = 1 << 20;
/// How deep an expression may nest. SQLite recurses over it, and at 900 the 512 KiB of stack that a component has are
/// used up.
const DEPTH_MAX: i32 = 400;
/// Statements kept ready: a connection serves a seller's assets, and each has some, of pages and of filters. Past it the least recently used goes.
pub const STATEMENTS_MAX: usize = 256;
/// What they take together beside what SQLite allocates: their texts, and names and types of their columns. Past it the same; one by itself may have
/// more.
pub const STATEMENTS_BYTES_MAX: usize = 16 << 20;
/// Instructions of SQLite's machine between two looks at the clock: well under a millisecond.
const OPCODES_PER_CHECK: i32 = 1_000;

pub struct Database {
    /// Its statements keep it open, too.
    pub connection: Rc<Connection>,
    deadline: Deadline,
}

impl Database {
    /// Opens `name` in `directory`, which the caller does not choose: `/data` in a component.
    pub fn open(directory: &Path, name: &FileName) -> Result<Database, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        quoted::listen();
        let connection = Connection::open_with_flags(uri(directory, name), flags)
            .map_err(errors::of_statement)?;
        let deadline = Deadline::new();
        prepare(&connection, &deadline).map_err(errors::of_statement)?;
        Ok(Database {
            connection: Rc::new(connection),
            deadline,
        })
    }

    /// Sets the time that everything until the next call of this may take.
    pub fn allow(&self, timeout_ms: u32) {
        self.deadline.set(Duration::from_millis(timeout_ms.into()));
    }
}

fn prepare(connection: &Connection, deadline: &Deadline) -> rusqlite::Result<()> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
    connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, STATEMENT_BYTES_MAX)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_EXPR_DEPTH, DEPTH_MAX)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // The file is a stranger's: its views may not call functions that are unsafe in one.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.execute_batch(&format!(
        "PRAGMA query_only = 1; PRAGMA temp_store = memory; PRAGMA mmap_size = 0;
         PRAGMA cell_size_check = 1; PRAGMA cache_size = -{CACHE_KIB}; PRAGMA hard_heap_limit = {HEAP_BYTES};"
    ))?;
    let clock = deadline.clone();
    connection.progress_handler(OPCODES_PER_CHECK, Some(move || clock.passed()))?;
    authorizer::judge(connection)?;
    // Reads the first page: whether this is a database at all shows now.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

/// Whether the file was opened so that SQLite refuses every write.
pub fn is_read_only(database: &Database) -> bool {
    database.connection.is_readonly(MAIN_DB).unwrap_or(false)
}

/// `immutable=1`: see the README for what that means to a file that is being written.
fn uri(directory: &Path, name: &FileName) -> String {
    let mut uri = String::from("file:");
    for byte in directory.join(name.as_str()).to_string_lossy().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(byte.into())
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri.push_str("?mode=ro&immutable=1");
    uri
}

/// When the present request must stop. Shared with the progress handler, which SQLite calls.
#[derive(Clone)]
struct Deadline {
    base: Instant,
    /// Nanoseconds after `base`.
    at: Arc<AtomicU64>,
}

impl Deadline {
    fn new() -> Deadline {
        Deadline {
            base: Instant::now(),
            at: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    fn set(&self, left: Duration) {
        self.at.store(
            self.now().saturating_add(nanoseconds(left)),
            Ordering::Relaxed,
        );
    }

    fn passed(&self) -> bool {
        self.now() > self.at.load(Ordering::Relaxed)
    }

    fn now(&self) -> u64 {
        nanoseconds(self.base.elapsed())
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file's name cannot add parameters to the URI.
    #[test]
    fn names_are_escaped() {
        let name = FileName::parse("a?mode=rwc&x#%é.db").unwrap();
        assert_eq!(
            uri(Path::new("/data"), &name),
            "file:/data/a%3Fmode%3Drwc%26x%23%25%C3%A9.db?mode=ro&immutable=1"
        );
    }
}
