//! How long to wait before something is asked again: of who is busy the same, of who has nothing to say yet how a statement goes on.

use souk_sdk::{HttpFailure, HttpResponse};

/// A coordinator or a proxy that is busy (502, 503, 504) is asked again after as long as Trino wants its clients to wait, doubled each time:
/// six seconds in all.
const TRIES_MAX: u32 = 7;
const BUSY_PAUSE_MS: u32 = 100;
/// Whoever wants more time than this (429) is asked again by whoever asked us.
const RETRY_AFTER_MAX_MS: u64 = 5_000;
/// So many answers without a row may follow each other at once; then there is a pause before each, longer each time.
const EMPTY_FREE: u32 = 10;
const EMPTY_PAUSE_MS: u32 = 10;
const EMPTY_PAUSE_MAX_MS: u32 = 100;

/// How long to wait before the same is asked again; `None`: it was answered, or was asked often enough.
pub fn busy(outcome: &Result<HttpResponse, HttpFailure>, tries: u32) -> Option<u32> {
    let response = outcome.as_ref().ok()?;
    let usual = BUSY_PAUSE_MS << tries.min(TRIES_MAX);
    let ms = match response.status {
        _ if tries == TRIES_MAX - 1 => return None,
        502..=504 => usual,
        429 => match response.retry_after_ms() {
            Some(ms) if ms > RETRY_AFTER_MAX_MS => return None,
            Some(ms) => u32::try_from(ms).unwrap_or(usual).max(1),
            None => usual,
        },
        _ => return None,
    };
    Some(ms)
}

/// The pause after so many answers without a row; `None`: there is none.
pub fn empty(answers: u32) -> Option<u32> {
    let more = answers.checked_sub(EMPTY_FREE)?;
    Some((EMPTY_PAUSE_MS * (more + 1)).min(EMPTY_PAUSE_MAX_MS))
}
