//! How long to wait before the same is asked again of who is busy.

use souk_sdk::{HttpFailure, HttpResponse, WireFault};

/// The pause after the first answer that was lost; it doubles.
pub const FIRST_MS: u32 = 100;
/// Where an answer is lost so often, nobody is busy: less than a second in all.
const LOST_TRIES_MAX: u32 = 4;

/// Whether Snowflake is busy (429, 502, 503, 504), or the answer was lost on its way.
pub fn is_refused(outcome: &Result<HttpResponse, HttpFailure>) -> bool {
    match outcome {
        Ok(response) => matches!(response.status, 429 | 502..=504),
        Err(failure) => failure.fault == WireFault::Reset,
    }
}

/// How long to wait before the same is asked again; `None`: it was answered, or was asked often enough. `is_ask`: it is a statement, of
/// which the answer may be lost while it goes on.
pub fn busy(outcome: &Result<HttpResponse, HttpFailure>, tries: u32, is_ask: bool) -> Option<u32> {
    match outcome {
        _ if !is_refused(outcome) => None,
        Ok(response) => response.busy_pause_ms(tries),
        Err(_) => (is_ask && tries < LOST_TRIES_MAX - 1).then(|| FIRST_MS << tries),
    }
}
