//! The client protocol: what a request looks like.

use souk_sdk::http::Request;
use souk_sdk::{HttpResponse, Limits};

use crate::address::STATEMENT;
use crate::settings::Settings;

/// What is read of an answer at most: a quarter of a session's memory, in which its rows have to stand as well.
const RESPONSE_BYTES_MAX: u64 = 16 << 20;
/// What an answer may have beside values that are all told: one value is longer as JSON, and a coordinator makes its pages of a size of its
/// own, whatever is taken of them.
const RESPONSE_BYTES_MORE: u64 = 4 << 20;
/// Of an answer without rows.
const SMALL_RESPONSE_BYTES: u64 = 1 << 20;
/// How long the coordinator may take to stop a statement, and to be told that a transaction has ended: together less than the two seconds
/// that the host waits for the end of a request that was cancelled.
const STOP_MS: u32 = 800;
const BEGIN: &str = "START TRANSACTION READ ONLY";
const END: &str = "ROLLBACK";
/// A coordinator begins no transaction for a client that does not say whether it is in one.
const NO_TRANSACTION: &str = "NONE";
const TRANSACTION: &str = "x-trino-transaction-id";
const STARTED: &str = "x-trino-started-transaction-id";
/// An id is a UUID.
const TRANSACTION_BYTES_MAX: usize = 128;

/// All that requests of one session have in common.
pub struct Api {
    pub settings: Settings,
}

impl Api {
    /// Begins a transaction that only reads.
    pub fn begin(&self, limits: &Limits) -> Request {
        self.post(BEGIN, NO_TRANSACTION)
            .timeout_ms(limits.timeout_ms)
            .response_bytes_max(SMALL_RESPONSE_BYTES)
    }

    /// Ends it. It has written nothing.
    pub fn end(&self, transaction: &str) -> Request {
        self.post(END, transaction)
            .timeout_ms(STOP_MS)
            .response_bytes_max(SMALL_RESPONSE_BYTES)
    }

    /// A statement in a transaction, with what bounds its time. One that is known to only read needs none: Trino ends it by itself.
    pub fn statement(&self, text: &str, transaction: Option<&str>, limits: &Limits) -> Request {
        let ms = self
            .settings
            .statement_timeout_ms
            .min(limits.timeout_ms)
            .max(1);
        self.post(text, transaction.unwrap_or(NO_TRANSACTION))
            .header("x-trino-session", format!("query_max_run_time={ms}ms"))
            .timeout_ms(limits.timeout_ms)
            .response_bytes_max(response_bytes(limits.bytes_max))
    }

    /// Asks how a statement goes on.
    pub fn next(&self, path: &str, limits: &Limits) -> Request {
        self.known(Request::get(path))
            .timeout_ms(limits.timeout_ms)
            .response_bytes_max(response_bytes(limits.bytes_max))
    }

    /// The same of a statement that ends a transaction.
    pub fn next_of_end(&self, path: &str) -> Request {
        self.known(Request::get(path))
            .timeout_ms(STOP_MS)
            .response_bytes_max(SMALL_RESPONSE_BYTES)
    }

    /// Stops a statement.
    pub fn stop(&self, path: &str) -> Request {
        self.known(Request::new("DELETE", path))
            .timeout_ms(STOP_MS)
            .response_bytes_max(SMALL_RESPONSE_BYTES)
    }

    fn post(&self, text: &str, transaction: &str) -> Request {
        let settings = &self.settings;
        let mut request = self
            .known(Request::post(STATEMENT))
            // Trino's own names have no capitals, and releases before 476 take none here.
            .header("x-trino-catalog", settings.catalog.to_lowercase())
            .header("x-trino-time-zone", "UTC")
            // Else times come with three digits of a second, however many they have.
            .header("x-trino-client-capabilities", "PARAMETRIC_DATETIME")
            .header(TRANSACTION, transaction);
        if let Some(schema) = &settings.schema {
            request = request.header("x-trino-schema", schema.to_lowercase());
        }
        request
            .header("content-type", "text/plain; charset=utf-8")
            .body(text)
    }

    /// Says who asks.
    fn known(&self, mut request: Request) -> Request {
        if let Some(user) = &self.settings.user {
            request = request.header("x-trino-user", user);
        }
        if let Some(authorization) = &self.settings.authorization {
            request = request.header("authorization", authorization);
        }
        request.header("x-trino-source", "souk")
    }
}

fn response_bytes(bytes_max: u64) -> u64 {
    bytes_max
        .saturating_mul(2)
        .saturating_add(RESPONSE_BYTES_MORE)
        .min(RESPONSE_BYTES_MAX)
}

/// The transaction that an answer says has begun.
pub fn started(response: &HttpResponse) -> Option<String> {
    let id = response.header(STARTED)?;
    let is_id = !id.is_empty()
        && id.len() <= TRANSACTION_BYTES_MAX
        && id != NO_TRANSACTION
        && id.bytes().all(|byte| byte.is_ascii_graphic());
    is_id.then(|| id.to_owned())
}
