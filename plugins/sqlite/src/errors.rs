//! SQLite's errors as errors of the contract.

use rusqlite::ffi;
use souk_sdk::Error;

/// How SQLite begins what it says, where a statement runs, of a value that it cannot use. What is wrong with the statement itself it has said when that
/// was prepared; what a file may hold as well (a text that is no JSON, numbers whose sum is too large) is not among it.
const OF_VALUES: [&str; 15] = [
    // Searches. A word before a colon is a column of the search, and so is one behind a minus.
    "fts5: ",
    "fts5 expression tree is too large",
    "FTS expression tree is too large",
    "malformed MATCH expression: ",
    "unterminated string",
    "unknown special query: ",
    "expected integer, got ",
    "no such column: ",
    // Paths and patterns.
    "bad JSON path: ",
    "LIKE or GLOB pattern too complex",
    "ESCAPE expression must be ",
    // Places and numbers of rows.
    "argument of ntile must be ",
    "second argument to nth_value must be ",
    "frame starting offset must be ",
    "frame ending offset must be ",
];

/// An error of rusqlite's, met while the file is opened or its catalog is read: nothing of it is a caller's.
pub fn of_statement(error: rusqlite::Error) -> Error {
    let (code, text) = match &error {
        rusqlite::Error::SqliteFailure(code, text) => {
            (code.extended_code, text.clone().unwrap_or_default())
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => (error.extended_code, msg.clone()),
        _ => {
            return Error::internal("sqlite_client", "the connector could not use SQLite")
                .detail(error.to_string());
        }
    };
    of_code(code, &text, false)
}

/// SQLite's extended code, and what it says. `is_bound`: the statement had values, and one of them may be what SQLite refuses.
pub fn of_code(code: i32, text: &str, is_bound: bool) -> Error {
    let error = classify(code, text, is_bound);
    error.detail(text).source_code(name(code))
}

#[cold]
pub fn out_of_memory() -> Error {
    Error::limit_exceeded(
        "out_of_memory",
        "the statement needs more memory than a session has",
    )
}

fn classify(code: i32, text: &str, is_bound: bool) -> Error {
    match code & 0xff {
        ffi::SQLITE_INTERRUPT => {
            Error::timeout("statement_timeout", "the statement did not finish in time")
        }
        ffi::SQLITE_AUTH | ffi::SQLITE_READONLY | ffi::SQLITE_PERM => Error::permission(
            "statement_refused",
            "the statement does something other than read",
        ),
        ffi::SQLITE_NOMEM => out_of_memory(),
        ffi::SQLITE_TOOBIG => {
            Error::limit_exceeded("value_too_long", "a value is longer than the limit allows")
        }
        ffi::SQLITE_NOTADB => {
            Error::configuration("not_a_database", "the file is not an SQLite database")
        }
        ffi::SQLITE_CORRUPT => Error::source_failed(
            "database_corrupt",
            "the database file is damaged, or was changed while it was open",
        ),
        ffi::SQLITE_CANTOPEN => Error::configuration(
            "database_not_found",
            "there is no such database file in the company's directory",
        ),
        ffi::SQLITE_IOERR | ffi::SQLITE_PROTOCOL => {
            Error::unavailable("read_failed", "the database file cannot be read")
        }
        ffi::SQLITE_MISMATCH if is_bound => Error::invalid_request(
            "value_mismatch",
            "a value has a type that the statement cannot use",
        ),
        ffi::SQLITE_MISMATCH => Error::source_failed(
            "value_mismatch",
            "the statement makes a value of a type that it cannot use",
        ),
        ffi::SQLITE_ERROR if is_bound && OF_VALUES.iter().any(|said| text.starts_with(said)) => {
            Error::invalid_request("invalid_value", "the database refused a value")
        }
        ffi::SQLITE_ERROR if text.starts_with("no such table") => Error::not_found(
            "table_not_found",
            "the statement names a table that does not exist",
        ),
        ffi::SQLITE_ERROR if text.starts_with("no such column") => Error::not_found(
            "column_not_found",
            "the statement names a column that does not exist",
        ),
        ffi::SQLITE_ERROR if text.starts_with("no such function") => Error::not_found(
            "function_not_found",
            "the statement names a function that does not exist",
        ),
        // The authorizer's refusal of a function comes as a plain error.
        ffi::SQLITE_ERROR if text.starts_with("not authorized") => Error::permission(
            "statement_refused",
            "the statement does something other than read",
        ),
        ffi::SQLITE_ERROR if text.contains("syntax error") || text.contains("incomplete input") => {
            Error::source_failed("syntax_error", "the statement is not valid SQL for SQLite")
        }
        _ => Error::source_failed("statement_failed", "the statement failed"),
    }
}

/// `SQLITE_ERROR`, or `SQLITE_IOERR (266)` where the extended code says more.
fn name(extended: i32) -> String {
    const NAMES: [&str; 27] = [
        "OK",
        "ERROR",
        "INTERNAL",
        "PERM",
        "ABORT",
        "BUSY",
        "LOCKED",
        "NOMEM",
        "READONLY",
        "INTERRUPT",
        "IOERR",
        "CORRUPT",
        "NOTFOUND",
        "FULL",
        "CANTOPEN",
        "PROTOCOL",
        "EMPTY",
        "SCHEMA",
        "TOOBIG",
        "CONSTRAINT",
        "MISMATCH",
        "MISUSE",
        "NOLFS",
        "AUTH",
        "FORMAT",
        "RANGE",
        "NOTADB",
    ];
    let primary = extended & 0xff;
    match usize::try_from(primary).ok().and_then(|at| NAMES.get(at)) {
        Some(name) if primary == extended => format!("SQLITE_{name}"),
        Some(name) => format!("SQLITE_{name} ({extended})"),
        None => extended.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_sqlites_own_names() {
        assert_eq!(name(ffi::SQLITE_AUTH), "SQLITE_AUTH");
        assert_eq!(name(ffi::SQLITE_IOERR_READ), "SQLITE_IOERR (266)");
        assert_eq!(name(999_000_100), "999000100");
    }
}
