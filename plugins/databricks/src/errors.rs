//! Whose fault a refusal is, by the condition that Databricks' text begins with (`[TABLE_OR_VIEW_NOT_FOUND] …`), else by its SQLSTATE.
//! The text itself goes into `detail` only.

use souk_sdk::{Error, HttpResponse, Limits};

use crate::answers::{Status, Told, malformed, read};
use crate::parameters::Bound;

/// Of a text that Databricks' parser does not take.
pub const SYNTAX: &str = "PARSE_SYNTAX_ERROR";
/// Of a result that is not sent in answers.
const TOO_LARGE: &str = "Inline byte limit exceeded";
/// What is kept of a response that is no answer.
const BODY_BYTES_KEPT: usize = 2_000;
/// Of another column than was described.
const CHANGED: &str = "columns_changed";

/// The main condition of a text: `UNRESOLVED_COLUMN` of `[UNRESOLVED_COLUMN.WITH_SUGGESTION] …`.
pub fn condition(message: &str) -> &str {
    let inside = message.trim_start().strip_prefix('[');
    let condition = inside.and_then(|inside| inside.split(']').next());
    let main = condition.and_then(|condition| condition.split('.').next());
    let is_word = |word: &&str| {
        word.bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    main.filter(is_word).unwrap_or_default()
}

fn sql_state<'a>(status: &'a Status, message: &'a str) -> &'a str {
    let said = message.split("SQLSTATE: ").nth(1);
    let said = said.and_then(|rest| rest.get(..5));
    match status.sql_state.as_str() {
        "" => said.unwrap_or_default(),
        state => state,
    }
}

/// How a statement failed. `catalog`: the connection's; `values`: the caller's.
pub fn told(status: &Status, catalog: &str, values: &[Bound]) -> Error {
    let nothing = Told::default();
    let told = status.error.as_ref().unwrap_or(&nothing);
    let state = sql_state(status, &told.message);
    let error = blame(told, state, catalog, values);
    let condition = condition(&told.message);
    let error = match [condition, state, &told.error_code]
        .into_iter()
        .find(|code| !code.is_empty())
    {
        Some(code) => error.source_code(code),
        None => error,
    };
    match told.message.trim() {
        "" => error,
        text => error.detail(text),
    }
}

fn blame(told: &Told, state: &str, catalog: &str, values: &[Bound]) -> Error {
    let message = &told.message;
    if message.contains(TOO_LARGE) {
        return too_large();
    }
    match condition(message) {
        SYNTAX => Error::source_failed("syntax_error", "Databricks cannot read the statement"),
        "INSUFFICIENT_PERMISSIONS" | "PERMISSION_DENIED" => permission_denied(),
        "NO_SUCH_CATALOG_EXCEPTION" | "CATALOG_NOT_FOUND" => {
            let named = message.to_lowercase();
            let quotes = ['\'', '`', '"'];
            let is_ours = quotes
                .iter()
                .any(|quote| named.contains(&format!("{quote}{}{quote}", catalog.to_lowercase())));
            match is_ours {
                true => Error::configuration(
                    "unknown_catalog",
                    "the workspace has no catalog of the name that the connection's database begins with",
                ),
                false => Error::not_found(
                    "unknown_catalog",
                    "the statement names a catalog that does not exist",
                ),
            }
        }
        "SCHEMA_NOT_FOUND" => Error::not_found(
            "unknown_schema",
            "the statement names a schema that does not exist",
        ),
        "TABLE_OR_VIEW_NOT_FOUND" => Error::not_found(
            "unknown_table",
            "the statement names a table that does not exist, or that the connection may not see",
        ),
        "UNRESOLVED_ROUTINE" => Error::not_found(
            "unknown_function",
            "the statement names a function that does not exist",
        ),
        "UNRESOLVED_COLUMN" | "FIELD_NOT_FOUND" => Error::source_failed(
            "unknown_column",
            "the statement names a column that does not exist",
        ),
        "DATATYPE_MISMATCH" | "UNEXPECTED_INPUT_TYPE" => Error::source_failed(
            "type_mismatch",
            "the statement compares or computes with types that do not fit: CAST one of them",
        ),
        _ => by_state(state, told, values),
    }
}

/// Whether a text names a value: in quotes, or as a number of its first sentence. Else it is a value of a table's.
fn is_named(value: &Bound, message: &str) -> bool {
    let Some(value) = &value.value else {
        return false;
    };
    let quoted = value.replace('\\', "\\\\").replace('\'', "\\'");
    if message.contains(&format!("'{quoted}'")) {
        return true;
    }
    // The one text that stands without quotes.
    if condition(message) == "INVALID_TIMEZONE" {
        return message.contains(&format!(": {value} is invalid"));
    }
    let sentence = message.split(". ").next().unwrap_or_default();
    let is_end = |char: char| !char.is_ascii_alphanumeric() && !".-+".contains(char);
    // A number has letters behind it that say its type: 7L, 1.5BD.
    let mut words = sentence.split(is_end);
    let digits =
        |word: &str| word.trim_end_matches(|char: char| char.is_ascii_uppercase()) == value;
    value.ends_with(|char: char| char.is_ascii_digit()) && words.any(digits)
}

fn by_state(state: &str, told: &Told, values: &[Bound]) -> Error {
    match (state.get(..2).unwrap_or_default(), state) {
        ("22", _) => match values.iter().any(|value| is_named(value, &told.message)) {
            true => Error::invalid_request("invalid_value", "Databricks refused a value"),
            false => Error::source_failed(
                "invalid_value",
                "the statement computes a value that Databricks refuses",
            ),
        },
        (_, "42501") => permission_denied(),
        (_, "57014") => stopped(),
        (_, "57KD0" | "57000") => Error::timeout(
            "statement_timeout",
            "the statement runs longer than the warehouse allows",
        ),
        ("08" | "58", _) => Error::unavailable(
            "unavailable",
            "Databricks could not reach what it reads from",
        ),
        ("53" | "54", _) => Error::limit_exceeded(
            "resources_exceeded",
            "the statement needs more than Databricks gives to one statement",
        ),
        ("42", _) => Error::source_failed("sql_error", "Databricks could not run the statement"),
        _ => match told.error_code.as_str() {
            "CANCELLED" | "ABORTED" => stopped(),
            "DEADLINE_EXCEEDED" => Error::timeout(
                "statement_timeout",
                "the statement runs longer than the warehouse allows",
            ),
            "RESOURCE_EXHAUSTED" => Error::limit_exceeded(
                "resources_exceeded",
                "the statement needs more than Databricks gives to one statement",
            ),
            "TEMPORARILY_UNAVAILABLE"
            | "SERVICE_UNDER_MAINTENANCE"
            | "WORKSPACE_TEMPORARILY_UNAVAILABLE" => unavailable(),
            "UNAUTHENTICATED" => credentials_refused(),
            "INTERNAL_ERROR" | "IO_ERROR" => {
                Error::source_failed("internal_error", "Databricks failed")
            }
            _ => Error::source_failed("sql_error", "Databricks could not run the statement"),
        },
    }
}

/// Whether a response refuses the token that it was asked with: Databricks says so with 401, and of one that it does not know any more with 403.
pub fn is_of_token(response: &HttpResponse) -> bool {
    match response.status {
        401 => true,
        403 => {
            let told: Told = read(response).unwrap_or_default();
            told.message.to_lowercase().contains("token")
        }
        _ => false,
    }
}

/// Whether a response refuses the address that it was asked from, whoever asks.
fn is_of_address(response: &HttpResponse) -> bool {
    let kept = response.body.len().min(BODY_BYTES_KEPT);
    let text = String::from_utf8_lossy(&response.body[..kept]).to_lowercase();
    let says = |words: &str| text.contains(words);
    response.status == 403 && (says("ip acl") || says("unauthorized network access"))
}

/// A response that is no answer. `is_first`: no statement was begun before.
pub fn refused(response: HttpResponse, is_first: bool) -> Error {
    if is_of_address(&response) {
        return with_body(address_refused(), &response);
    }
    if is_of_token(&response) {
        return with_body(credentials_refused(), &response);
    }
    let told: Told = read(&response).unwrap_or_default();
    let message = told.message.to_lowercase();
    let of_warehouse = message.contains("warehouse") || message.contains("endpoint");
    let error = match (response.status, told.error_code.as_str()) {
        (403, _) => Error::permission(
            "warehouse_refused",
            "Databricks does not let this user in: it needs the permission \"Can use\" of the SQL warehouse, which has to be the one that the connection names, and the entitlement \"Databricks SQL access\"",
        ),
        (404, "" | "ENDPOINT_NOT_FOUND") if is_first => Error::configuration(
            "no_databricks",
            "no workspace of Databricks' answers at the connection's address: base_url must name it, without a path",
        ),
        (400 | 404, _) if is_first && of_warehouse => unknown_warehouse(),
        (404, _) if is_first => unknown_warehouse(),
        (404 | 410, _) => Error::unavailable(
            "statement_lost",
            "Databricks does not know the statement any more",
        ),
        (400 | 422, _) => {
            Error::source_failed("bad_request", "Databricks does not take the statement")
        }
        (503, _) => {
            let error = unavailable();
            match response.retry_after_ms() {
                Some(ms) => error.retry_after_ms(ms),
                None => error,
            }
        }
        (status, _) => {
            return match response.classified() {
                Err(error) => error,
                Ok(_) => malformed().source_code(status.to_string()),
            };
        }
    };
    with_body(error, &response)
}

/// The workspace grants a service principal no token.
pub fn principal_refused(response: HttpResponse) -> Error {
    match response.status {
        403 if is_of_address(&response) => with_body(address_refused(), &response),
        400 | 401 | 403 | 422 => with_body(
            Error::authentication(
                "credentials_refused",
                "Databricks refused the id or the secret of the service principal",
            ),
            &response,
        ),
        404 | 405 => with_body(
            Error::configuration(
                "no_databricks",
                "no workspace of Databricks' answers at the connection's address: base_url must name it, without a path",
            ),
            &response,
        ),
        status => match response.classified() {
            Err(error) => error,
            Ok(_) => malformed().source_code(status.to_string()),
        },
    }
}

fn with_body(error: Error, response: &HttpResponse) -> Error {
    let error = error.source_code(response.status.to_string());
    let kept = response.body.len().min(BODY_BYTES_KEPT);
    match String::from_utf8_lossy(&response.body[..kept]).trim() {
        "" => error,
        text => error.detail(text),
    }
}

fn credentials_refused() -> Error {
    Error::authentication(
        "credentials_refused",
        "Databricks refused the token: it may have been revoked, or its time is over",
    )
}

fn address_refused() -> Error {
    Error::configuration(
        "address_refused",
        "Databricks does not let this service's address in: add it to the IP access list of the workspace, and of the account",
    )
}

fn permission_denied() -> Error {
    Error::permission(
        "permission_denied",
        "the connection's user may not read what the statement names: it needs USE CATALOG, USE SCHEMA and SELECT",
    )
}

fn unknown_warehouse() -> Error {
    Error::configuration(
        "unknown_warehouse",
        "Databricks does not take the connection's warehouse_id: is there such a SQL warehouse?",
    )
}

fn unavailable() -> Error {
    Error::unavailable("unavailable", "Databricks is not available at the moment")
}

pub fn cancelled() -> Error {
    Error::timeout("cancelled", "the statement was cancelled")
}

/// By somebody else.
pub fn stopped() -> Error {
    Error::timeout("cancelled", "the statement was stopped at Databricks")
}

/// The time is over of a statement that Databricks has not begun.
pub fn not_begun() -> Error {
    Error::timeout(
        "statement_timeout",
        "the statement had not begun when its time was over: the SQL warehouse has to start, or has others before it; start it, or ask again when it runs",
    )
}

pub fn out_of_time() -> Error {
    Error::timeout(
        "statement_timeout",
        "the statement runs longer than the connection allows",
    )
}

/// Rows were left out of a result of so many rows, if that is known.
pub fn truncated(rows: Option<u64>, limits: &Limits) -> Error {
    match rows.is_some_and(|rows| rows > u64::from(limits.rows_max)) {
        true => Error::too_many_rows(limits.rows_max),
        false => too_large(),
    }
}

/// Not all rows came.
pub fn rows_missing() -> Error {
    Error::source_failed(
        "rows_missing",
        "Databricks has sent fewer or more rows than it says the result has",
    )
}

fn too_large() -> Error {
    Error::limit_exceeded(
        "result_too_large",
        "the result is larger than the 25 MiB that Databricks sends in its answers",
    )
}

/// Whether a statement has another number of columns than names were given to.
pub fn counts_columns(status: &Status) -> bool {
    let message = status.error.as_ref().map(|error| error.message.as_str());
    condition(message.unwrap_or_default()) == "ASSIGNMENT_ARITY_MISMATCH"
}

pub fn columns_changed() -> Error {
    Error::unavailable(
        CHANGED,
        "the columns of what the statement reads have changed a moment ago: ask again",
    )
}

pub fn is_of_changed_columns(error: &Error) -> bool {
    error.code == CHANGED
}

#[cfg(test)]
mod tests;
