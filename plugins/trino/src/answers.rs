//! What a coordinator answers, as far as it is read.

use serde::Deserialize;
use serde_json::value::RawValue;
use souk_sdk::{Error, HttpFailure, HttpResponse, WireFault};

/// Of a statement: one of the answers to it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Results<'a> {
    /// Every answer has one; what has none is no coordinator's.
    pub id: String,
    /// Where it goes on. Without it this was the last.
    pub next_uri: Option<String>,
    /// As soon as they are known, and with every answer from then on.
    #[serde(borrow)]
    pub columns: Option<&'a RawValue>,
    /// Rows. (Where it is an object the rows lie elsewhere, which nobody asked for.)
    #[serde(borrow)]
    pub data: Option<Vec<Vec<&'a RawValue>>>,
    pub error: Option<QueryError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryError {
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub error_name: String,
    #[serde(default)]
    pub error_type: String,
    pub error_location: Option<Location>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    #[serde(default)]
    pub line_number: u32,
    #[serde(default)]
    pub column_number: u32,
}

/// What stands in an answer.
pub fn read(response: &HttpResponse) -> Result<Results<'_>, Error> {
    serde_json::from_slice(&response.body).map_err(|error| malformed().detail(error.to_string()))
}

/// No answer came. One that is longer than asked for is no HTTP to the host either.
pub fn broken(failure: HttpFailure) -> Error {
    match failure.fault {
        WireFault::BadResponse => Error::source_failed(
            "bad_response",
            "the answer broke off, is not valid HTTP, or is longer than 64 MiB",
        )
        .detail(failure.message),
        _ => Error::from(failure),
    }
}

pub fn malformed() -> Error {
    Error::source_failed(
        "malformed_answer",
        "what answers at the connection's address does not speak as Trino's coordinator does",
    )
}
