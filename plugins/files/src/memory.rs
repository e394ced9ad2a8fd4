//! What a session holds of the memory that its component has. DataFusion counts what it sorts, groups and joins; what its functions keep, and
//! what tables are known by, is seen here, before the component outgrows its memory and is ended by the host.

use crate::errors;
use souk_sdk::Error;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The 512 MiB that a host gives, without what code, stack and the gaps between what is allocated take.
const BYTES_MAX: usize = 460 << 20;
/// What the footers, names and types of all tables of a session may take.
const TABLES_BYTES_MAX: usize = 128 << 20;

static COUNT: OnceLock<fn() -> usize> = OnceLock::new();

/// Who counts what is allocated where nothing does: for tests on the machine itself. Without it nothing is refused there.
pub fn count_with(count: fn() -> usize) {
    COUNT.get_or_init(|| count);
}

#[cfg(target_family = "wasm")]
fn held() -> usize {
    crate::allocated::held()
}

#[cfg(not(target_family = "wasm"))]
fn held() -> usize {
    COUNT.get().map_or(0, |count| count())
}

/// Of one session, which is alone in its component.
#[derive(Debug)]
pub struct Memory {
    /// What was held before the session.
    begun: usize,
    /// What its tables are known by.
    tables: AtomicUsize,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            begun: held(),
            tables: AtomicUsize::new(0),
        }
    }
}

impl Memory {
    /// Opens a table and counts what it is then known by.
    pub fn table<T>(&self, open: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let before = held();
        let opened = open()?;
        let grown = held().saturating_sub(before);
        let tables = self.tables.load(Ordering::Relaxed) + grown;
        if tables > TABLES_BYTES_MAX {
            return Err(tables_too_large());
        }
        self.tables.store(tables, Ordering::Relaxed);
        Ok(opened)
    }

    /// Whether a statement may go on that has `counted` by others' counts. What nobody counts may be one text, which is copied into twice the
    /// room when it grows, beside the holes that its smaller copies have left.
    pub fn check(&self, counted: usize) -> Result<(), Error> {
        let held = held().saturating_sub(self.begun);
        let known = counted + self.tables.load(Ordering::Relaxed);
        match held + 3 * held.saturating_sub(known) > BYTES_MAX {
            true => Err(errors::out_of_memory()),
            false => Ok(()),
        }
    }
}

fn tables_too_large() -> Error {
    Error::configuration(
        "tables_too_large",
        "what the files say of their columns takes more than 128 MiB of memory: write fewer columns, larger row groups, or fewer files into \
         one archive",
    )
}
