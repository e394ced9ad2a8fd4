//! Whose fault a refusal is, by its name. Trino's own text goes into `detail` only.
//!
//! The names are those of Trino's `StandardErrorCode`; one of a catalog's connector (`JDBC_ERROR`, `ICEBERG_…`) is known by its type alone.

use souk_sdk::{Error, HttpResponse};

use crate::answers::{QueryError, malformed};

/// Of a write in a transaction that only reads.
pub const READ_ONLY: &str = "READ_ONLY_VIOLATION";

/// The error that a statement ended with. `catalog`: the connection's. `values`: the caller's, as an error quotes them.
pub fn told(error: QueryError, catalog: &str, values: &[String]) -> Error {
    let blamed = blame(&error, catalog, values);
    let detail = match &error.error_location {
        Some(place) => format!(
            "{} (line {}, column {})",
            error.message, place.line_number, place.column_number
        ),
        None => error.message,
    };
    match error.error_name.as_str() {
        "" => blamed.detail(detail),
        name => blamed.detail(detail).source_code(name),
    }
}

fn blame(error: &QueryError, catalog: &str, values: &[String]) -> Error {
    match error.error_name.as_str() {
        "SYNTAX_ERROR" => Error::source_failed("syntax_error", "Trino cannot read the statement"),
        READ_ONLY => Error::permission(
            "read_only",
            "the statement tries to change what it reads; connections are read-only",
        ),
        "PERMISSION_DENIED" if error.message.contains("system session property") => {
            Error::configuration(
                "session_property_refused",
                "Trino does not let the connection's user set query_max_run_time, which bounds the time of each statement: allow it",
            )
        }
        "PERMISSION_DENIED" => Error::permission(
            "permission_denied",
            "the user may not read what the statement names: Trino's access control has to let it select there",
        ),
        // Trino writes names in small letters.
        "CATALOG_NOT_FOUND"
            if error
                .message
                .to_lowercase()
                .contains(&format!("'{}'", catalog.to_lowercase())) =>
        {
            Error::configuration(
                "unknown_catalog",
                "Trino has no catalog of the name that the connection's database begins with",
            )
        }
        "CATALOG_NOT_FOUND" => Error::not_found(
            "unknown_catalog",
            "the statement names a catalog that does not exist",
        ),
        "SCHEMA_NOT_FOUND" => Error::not_found(
            "unknown_schema",
            "the statement names a schema that does not exist",
        ),
        "MISSING_SCHEMA_NAME" => Error::configuration(
            "missing_schema",
            "the statement names a table without a schema: write schema.table, or catalog.schema as the connection's database",
        ),
        "TABLE_NOT_FOUND" => Error::not_found(
            "unknown_table",
            "the statement names a table that does not exist",
        ),
        "FUNCTION_NOT_FOUND" => Error::not_found(
            "unknown_function",
            "the statement names a function that does not exist, or not for such arguments",
        ),
        "COLUMN_NOT_FOUND" => Error::source_failed(
            "unknown_column",
            "the statement names a column that does not exist",
        ),
        "TYPE_MISMATCH" | "OPERATOR_NOT_FOUND" => Error::source_failed(
            "type_mismatch",
            "the statement compares or computes with types that do not fit: CAST one of them",
        ),
        // Where there is a value it is a number of the caller's: those of the page are none that Trino refuses.
        "INVALID_LIMIT_CLAUSE" if !values.is_empty() => {
            Error::invalid_request("invalid_value", "Trino refused a value")
        }
        // A value that cannot become what it is compared with, or is too large for it: the caller's only if it is named, for what the seller's
        // tables have may be none either. Who divides is the statement, whatever it divides by.
        "INVALID_CAST_ARGUMENT"
        | "INVALID_FUNCTION_ARGUMENT"
        | "INVALID_LITERAL"
        | "DIVISION_BY_ZERO"
        | "NUMERIC_VALUE_OUT_OF_RANGE"
        | "INVALID_LIMIT_CLAUSE" => match names_one(error, values) {
            true => Error::invalid_request("invalid_value", "Trino refused a value"),
            false => Error::source_failed(
                "invalid_value",
                "the statement computes a value that Trino refuses",
            ),
        },
        "EXCEEDED_TIME_LIMIT" => Error::timeout(
            "statement_timeout",
            "the statement runs longer than the connection or Trino allows",
        ),
        "USER_CANCELED"
        | "ADMINISTRATIVELY_KILLED"
        | "ADMINISTRATIVELY_PREEMPTED"
        | "ABANDONED_QUERY" => Error::timeout("cancelled", "the statement was stopped at Trino"),
        "QUERY_QUEUE_FULL" => Error::unavailable(
            "too_many_queries",
            "Trino has as many statements waiting as it takes",
        ),
        "QUERY_REJECTED" => Error::unavailable(
            "query_rejected",
            "Trino takes no statement of this user now",
        ),
        "CLUSTER_OUT_OF_MEMORY" => Error::unavailable(
            "out_of_memory",
            "Trino has no memory left for the statement",
        ),
        "UNKNOWN_TRANSACTION" | "NOT_IN_TRANSACTION" | "TRANSACTION_ALREADY_ABORTED" => {
            Error::unavailable(
                "transaction_lost",
                "the transaction that the statement runs in is gone: do all requests of a connection reach the same coordinator?",
            )
        }
        "INCOMPATIBLE_CLIENT" => Error::configuration(
            "incompatible_client",
            "Trino takes souk for a client that knows no transactions: does a proxy take X-Trino-Transaction-Id from its requests?",
        ),
        "NO_NODES_AVAILABLE"
        | "SERVER_STARTING_UP"
        | "SERVER_SHUTTING_DOWN"
        | "REMOTE_HOST_GONE"
        | "REMOTE_TASK_ERROR"
        | "TOO_MANY_REQUESTS_FAILED"
        | "PAGE_TRANSPORT_ERROR"
        | "PAGE_TRANSPORT_TIMEOUT"
        | "CONFIGURATION_UNAVAILABLE" => {
            Error::unavailable("unavailable", "Trino is not available at the moment")
        }
        _ => match error.error_type.as_str() {
            "INSUFFICIENT_RESOURCES" => Error::limit_exceeded(
                "resources_exceeded",
                "the statement needs more than Trino gives to one statement",
            ),
            "EXTERNAL" => Error::source_failed(
                "external_error",
                "what a catalog of Trino's reads from failed",
            ),
            "INTERNAL_ERROR" => Error::source_failed("internal_error", "Trino failed"),
            _ => Error::source_failed("sql_error", "Trino could not run the statement"),
        },
    }
}

/// `Cannot cast 'x' to BIGINT`, `Value cannot be cast to date: x`.
fn names_one(error: &QueryError, values: &[String]) -> bool {
    let is_named = |value: &String| {
        error.message.contains(&format!("'{value}'"))
            || error.message.ends_with(&format!(": {value}"))
    };
    error.error_name != "DIVISION_BY_ZERO" && values.iter().any(is_named)
}

/// A response that is no answer: of a proxy's, mostly, or of who lets nobody in. `is_first`: nothing was answered before.
pub fn refused(response: HttpResponse, is_first: bool) -> Error {
    let error = match response.status {
        404 | 405 | 410 if is_first => Error::configuration(
            "no_trino",
            "no coordinator of Trino's answers at the connection's address: base_url must name it, without a path that is not a proxy's",
        ),
        400 | 422 => malformed(),
        401 => Error::authentication(
            "credentials_refused",
            "Trino refused the user name, the password or the token",
        ),
        403 => Error::permission(
            "login_refused",
            "Trino does not let this user in: may it ask in that name, and from here?",
        ),
        404 | 410 => Error::unavailable(
            "statement_lost",
            "Trino does not know the statement any more: was the coordinator started anew, and do all requests reach the same one?",
        ),
        status => {
            return match response.classified() {
                Err(error) => error,
                _ => malformed().source_code(status.to_string()),
            };
        }
    };
    let text = String::from_utf8_lossy(&response.body);
    let error = error.source_code(response.status.to_string());
    match text.trim() {
        "" => error,
        text => error.detail(text),
    }
}

pub fn cancelled() -> Error {
    Error::timeout("cancelled", "the statement was cancelled")
}

pub fn endless(answers_max: u32) -> Error {
    Error::limit_exceeded(
        "too_many_pages",
        format!("Trino leads on and on: a statement has more than {answers_max} answers"),
    )
}

pub fn no_transaction() -> Error {
    Error::source_failed(
        "no_transaction",
        "Trino has begun no transaction, without which nothing holds read-only: does a proxy take X-Trino-Started-Transaction-Id from its answers?",
    )
}

pub fn led_away(link: &str) -> Error {
    Error::source_failed(
        "led_away",
        "Trino's answer goes on at another address than the connection's: behind a proxy, set http-server.process-forwarded=true at the coordinator, or name the coordinator's own address",
    )
    .detail(link)
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::ErrorClass;

    fn query_error(name: &str, kind: &str, message: &str) -> QueryError {
        QueryError {
            message: message.into(),
            error_name: name.into(),
            error_type: kind.into(),
            error_location: None,
        }
    }

    #[test]
    fn each_is_blamed_on_who_can_help() {
        for (name, kind, is_named, class, code) in [
            (
                "SYNTAX_ERROR",
                "USER_ERROR",
                true,
                ErrorClass::Source,
                "syntax_error",
            ),
            (
                READ_ONLY,
                "USER_ERROR",
                false,
                ErrorClass::Permission,
                "read_only",
            ),
            (
                "TABLE_NOT_FOUND",
                "USER_ERROR",
                false,
                ErrorClass::NotFound,
                "unknown_table",
            ),
            (
                "INVALID_CAST_ARGUMENT",
                "USER_ERROR",
                true,
                ErrorClass::InvalidRequest,
                "invalid_value",
            ),
            (
                "INVALID_CAST_ARGUMENT",
                "USER_ERROR",
                false,
                ErrorClass::Source,
                "invalid_value",
            ),
            (
                "DIVISION_BY_ZERO",
                "USER_ERROR",
                true,
                ErrorClass::Source,
                "invalid_value",
            ),
            (
                "PERMISSION_DENIED",
                "USER_ERROR",
                false,
                ErrorClass::Permission,
                "permission_denied",
            ),
            (
                "EXCEEDED_TIME_LIMIT",
                "INSUFFICIENT_RESOURCES",
                false,
                ErrorClass::Timeout,
                "statement_timeout",
            ),
            (
                "EXCEEDED_CPU_LIMIT",
                "INSUFFICIENT_RESOURCES",
                false,
                ErrorClass::LimitExceeded,
                "resources_exceeded",
            ),
            (
                "QUERY_QUEUE_FULL",
                "INSUFFICIENT_RESOURCES",
                false,
                ErrorClass::Unavailable,
                "too_many_queries",
            ),
            (
                "SERVER_SHUTTING_DOWN",
                "INTERNAL_ERROR",
                false,
                ErrorClass::Unavailable,
                "unavailable",
            ),
            (
                "GENERIC_INTERNAL_ERROR",
                "INTERNAL_ERROR",
                false,
                ErrorClass::Source,
                "internal_error",
            ),
            (
                "INCOMPATIBLE_CLIENT",
                "USER_ERROR",
                false,
                ErrorClass::Configuration,
                "incompatible_client",
            ),
            (
                "JDBC_ERROR",
                "EXTERNAL",
                false,
                ErrorClass::Source,
                "external_error",
            ),
            (
                "OF_TOMORROW",
                "USER_ERROR",
                false,
                ErrorClass::Source,
                "sql_error",
            ),
            ("", "", false, ErrorClass::Source, "sql_error"),
        ] {
            let value = if is_named { "x" } else { "y" };
            for text in [
                "Cannot cast 'x' to BIGINT",
                "Value cannot be cast to date: x",
            ] {
                let error = query_error(name, kind, text);
                let error = told(error, "lake", &[value.to_owned()]);
                assert_eq!((error.class, error.code.as_str()), (class, code), "{name}");
                assert_eq!(error.detail.as_deref(), Some(text));
            }
        }
    }

    /// What bounds a statement's time is not the statement's to be allowed.
    #[test]
    fn a_property_that_may_not_be_set_is_the_connections() {
        let text = "Access Denied: Cannot set system session property query_max_run_time";
        let error = query_error("PERMISSION_DENIED", "USER_ERROR", text);
        let error = told(error, "lake", &[]);
        assert_eq!(error.class, ErrorClass::Configuration);
        assert_eq!(error.code, "session_property_refused");
    }

    /// A catalog that the connection names is the connection's mistake, another one the statement's.
    #[test]
    fn catalogs_are_told_apart() {
        let class = |message: &str| {
            let error = query_error("CATALOG_NOT_FOUND", "USER_ERROR", message);
            told(error, "Lake", &[]).class
        };
        assert_eq!(
            class("line 1:15: Catalog 'lake' not found"),
            ErrorClass::Configuration
        );
        assert_eq!(
            class("line 1:15: Catalog 'pond' not found"),
            ErrorClass::NotFound
        );
    }
}
