//! How long to wait before something is asked again: of who is busy the same, of who has nothing to say yet how a statement goes on.

use souk_sdk::{HttpFailure, HttpResponse};

/// So many answers without a row may follow each other at once; then there is a pause before each, longer each time.
const EMPTY_FREE: u32 = 10;
const EMPTY_PAUSE_MS: u32 = 10;
const EMPTY_PAUSE_MAX_MS: u32 = 100;

/// How long to wait before the same is asked again of a coordinator or a proxy that is busy (429, 502, 503, 504); `None`: it was answered, or was
/// asked often enough.
pub fn busy(outcome: &Result<HttpResponse, HttpFailure>, tries: u32) -> Option<u32> {
    let response = outcome.as_ref().ok()?;
    match response.status {
        429 | 502..=504 => response.busy_pause_ms(tries),
        _ => None,
    }
}

/// The pause after so many answers without a row; `None`: there is none.
pub fn empty(answers: u32) -> Option<u32> {
    let more = answers.checked_sub(EMPTY_FREE)?;
    Some((EMPTY_PAUSE_MS * (more + 1)).min(EMPTY_PAUSE_MAX_MS))
}
