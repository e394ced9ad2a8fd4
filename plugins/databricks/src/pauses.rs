//! How long to wait before something is asked again: of who is busy the same, of a statement that runs whether it still does.

use souk_sdk::{HttpFailure, HttpResponse};

/// A statement is asked after once a quarter of the time has passed that it was waited for: its end is noticed a quarter later at most.
const RUNNING_PART: u32 = 4;
const RUNNING_PAUSE_MS: u32 = 10;
const RUNNING_PAUSE_MAX_MS: u32 = 1_000;

/// How long to wait before the same is asked again; `None`: it was answered, or was asked often enough. `begins`: it would begin a
/// statement, which a proxy that failed (502, 504) may have done already.
pub fn busy(outcome: &Result<HttpResponse, HttpFailure>, tries: u32, begins: bool) -> Option<u32> {
    let response = outcome.as_ref().ok()?;
    match response.status {
        429 | 503 => response.busy_pause_ms(tries),
        502 | 504 if !begins => response.busy_pause_ms(tries),
        _ => None,
    }
}

/// The pause before a statement is asked after that was waited for this long.
pub fn running(waited_ms: u32) -> u32 {
    (waited_ms / RUNNING_PART).clamp(RUNNING_PAUSE_MS, RUNNING_PAUSE_MAX_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minute's statement takes some ninety requests, a short one is noticed at once.
    #[test]
    fn who_runs_is_asked_less_and_less_often() {
        let (mut waited, mut asked) = (0, 0);
        while waited < 60_000 {
            let pause = running(waited);
            assert!(pause <= 10.max(waited / 4));
            waited += pause;
            asked += 1;
        }
        assert!((70..100).contains(&asked), "{asked}");
    }

    #[test]
    fn who_is_busy_is_asked_again() {
        let answer = |status: u16| {
            Ok(HttpResponse {
                id: 1,
                status,
                headers: Vec::new(),
                body: Vec::new(),
            })
        };
        assert_eq!(busy(&answer(503), 0, true), Some(100));
        assert_eq!(busy(&answer(429), 5, false), Some(3_200));
        assert_eq!(busy(&answer(429), 6, false), None);
        assert_eq!(busy(&answer(502), 0, false), Some(100));
        assert_eq!(busy(&answer(502), 0, true), None);
        assert_eq!(busy(&answer(200), 0, true), None);
        assert_eq!(busy(&answer(500), 0, true), None);
    }
}
