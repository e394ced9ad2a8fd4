//! The SQL Statement Execution API: what a request looks like.
//!
//! A statement is always begun without waiting (`wait_timeout` of nothing): its id is known at once, and so it can be stopped at any
//! time. Databricks stops one for nobody who only hangs up.

use std::borrow::Cow;

use serde::Serialize;
use souk_sdk::http::Request;
use souk_sdk::{HttpRequest, Limits};

use crate::parameters::Bound;
use crate::settings::Settings;

const STATEMENTS: &str = "/api/2.0/sql/statements";
/// What is read of an answer at most. Rows that the API sends in its answers are 25 MiB at most, in chunks.
const RESPONSE_BYTES_MAX: u64 = 24 << 20;
/// What the API takes for a number of rows.
const ROW_LIMIT_MAX: u64 = i32::MAX as u64;
/// What an answer may have beside values that are all told: every number is a text in it, in a row of its own.
const RESPONSE_BYTES_MORE: u64 = 4 << 20;
/// Of an answer without rows.
const SMALL_RESPONSE_BYTES: u64 = 1 << 20;
/// How long Databricks may take to be told that a statement is not wanted. With a second try it is less than the two seconds that the
/// host waits for the end of a request that was cancelled.
const STOP_MS: u32 = 800;
/// How much longer than its request the answer may take that says a statement's id, by which it is stopped. With one try to stop it, it is
/// less than those two seconds.
pub const ID_MS: u32 = 1_000;

/// A statement, its values, how many rows are wanted of it, and how long the answer may take that says its id.
#[derive(Debug)]
pub struct Asked<'a> {
    pub text: Cow<'a, str>,
    pub values: Cow<'a, [Bound]>,
    pub rows_max: u32,
    pub begins_within_ms: u32,
}

#[derive(Serialize)]
struct Body<'a> {
    statement: &'a str,
    warehouse_id: &'a str,
    catalog: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    parameters: &'a [Bound],
    row_limit: u64,
    disposition: &'a str,
    format: &'a str,
    wait_timeout: &'a str,
    on_wait_timeout: &'a str,
}

/// Begins a statement. Of the rows that are allowed one more is asked for, by which it is seen that there are more.
pub fn begin(settings: &Settings, asked: &Asked<'_>, limits: &Limits) -> Request {
    let body = Body {
        statement: &asked.text,
        warehouse_id: &settings.warehouse_id,
        catalog: &settings.catalog,
        schema: settings.schema.as_deref(),
        parameters: &asked.values,
        row_limit: (u64::from(asked.rows_max) + 1).min(ROW_LIMIT_MAX),
        disposition: "INLINE",
        format: "JSON_ARRAY",
        wait_timeout: "0s",
        on_wait_timeout: "CONTINUE",
    };
    // Of texts and numbers it is made.
    let body = serde_json::to_vec(&body).unwrap_or_default();
    Request::post(STATEMENTS)
        .json(body)
        .timeout_ms(asked.begins_within_ms)
        .response_bytes_max(response_bytes(limits.bytes_max))
}

/// Asks how it is with a statement, and for its first rows.
pub fn follow(id: &str, limits: &Limits) -> Request {
    Request::get(format!("{STATEMENTS}/{id}"))
        .timeout_ms(limits.timeout_ms)
        .response_bytes_max(response_bytes(limits.bytes_max))
}

/// Asks for more rows.
pub fn chunk(id: &str, number: u32, limits: &Limits) -> Request {
    Request::get(format!("{STATEMENTS}/{id}/result/chunks/{number}"))
        .timeout_ms(limits.timeout_ms)
        .response_bytes_max(response_bytes(limits.bytes_max))
}

/// Stops a statement.
pub fn stop(id: &str) -> Request {
    Request::post(format!("{STATEMENTS}/{id}/cancel"))
        .json("{}")
        .timeout_ms(STOP_MS)
        .response_bytes_max(SMALL_RESPONSE_BYTES)
}

/// A request with its number, in the name of who asks.
pub fn sent(mut request: Request, id: u32, authorization: Option<String>) -> HttpRequest {
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    request.numbered(id)
}

fn response_bytes(bytes_max: u64) -> u64 {
    bytes_max
        .saturating_mul(4)
        .saturating_add(RESPONSE_BYTES_MORE)
        .min(RESPONSE_BYTES_MAX)
}
