//! Whose fault a refusal is, by its code. Snowflake's own text goes into `detail` only.

use souk_sdk::json::what_is_wrong;
use souk_sdk::{Error, HttpResponse};

use serde::Deserialize;

use crate::settings::Settings;

/// A division by zero: a state of SQL, and Snowflake's own code.
const DIVISION_BY_ZERO: (&str, &str) = ("22012", "100051");
/// `Invalid bind value (x) for type (FIXED).`
const INVALID_BINDING: u32 = 2_086;

/// What Snowflake says of a statement that was refused, or has failed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Failure {
    code: String,
    sql_state: String,
    message: String,
}

impl Failure {
    fn of(response: &HttpResponse) -> Option<Failure> {
        let failure: Failure = serde_json::from_slice(&response.body).ok()?;
        let says_nothing = failure.code.is_empty() && failure.message.is_empty();
        (!says_nothing).then_some(failure)
    }
}

/// Whether Snowflake itself says that a statement has ended: it failed, or took too long.
pub fn ends_it(response: &HttpResponse) -> bool {
    matches!(response.status, 408 | 422) && Failure::of(response).is_some()
}

/// The error of a response that is no success. `values`: the caller's, as an error quotes
/// them.
pub fn refused(response: HttpResponse, settings: &Settings, values: &[String]) -> Error {
    let Some(failure) = Failure::of(&response) else {
        return foreign(response);
    };
    let error = blame(response.status, &failure, settings, values);
    let error = match response.retry_after_ms() {
        Some(ms) => error.retry_after_ms(ms),
        None => error,
    };
    let code = match failure.code.as_str() {
        "" => response.status.to_string(),
        code => code.to_owned(),
    };
    error.detail(failure.message).source_code(code)
}

fn blame(status: u16, failure: &Failure, settings: &Settings, values: &[String]) -> Error {
    let says = |text: &str| failure.message.contains(text);
    // The code of a program's own text (000904), and of who is let in (390144).
    let code: u32 = failure.code.parse().unwrap_or_default();
    match (status, code) {
        (_, 390_422) => Error::configuration(
            "address_refused",
            "Snowflake's network policy does not let this service's address in: allow it",
        ),
        (_, 390_432) => Error::configuration(
            "network_policy_needed",
            "Snowflake takes a programmatic access token only of a user who has a network policy: give the user one that allows this service's addresses",
        ),
        (_, 390_186 | 390_189) => Error::configuration(
            "unknown_role",
            "Snowflake has no role of the connection's name (with its capital letters), or the user does not have it, or the token is for another one",
        ),
        (_, 390_201) => Error::configuration(
            "unknown_warehouse",
            "Snowflake has no warehouse of the connection's name (with its capital letters), or the role may not use it: GRANT USAGE ON WAREHOUSE to it",
        ),
        (_, 390_144 | 394_300..=394_399) => Error::authentication(
            "key_refused",
            "Snowflake does not know the user's key: account and username must be those that its public key was given to",
        ),
        (401, _) | (_, 390_100..=390_399 | 394_400..=394_499) => Error::authentication(
            "credentials_refused",
            "Snowflake refused the token: it is wrong, or its time is over",
        ),
        // By a program's own text, and by the SQL API, which looks before.
        (_, 606 | 391_920) => missing_warehouse(),
        (_, 90_105 | 391_918) => unknown_database(),
        (_, 90_106) => Error::configuration(
            "missing_schema",
            "the statement names a table without a schema: write schema.table, or DATABASE.SCHEMA as the connection's database",
        ),
        (_, 2_003 | 2_043) if names(failure, "Database", &settings.database) => unknown_database(),
        (_, 2_003 | 2_043) if says("Schema '") => {
            let schema = settings.schema.as_deref().unwrap_or_default();
            let whole = format!("{}.{schema}", settings.database);
            match names(failure, "Schema", &whole) {
                true => Error::configuration(
                    "unknown_schema",
                    "the database has no schema of the name that the connection's database ends with, or the role may not use it",
                ),
                false => Error::not_found(
                    "unknown_schema",
                    "the statement names a schema that does not exist, or that the role may not use",
                ),
            }
        }
        (_, 2_003 | 2_043) => Error::not_found(
            "unknown_table",
            "the statement names a table that does not exist, or that the role may not read",
        ),
        (_, 2_140 | 2_141) => Error::not_found(
            "unknown_function",
            "the statement names a function that does not exist, or not for such arguments",
        ),
        (_, 904) => Error::source_failed(
            "unknown_column",
            "the statement names a column that does not exist",
        ),
        (_, 1_003) => Error::source_failed("syntax_error", "Snowflake cannot read the statement"),
        (_, 8) => Error::permission(
            "read_only",
            "connections are read-only: the statement must be one query",
        ),
        (_, 3_001) => Error::permission(
            "permission_denied",
            "the role may not do what the statement asks for: it needs USAGE on database and schema, and SELECT on the table",
        ),
        (_, 604) => Error::timeout("cancelled", "the statement was stopped at Snowflake"),
        (408, _) | (_, 630) => Error::timeout(
            "statement_timeout",
            "the statement runs longer than the connection or Snowflake allows",
        ),
        (_, 90_073) => Error::unavailable(
            "quota_exhausted",
            "the warehouse has used up what its resource monitor allows it: raise that, or wait until it begins anew",
        ),
        (429, _) => Error::rate_limited(
            "too_many_requests",
            "Snowflake has had too many requests of this account",
        ),
        (502..=504, _) => Error::unavailable("unavailable", "Snowflake is not available now"),
        // A value that cannot become what it is compared with, or is too large for it: the caller's only if it is named, for what the seller's
        // tables have may be none either.
        // What fails while it runs is told by such a code alone, without a state.
        _ if failure.sql_state.starts_with("22")
            || code == INVALID_BINDING
            || failure.sql_state.is_empty() && matches!(code, 100_000..=100_999) =>
        {
            match names_one(failure, values) {
                true => Error::invalid_request("invalid_value", "Snowflake refused a value"),
                false => Error::source_failed(
                    "invalid_value",
                    "the statement computes a value that Snowflake refuses",
                ),
            }
        }
        (403, _) => Error::permission("forbidden", "Snowflake does not let this user in"),
        (500.., _) => Error::source_failed("internal_error", "Snowflake failed"),
        _ => Error::source_failed("sql_error", "Snowflake could not run the statement"),
    }
}

/// `Numeric value 'x' is not recognized`, `Invalid bind value (x) for type (FIXED)`. Who divides is the statement, whatever it divides by.
fn names_one(failure: &Failure, values: &[String]) -> bool {
    let is_named = |value: &String| {
        failure.message.contains(&format!("'{value}'"))
            || failure.message.contains(&format!("bind value ({value})"))
    };
    let is_division = failure.sql_state == DIVISION_BY_ZERO.0 || failure.code == DIVISION_BY_ZERO.1;
    !is_division && values.iter().any(is_named)
}

/// `Database 'SHOP' does not exist or not authorized.`
fn names(failure: &Failure, what: &str, name: &str) -> bool {
    let quoted = |name: &str| format!("{what} '{name}'");
    failure.message.contains(&quoted(name))
        || failure.message.contains(&quoted(&format!("\"{name}\"")))
}

pub fn unknown_database() -> Error {
    Error::configuration(
        "unknown_database",
        "Snowflake has no database of the connection's name, or the role may not use it: GRANT USAGE ON DATABASE to it",
    )
}

pub fn missing_warehouse() -> Error {
    Error::configuration(
        "missing_warehouse",
        "the connection has no warehouse that runs for the role: name one, GRANT USAGE ON it to the role, and let it resume by itself (AUTO_RESUME)",
    )
}

/// A response that is none of Snowflake's: a proxy's, mostly, or of an address at which there is no account. Nobody who calls has sent anything wrong.
fn foreign(response: HttpResponse) -> Error {
    let status = response.status;
    match response.classified() {
        Err(error) if matches!(status, 403 | 404) => Error {
            detail: error.detail,
            source_code: error.source_code,
            ..Error::configuration(
                "no_account",
                "no account of Snowflake's answers at the connection's address: base_url is https://, the account's name (myorg-account), and .snowflakecomputing.com",
            )
        },
        Err(error) if !matches!(status, 400 | 422) => error,
        _ => malformed().source_code(status.to_string()),
    }
}

pub fn cancelled() -> Error {
    Error::timeout("cancelled", "the statement was cancelled")
}

pub fn endless(answers: u32) -> Error {
    Error::source_failed(
        "endless",
        format!("Snowflake says of a statement that it goes on, {answers} times"),
    )
}

pub fn malformed() -> Error {
    Error::source_failed(
        "malformed_answer",
        "what answers at the connection's address does not speak as Snowflake's SQL API does",
    )
}

/// What is wrong with an answer's JSON, without its content.
pub fn unreadable(error: serde_json::Error) -> Error {
    malformed().detail(what_is_wrong(&error))
}
