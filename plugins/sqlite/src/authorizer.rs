//! What statements may do: read. While one is prepared, SQLite asks of each thing that it would do whether it may, with names as they stand in the file.
//! Those need not be text, where a program wrote them in a code page or somebody means harm: rusqlite's own authorizer panics then.
#![allow(unsafe_code)]

use rusqlite::{Connection, ffi};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

/// From now on everything but reading is refused, whatever a statement's text looks like.
pub fn judge(connection: &Connection) -> rusqlite::Result<()> {
    // SAFETY: the connection is open, and `answer` needs nothing that could end before it does.
    let code =
        unsafe { ffi::sqlite3_set_authorizer(connection.handle(), Some(answer), null_mut()) };
    match code {
        ffi::SQLITE_OK => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)),
    }
}

unsafe extern "C" fn answer(
    _: *mut c_void,
    action: c_int,
    first: *const c_char,
    second: *const c_char,
    _database: *const c_char,
    _accessor: *const c_char,
) -> c_int {
    let name = |text: *const c_char| {
        // SAFETY: a null pointer, or a text with its end that stays while SQLite waits.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
    };
    match is_allowed(action, name(first), name(second)) {
        true => ffi::SQLITE_OK,
        false => ffi::SQLITE_DENY,
    }
}

fn is_allowed(action: c_int, first: Option<&[u8]>, second: Option<&[u8]>) -> bool {
    match (action, first, second) {
        (ffi::SQLITE_SELECT | ffi::SQLITE_READ | ffi::SQLITE_RECURSIVE, ..) => true,
        // An R-Tree prepares what it would write with as soon as it is read. It cannot: the file is opened to be read, and `defensive`
        // keeps statements of others from its tables.
        (ffi::SQLITE_INSERT | ffi::SQLITE_UPDATE | ffi::SQLITE_DELETE, Some(table), _) => {
            is_of_rtree(table)
        }
        (ffi::SQLITE_FUNCTION, _, Some(function)) => {
            !function.eq_ignore_ascii_case(b"load_extension")
        }
        (ffi::SQLITE_PRAGMA, Some(pragma), value) => may_ask(pragma, value.is_some()),
        _ => false,
    }
}

fn is_of_rtree(table: &[u8]) -> bool {
    ["_node", "_rowid", "_parent"]
        .iter()
        .any(|end| table.ends_with(end.as_bytes()))
}

/// PRAGMAs that only answer: those whose argument names a table, and those without an argument.
fn may_ask(pragma: &[u8], has_value: bool) -> bool {
    const OF_A_TABLE: &[&str] = &[
        "table_info",
        "table_xinfo",
        "table_list",
        "index_list",
        "index_info",
        "index_xinfo",
        "foreign_key_list",
    ];
    // Full-text search asks for data_version by itself.
    const PLAIN: &[&str] = &[
        "data_version",
        "encoding",
        "user_version",
        "schema_version",
        "application_id",
        "page_count",
        "page_size",
        "collation_list",
        "function_list",
        "compile_options",
    ];
    let is_it = |name: &&str| pragma.eq_ignore_ascii_case(name.as_bytes());
    OF_A_TABLE.iter().any(is_it) || (!has_value && PLAIN.iter().any(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_asking_pragmas_are_allowed() {
        assert!(may_ask(b"TABLE_INFO", true));
        assert!(may_ask(b"user_version", false));
        for pragma in ["user_version", "encoding", "data_version"] {
            assert!(!may_ask(pragma.as_bytes(), true), "{pragma}");
        }
        for pragma in [
            "query_only",
            "writable_schema",
            "journal_mode",
            "cache_size",
            "temp_store_directory",
            "hard_heap_limit",
        ] {
            assert!(!may_ask(pragma.as_bytes(), false), "{pragma}");
        }
    }

    /// Names are bytes, and no name makes a write of something that reads, or the other way around.
    #[test]
    fn names_need_not_be_text() {
        let name = Some(&b"gro\xdfe"[..]);
        assert!(is_allowed(ffi::SQLITE_READ, name, name));
        for action in [
            ffi::SQLITE_INSERT,
            ffi::SQLITE_UPDATE,
            ffi::SQLITE_DELETE,
            ffi::SQLITE_PRAGMA,
            ffi::SQLITE_ATTACH,
            ffi::SQLITE_DROP_TABLE,
        ] {
            assert!(!is_allowed(action, name, name), "{action}");
        }
        assert!(is_allowed(ffi::SQLITE_FUNCTION, None, name));
        let loads = Some(&b"LOAD_extension"[..]);
        assert!(!is_allowed(ffi::SQLITE_FUNCTION, None, loads));
    }
}
