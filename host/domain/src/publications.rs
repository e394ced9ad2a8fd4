//! Rules of publications: a post at an integration, what becomes of it, and how often it is tried.

use std::time::Duration;

/// Publications of a company that wait for an attempt: a few posts at all of its integrations, again and again.
pub const WAITING_MAX: i64 = 200;

/// The pause after the first failed attempt, the second, and so on: nineteen hours in all. After the last it is given up.
pub const RETRY_PAUSES: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(2 * 3_600),
    Duration::from_secs(4 * 3_600),
    Duration::from_secs(12 * 3_600),
];

/// Pauses are up to this much shorter or longer, so that what failed together does not come back together.
pub const JITTER: f64 = 0.1;

/// A platform may ask for a longer pause, up to this.
pub const ASKED_PAUSE_MAX: Duration = Duration::from_secs(12 * 3_600);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Waits for its first attempt.
    Pending,
    /// An attempt has failed in a way that may pass; another one follows.
    Retrying,
    /// The platform has it.
    Published,
    /// The platform refuses it: nothing is tried until somebody asks anew.
    Failed,
    /// It was tried as often as it is.
    GivenUp,
}

impl State {
    pub const ALL: [State; 5] = [
        State::Pending,
        State::Retrying,
        State::Published,
        State::Failed,
        State::GivenUp,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Retrying => "retrying",
            State::Published => "published",
            State::Failed => "failed",
            State::GivenUp => "given_up",
        }
    }

    pub fn parse(text: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// The pause after attempt number `attempts` has failed, or `None` after the last. `asked`: by the platform. `chance` is a random number
/// from 0 to 1.
pub fn retry_pause(attempts: u32, asked: Option<Duration>, chance: f64) -> Option<Duration> {
    let place = usize::try_from(attempts.checked_sub(1)?).ok()?;
    let pause = RETRY_PAUSES.get(place)?;
    let pause = pause.mul_f64(1.0 - JITTER + 2.0 * JITTER * chance.clamp(0.0, 1.0));
    Some(pause.max(asked.unwrap_or_default().min(ASKED_PAUSE_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seven retries, each about its pause later or when the platform wants it, and then no more.
    #[test]
    fn retries_follow_the_schedule() {
        for (place, pause) in RETRY_PAUSES.iter().enumerate() {
            let attempts = u32::try_from(place).unwrap() + 1;
            for chance in [0.0, 0.5, 1.0] {
                let actual = retry_pause(attempts, None, chance).unwrap();
                let (least, most) = (pause.mul_f64(0.899), pause.mul_f64(1.101));
                assert!((least..=most).contains(&actual), "{actual:?}");
            }
        }
        let asked = |seconds| retry_pause(1, Some(Duration::from_secs(seconds)), 0.5);
        assert_eq!(asked(30), Some(Duration::from_secs(30)));
        assert_eq!(asked(1_000_000), Some(ASKED_PAUSE_MAX));
        assert_eq!(
            (retry_pause(0, None, 0.5), retry_pause(8, None, 0.5)),
            (None, None)
        );
    }

    /// Every state reads back from its name.
    #[test]
    fn states_have_names() {
        for state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
    }
}
