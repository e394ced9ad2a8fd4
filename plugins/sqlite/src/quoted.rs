//! Names in double quotes that no column has. SQLite takes them for texts, and logs that it does: a column that is misspelt, or gone, would have its
//! own name in each row, and rows would be sorted and filtered by that. In a view of somebody else's they stay what they were.
#![allow(unsafe_code)]

use rusqlite::ffi;
use souk_sdk::Error;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Once;

/// What SQLite writes before such a name.
const LOGGED: &str = "double-quoted string literal: \"";
/// Of one statement; a view may have many.
const TEXTS_MAX: usize = 1_000;

thread_local! {
    /// What was taken for a text since [`forget`], as a statement has it: in quotes, those of its own doubled. A long one is cut, with its last quote.
    static TEXTS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Listens to SQLite. It takes that only before anything else is asked of it.
pub fn listen() {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| {
        let log = logged as unsafe extern "C" fn(*mut c_void, c_int, *const c_char);
        // SAFETY: these are what the option takes. Where SQLite is in use already, it refuses, and changes nothing.
        unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_LOG, log, null_mut::<c_void>()) };
    });
}

unsafe extern "C" fn logged(_: *mut c_void, _: c_int, message: *const c_char) {
    if message.is_null() {
        return;
    }
    // SAFETY: SQLite gives a text that ends, and stays until this returns.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    let Some(name) = message.strip_prefix(LOGGED) else {
        return;
    };
    // Nobody calls a column nothing.
    if name == "\"" {
        return;
    }
    TEXTS.with_borrow_mut(|texts| {
        if texts.len() < TEXTS_MAX {
            texts.push(format!("\"{name}"));
        }
    });
}

/// Before a statement is prepared.
pub fn forget() {
    TEXTS.with_borrow_mut(Vec::clear);
}

/// Whether a name of this statement's own was taken for a text.
pub fn check(statement: &str) -> Result<(), Error> {
    let own = TEXTS.with_borrow(|texts| {
        let mut texts = texts.iter();
        texts
            .find(|name| statement.contains(name.as_str()))
            .cloned()
    });
    match own {
        None => Ok(()),
        Some(name) => Err(Error::not_found(
            "column_not_found",
            "the statement names a column that does not exist",
        )
        .detail(format!(
            "no such column: {name} - should this be a string literal in single-quotes?"
        ))
        .source_code("SQLITE_ERROR")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(names: &[&str], statement: &str) -> Option<String> {
        forget();
        let names = names.iter().map(|name| format!("\"{name}\""));
        TEXTS.with_borrow_mut(|texts| texts.extend(names));
        check(statement).err().and_then(|error| error.detail)
    }

    /// What only a view says is the view's.
    #[test]
    fn a_statement_has_names_of_its_own() {
        assert_eq!(taken(&[], r#"SELECT "a" FROM t"#), None);
        let of_view = taken(
            &[" ", "few", "Y"],
            "SELECT size FROM v WHERE size = 'few' ORDER BY Y",
        );
        assert_eq!(of_view, None);
        let told = taken(&["few", "sizes"], r#"SELECT size FROM v ORDER BY "sizes""#);
        assert!(told.unwrap().starts_with("no such column: \"sizes\""));
        let told = taken(&[r#"b ""d"#], r#"SELECT "b ""d" FROM t"#);
        assert!(told.is_some());
    }
}
