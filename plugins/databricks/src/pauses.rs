//! How long to wait before the same is asked again of who is busy.

use souk_sdk::{HttpFailure, HttpResponse};

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

#[cfg(test)]
mod tests {
    use super::*;

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
