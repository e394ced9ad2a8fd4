//! Whose fault a refusal is. A server of Quack says it in DuckDB's own words and nothing else, so that it is known by these; they go into `detail`
//! as they are.

use serde::Deserialize;
use souk_sdk::{Error, ErrorClass, HttpResponse};

/// Where DuckDB begins to show the statement.
const SHOWN: &str = "\n\nLINE ";
/// Of what a server throws instead of answering it.
const THROWN: &str = "exception_what";

/// Of a statement on a connection that the server does not know.
const UNKNOWN: &str = "Invalid connection id";
/// Of a transaction that is none any more. It is the first thing that a message ends, and what stands behind it is not run then.
const ENDED: &str = "cannot rollback";

/// What DuckDB's words begin with and have in them, and what that is: the first that fits. They begin in ways that no value stands in: what
/// a caller or a row says decides nothing.
type Refusal = (
    &'static [&'static str],
    &'static str,
    ErrorClass,
    &'static str,
    &'static str,
);

/// Of whoever wants to be let in.
const GREETINGS: &[Refusal] = &[
    (
        &["Authentication failed"],
        "",
        ErrorClass::Authentication,
        "credentials_refused",
        "the server refused the token",
    ),
    (
        &["Unsupported Quack version"],
        "",
        ErrorClass::Configuration,
        "other_version",
        "the server speaks another version of Quack than 1, which is DuckDB 1.5's",
    ),
];

/// Of a statement.
const REFUSALS: &[Refusal] = {
    use ErrorClass::{
        Configuration, LimitExceeded, NotFound, Permission, Source, Timeout, Unavailable,
    };
    &[
        (
            &["Authorization failed"],
            "",
            Permission,
            "authorization_refused",
            "the server's authorization function refuses the statement",
        ),
        (
            &[UNKNOWN],
            "",
            Unavailable,
            "connection_lost",
            "the server does not know the connection any more: was it started anew, and do all requests reach the same one?",
        ),
        (
            &["Database was closed"],
            "",
            Unavailable,
            "unavailable",
            "the server has closed its database",
        ),
        (
            &["Cannot write to database ", "Cannot execute statement "],
            "in read-only mode",
            Permission,
            "read_only",
            "the statement tries to change what it reads; connections are read-only",
        ),
        (
            &["SET schema: No catalog"],
            "",
            Configuration,
            "unknown_database",
            "DuckDB has no database or schema of the name that the connection has as its database",
        ),
        (
            &["syntax error at or near"],
            "",
            Source,
            "syntax_error",
            "DuckDB cannot read the statement",
        ),
        (
            &[
                "Cannot access ",
                "File system ",
                "Loading external extensions ",
            ],
            "disabled ",
            Permission,
            "access_disabled",
            "the server does not read files or other servers",
        ),
        (
            &[
                "Scalar Function with name ",
                "Aggregate Function with name ",
                "Table Function with name ",
                "Macro Function with name ",
                "Table Macro Function with name ",
                "Function with name ",
            ],
            "",
            NotFound,
            "unknown_function",
            "the statement names a function that does not exist",
        ),
        (
            &["Table with name "],
            "because schema ",
            NotFound,
            "unknown_schema",
            "the statement names a schema that does not exist",
        ),
        (
            &["Table with name "],
            "",
            NotFound,
            "unknown_table",
            "the statement names a table that does not exist",
        ),
        (
            &["Catalog \""],
            "",
            NotFound,
            "unknown_database",
            "the statement names a database that does not exist",
        ),
        (
            &["Referenced table "],
            "",
            Source,
            "unknown_table",
            "the statement names a table that it does not read",
        ),
        (
            &["Referenced column "],
            "",
            Source,
            "unknown_column",
            "the statement names a column that does not exist",
        ),
        (
            &["Table \"", "Values list \"", "Binding with name \""],
            "does not have a column named",
            Source,
            "unknown_column",
            "the statement names a column that does not exist",
        ),
        (
            &[
                "No function matches",
                "Could not choose a best candidate function",
            ],
            "",
            Source,
            "type_mismatch",
            "the statement computes with types that do not fit: CAST one of them",
        ),
        (
            &["Cannot compare values of type", "Cannot mix values of type"],
            "",
            Source,
            "type_mismatch",
            "the statement compares types that do not fit: CAST one of them",
        ),
        (
            &["Interrupted!"],
            "",
            Timeout,
            "cancelled",
            "the statement was stopped at DuckDB",
        ),
        (
            &[
                "Out of Memory",
                "failed to allocate data of size ",
                "could not allocate block of size ",
                "failed to offload data block of size ",
                "failed to pin block of size ",
            ],
            "",
            LimitExceeded,
            "resources_exceeded",
            "the statement needs more memory than DuckDB has",
        ),
    ]
};

/// What DuckDB says of a value that is none of the type it is to be, or too large for it.
const OF_VALUES: &[&str] = &[
    "Could not convert",
    "Could not cast",
    "can't be cast",
    "out of range",
    "field format",
    "Overflow",
    "cannot be negative",
    "Malformed JSON",
    "invalid input",
    "Invalid",
    "Could not parse string",
    "Unknown TimeZone",
    "not recognized",
];

/// What it says of a number begins so, which it does not quote.
const OF_NUMBERS: &[&str] = &["Overflow in ", "Could not cast value ", "Type "];
/// Of a page that is counted from before its beginning, of which it names no number.
const OF_LIMITS: &str = "LIMIT/OFFSET cannot be negative";

/// The error of a server that lets nobody in.
pub fn unwelcome(message: &str) -> Error {
    let error = known(GREETINGS, message)
        .unwrap_or_else(|| Error::source_failed("server_failed", "the server opens no connection"));
    error.detail(message)
}

/// Whether a message to a connection that was handed on has done nothing: the server was started anew, say. A statement could fail in these words
/// (`error('…')`), and is run once more then.
pub fn is_undone(message: &str) -> bool {
    message.starts_with(UNKNOWN) || message.starts_with(ENDED)
}

/// The error that a statement ended with. `values`: the caller's, as an error quotes them.
pub fn told(message: &str, values: &[String]) -> Error {
    // The statement that is shown has the caller's values in it, whatever the error is about.
    let said = message.split(SHOWN).next().unwrap_or_default();
    let error = match known(REFUSALS, said) {
        Some(error) => error,
        None if OF_VALUES.iter().any(|words| said.contains(words)) => of_a_value(said, values),
        None => Error::source_failed("sql_error", "DuckDB could not run the statement"),
    };
    error.detail(message)
}

fn known(refusals: &[Refusal], said: &str) -> Option<Error> {
    let fits = |(begins, has, ..): &&Refusal| {
        begins.iter().any(|words| said.starts_with(words)) && said.contains(has)
    };
    let (.., class, code, text) = refusals.iter().find(fits)?;
    Some(Error::new(*class, *code, *text))
}

/// A value that cannot become what it is compared with is the caller's only if it is named: what the seller's tables have may be none either.
fn of_a_value(said: &str, values: &[String]) -> Error {
    let is_named = |value: &String| {
        said.contains(&format!("'{value}'"))
            || said.contains(&format!("\"{value}\""))
            || has_number(said, value)
            || (said.starts_with(OF_LIMITS) && value.parse().is_ok_and(|number: i64| number < 0))
    };
    match values.iter().any(is_named) {
        true => Error::invalid_request("invalid_value", "DuckDB refused a value"),
        false => Error::source_failed(
            "invalid_value",
            "the statement computes a value that DuckDB refuses",
        ),
    }
}

/// Whether DuckDB speaks of this number: `(9223372036854775807 + 1)`, `with value 300 can't be cast`. Where something is quoted it is a text that it speaks of,
/// with whatever numbers in it.
fn has_number(said: &str, value: &str) -> bool {
    // Not any apostrophe: one is in "can't".
    if said.contains(" '") || !OF_NUMBERS.iter().any(|words| said.starts_with(words)) {
        return false;
    }
    // Digits of a double are written in several ways.
    let double = match value.contains(['.', 'e']) {
        true => value.parse::<f64>().ok(),
        false => None,
    };
    let is_it =
        |word: &str| word == value || (double.is_some() && word.parse::<f64>().ok() == double);
    said.split([' ', '(', ')']).any(is_it)
}

/// What a server throws.
#[derive(Deserialize)]
struct Thrown {
    exception_type: String,
    exception_message: String,
}

/// A response that is no message: of a proxy's, mostly, or of a server that has thrown something.
pub fn refused(response: &HttpResponse) -> Error {
    let thrown = response.header(THROWN);
    if let Some(thrown) = thrown.and_then(|text| serde_json::from_str::<Thrown>(text).ok()) {
        let error = match thrown.exception_type.as_str() {
            "Invalid Configuration" => Error::configuration(
                "server_misconfigured",
                "the server is not set up to be asked: LOAD httpfs before quack_serve",
            ),
            "Serialization" => Error::internal(
                "message_refused",
                "the server could not read what it was asked",
            ),
            _ => Error::source_failed("server_failed", "DuckDB failed"),
        };
        return error
            .detail(thrown.exception_message)
            .source_code(thrown.exception_type);
    }
    let error = match response.status {
        404 | 405 | 410 => Error::configuration(
            "no_quack",
            "no server of Quack answers at the connection's address: base_url must name it, and a proxy must hand /quack on",
        )
        .source_code(response.status.to_string()),
        // Nobody who calls has sent anything wrong.
        400 | 422 => malformed().source_code(response.status.to_string()),
        _ => match response.clone().classified() {
            Err(error) => error,
            Ok(response) => malformed().source_code(response.status.to_string()),
        },
    };
    let text = String::from_utf8_lossy(&response.body[..response.body.len().min(500)]);
    match text.trim() {
        "" => error,
        text => error.detail(text),
    }
}

#[cold]
pub fn malformed() -> Error {
    Error::source_failed(
        "malformed_answer",
        "the server's answer is not what DuckDB's Quack sends",
    )
}

pub fn rows_lost() -> Error {
    Error::new(
        ErrorClass::Unavailable,
        "rows_lost",
        "the server goes on with other rows than those that come next: a part of the result was lost on its way",
    )
}

pub fn other_version() -> Error {
    Error::configuration(
        "other_version",
        "the server speaks another version of Quack than 1, which is DuckDB 1.5's",
    )
}

pub fn no_json() -> Error {
    Error::configuration(
        "json_missing",
        "the server has no json_serialize_sql, by which a statement is read before it is run: LOAD json at the server",
    )
}

pub fn cancelled() -> Error {
    Error::timeout("cancelled", "the statement was cancelled")
}

pub fn too_slow() -> Error {
    Error::timeout(
        "statement_timeout",
        "the statement runs longer than the connection allows",
    )
}

pub fn endless(answers_max: u32) -> Error {
    Error::limit_exceeded(
        "too_many_pages",
        format!("the server sends rows on and on: a statement has more than {answers_max} answers"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As DuckDB 1.5.5 says them.
    #[test]
    fn each_is_blamed_on_who_can_help() {
        use ErrorClass::{InvalidRequest, NotFound, Permission, Source, Unavailable};
        let line = "\n\nLINE 1: select 'x'\n               ^";
        for (message, class, code) in [
            (
                "Table with name nope does not exist!\nDid you mean \"pg_enum\"?",
                NotFound,
                "unknown_table",
            ),
            (
                "Table with name \"nosuch.tt\" does not exist because schema \"nosuch\" does not exist.",
                NotFound,
                "unknown_schema",
            ),
            (
                "Catalog \"a\" does not exist!",
                NotFound,
                "unknown_database",
            ),
            (
                "Scalar Function with name absentfn does not exist!",
                NotFound,
                "unknown_function",
            ),
            (
                "Referenced column \"absent\" not found in FROM clause!",
                Source,
                "unknown_column",
            ),
            ("syntax error at or near \"selec\"", Source, "syntax_error"),
            (
                "Cannot write to database \"memory\" - transaction is launched in read-only mode",
                Permission,
                "read_only",
            ),
            (
                "Could not convert string 'x' to INT32",
                InvalidRequest,
                "invalid_value",
            ),
            (
                "Could not convert string 'y' to INT32",
                Source,
                "invalid_value",
            ),
            (
                "invalid date field format: \"x\", expected format is (YYYY-MM-DD)",
                InvalidRequest,
                "invalid_value",
            ),
            (
                "Overflow in addition of INT64 (9223372036854775807 + 1)!",
                Source,
                "invalid_value",
            ),
            ("Invalid connection id", Unavailable, "connection_lost"),
            (
                "Cannot access file \"/a\" - file system operations are disabled by configuration",
                Permission,
                "access_disabled",
            ),
            (
                "Values list \"v\" does not have a column named \"q\"",
                Source,
                "unknown_column",
            ),
            ("boo", Source, "sql_error"),
            (
                "extract specifier \"x\" not recognized",
                InvalidRequest,
                "invalid_value",
            ),
            (
                "Unknown TimeZone 'x'!\n\nCandidate time zones: \"Asia/Tokyo\"",
                InvalidRequest,
                "invalid_value",
            ),
            (
                "Overflow in multiplication of INT64 (9223372036854775807 * 300)!",
                InvalidRequest,
                "invalid_value",
            ),
            (
                "Type INT64 with value 300 can't be cast because the value is out of range for the destination type INT8",
                InvalidRequest,
                "invalid_value",
            ),
            (
                "Type DOUBLE with value 1e+300 can't be cast because the value is out of range for the destination type INT32",
                InvalidRequest,
                "invalid_value",
            ),
            (
                "Could not cast value 12345.500000 to DECIMAL(4,2)",
                InvalidRequest,
                "invalid_value",
            ),
            (
                "Type INT64 with value 3000 can't be cast because the value is out of range for the destination type INT8",
                Source,
                "invalid_value",
            ),
            (
                "Type VARCHAR with value 'of 300 rows' can't be cast to the destination type STRUCT(a INTEGER)",
                Source,
                "invalid_value",
            ),
            (
                "Could not convert string 'of 300 rows' to INT32",
                Source,
                "invalid_value",
            ),
            ("LIMIT/OFFSET cannot be negative", Source, "invalid_value"),
        ] {
            let message = format!("{message}{line}");
            let values = ["x", "300", "1e300", "12345.5"].map(str::to_owned);
            let error = told(&message, &values);
            assert_eq!(
                (error.class, error.code.as_str()),
                (class, code),
                "{message}"
            );
            assert_eq!(error.detail.as_deref(), Some(message.as_str()));
        }
        let error = told("LIMIT/OFFSET cannot be negative", &["-1".to_owned()]);
        assert_eq!(error.class, InvalidRequest);
    }
    /// Whatever a value says, which messages quote, or show without a quote.
    #[test]
    fn nobody_chooses_whose_fault_it_is() {
        let words = [GREETINGS, REFUSALS].concat();
        for (begins, has, ..) in words {
            for words in begins {
                let value = format!("{words}{has}");
                for message in [
                    format!("Could not convert string '{value}' to INT32"),
                    format!("Could not convert string '' {value} '' to INT32"),
                    format!(
                        "Malformed JSON at byte 0 of input: unexpected character.  Input: \"{value}\""
                    ),
                ] {
                    let error = told(&message, &[]);
                    assert_eq!(error.code, "invalid_value", "{message}");
                }
                for message in [
                    format!("missing ): ({value}"),
                    format!(
                        "Could not parse string \"{value}\" according to format specifier \"%d\"\n{value}\n^\nError: Expected a number"
                    ),
                    format!("Sequence with name {value} does not exist!"),
                ] {
                    let error = told(&message, &[]);
                    assert_eq!(error.class, ErrorClass::Source, "{message}");
                }
            }
        }
        // Who may not come in is told so when he comes.
        let error = told("Authentication failed", &[]);
        assert_eq!(error.class, ErrorClass::Source);
        assert_eq!(
            unwelcome("Authentication failed").class,
            ErrorClass::Authentication
        );
    }
}
