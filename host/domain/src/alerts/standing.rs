//! How an alert stands, what an evaluation makes of that, who is told, and when to look again. Start reading at [`Standing::after`].

use crate::time::Timestamp;
use crate::webhooks::EventType;
use std::time::Duration;

/// Failures of this host's own in a row before an alert says that it cannot be evaluated.
pub const DELAYS_MAX: i64 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not evaluated yet, since it was made or changed.
    Unknown,
    Ok,
    Triggered,
    /// It could not be evaluated.
    Error,
}

impl State {
    pub const ALL: [State; 4] = [Self::Unknown, Self::Ok, Self::Triggered, Self::Error];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ok => "ok",
            Self::Triggered => "triggered",
            Self::Error => "error",
        }
    }

    pub fn parse(text: &str) -> Option<State> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// What an evaluation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    Fine,
    Breach,
    /// The asset could not be asked, or what it answered says nothing.
    Failed,
    /// This host's own trouble, which says nothing about the asset.
    Delayed,
}

/// How an alert stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub state: State,
    /// In a row.
    pub breaches: i64,
    /// Evaluations in a row that this host's own trouble kept from happening.
    pub delays: i64,
    pub last_triggered_at: Option<Timestamp>,
    /// Of one in error: it had triggered, and no answer has said since that this is over.
    pub was_triggered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// It takes so many to trigger.
    pub consecutive_breaches: i64,
    /// After it has triggered it does not trigger again for this long.
    pub rearm: Duration,
}

impl Standing {
    /// Of an alert that was never evaluated.
    pub const NEW: Standing = Standing {
        state: State::Unknown,
        breaches: 0,
        delays: 0,
        last_triggered_at: None,
        was_triggered: false,
    };

    /// How it stands after an evaluation.
    pub fn after(&self, finding: Finding, rules: Rules, now: Timestamp) -> Standing {
        let before = self.clone();
        let known = Standing {
            delays: 0,
            ..before.clone()
        };
        match finding {
            Finding::Fine => Standing {
                state: State::Ok,
                breaches: 0,
                was_triggered: false,
                ..known
            },
            Finding::Failed => known.in_error(),
            Finding::Delayed if before.delays + 1 >= DELAYS_MAX => Standing {
                delays: DELAYS_MAX,
                ..before.in_error()
            },
            Finding::Delayed => Standing {
                delays: before.delays + 1,
                ..before
            },
            Finding::Breach => {
                let breaches = known.breaches.saturating_add(1);
                let is_armed = known
                    .last_triggered_at
                    .is_none_or(|at| at.after(rules.rearm) <= now);
                let (state, at) = match known.is_still_triggered() {
                    true => (State::Triggered, known.last_triggered_at),
                    false if breaches >= rules.consecutive_breaches && is_armed => {
                        (State::Triggered, Some(now))
                    }
                    false => (State::Ok, known.last_triggered_at),
                };
                Standing {
                    state,
                    breaches,
                    last_triggered_at: at,
                    was_triggered: false,
                    ..known
                }
            }
        }
    }

    /// That it could not be evaluated says nothing of what it has triggered for.
    fn in_error(self) -> Standing {
        Standing {
            state: State::Error,
            was_triggered: self.is_still_triggered(),
            ..self
        }
    }

    fn is_still_triggered(&self) -> bool {
        self.state == State::Triggered || self.was_triggered
    }
}

/// What is told of a change from one state to another.
pub fn told(before: &Standing, after: &Standing) -> Option<EventType> {
    match (before.state, after.state) {
        (before, after) if before == after => None,
        // What it has triggered for goes on, and was told then.
        (State::Error, State::Triggered) if before.was_triggered => None,
        (_, State::Triggered) => Some(EventType::AlertTriggered),
        (_, State::Error) => Some(EventType::AlertError),
        (State::Triggered | State::Error, State::Ok) => Some(EventType::AlertResolved),
        _ => None,
    }
}

/// When to look again: in step with when it was due, whatever was missed left out.
pub fn next_check(due: Timestamp, interval: Duration, now: Timestamp) -> Timestamp {
    let step = i64::try_from(interval.as_micros())
        .unwrap_or(i64::MAX)
        .max(1);
    let late = now.micros().saturating_sub(due.micros()).max(0);
    let steps = late / step + 1;
    Timestamp::from_micros(due.micros().saturating_add(steps.saturating_mul(step)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    /// It takes as many breaches in a row as it says; a good answer in between starts anew.
    #[test]
    fn breaches_have_to_be_consecutive() {
        let rules = Rules {
            consecutive_breaches: 3,
            rearm: Duration::ZERO,
        };
        let mut standing = Standing::NEW;
        let mut states = Vec::new();
        for (second, finding) in [
            Finding::Breach,
            Finding::Breach,
            Finding::Fine,
            Finding::Breach,
            Finding::Breach,
            Finding::Breach,
            Finding::Breach,
            Finding::Fine,
        ]
        .into_iter()
        .enumerate()
        {
            let after = standing.after(finding, rules, at(second as i64));
            states.push((after.state, told(&standing, &after)));
            standing = after;
        }
        let quiet = (State::Ok, None);
        assert_eq!(
            states,
            [
                quiet,
                quiet,
                quiet,
                quiet,
                quiet,
                (State::Triggered, Some(EventType::AlertTriggered)),
                (State::Triggered, None),
                (State::Ok, Some(EventType::AlertResolved)),
            ]
        );
    }

    /// After it has triggered it does not do so again before it is armed again, and then at the first breach.
    #[test]
    fn an_alert_has_to_be_armed_again() {
        let rules = Rules {
            consecutive_breaches: 1,
            rearm: Duration::from_secs(100),
        };
        let step =
            |standing: &Standing, finding, second| standing.after(finding, rules, at(second));
        let triggered = step(&Standing::NEW, Finding::Breach, 0);
        assert_eq!(triggered.state, State::Triggered);
        let fine = step(&triggered, Finding::Fine, 60);
        let early = step(&fine, Finding::Breach, 99);
        assert_eq!((early.state, early.breaches), (State::Ok, 1));
        let late = step(&early, Finding::Breach, 100);
        assert_eq!(
            (late.state, late.last_triggered_at),
            (State::Triggered, Some(at(100)))
        );
    }

    /// A failure of the asset's is an error at once; trouble of the host's own changes nothing before it lasts, and a good answer ends both.
    #[test]
    fn the_hosts_own_trouble_is_not_the_assets() {
        let rules = Rules {
            consecutive_breaches: 1,
            rearm: Duration::ZERO,
        };
        let fine = Standing::NEW.after(Finding::Fine, rules, at(0));
        let failed = fine.after(Finding::Failed, rules, at(1));
        assert_eq!(told(&fine, &failed), Some(EventType::AlertError));
        let again = failed.after(Finding::Failed, rules, at(2));
        assert_eq!(told(&failed, &again), None);
        let resolved = again.after(Finding::Fine, rules, at(3));
        assert_eq!(told(&again, &resolved), Some(EventType::AlertResolved));
        let mut delayed = fine;
        for _ in 1..DELAYS_MAX {
            delayed = delayed.after(Finding::Delayed, rules, at(4));
            assert_eq!(delayed.state, State::Ok);
        }
        delayed = delayed.after(Finding::Delayed, rules, at(5));
        assert_eq!(delayed.state, State::Error);
        let back = delayed.after(Finding::Fine, rules, at(6));
        assert_eq!((back.state, back.delays), (State::Ok, 0));
    }

    /// An error is no end of what an alert has triggered for: a breach behind it is neither told as one nor as another trigger, whenever it would be
    /// armed again, and a good answer is the end.
    #[test]
    fn an_error_does_not_end_what_has_triggered() {
        let rules = Rules {
            consecutive_breaches: 2,
            rearm: Duration::from_secs(2),
        };
        let mut standing = Standing::NEW;
        let mut told_of = Vec::new();
        for (second, finding) in [
            Finding::Breach,
            Finding::Breach,
            Finding::Failed,
            Finding::Failed,
            Finding::Breach,
            Finding::Failed,
            Finding::Delayed,
            Finding::Breach,
            Finding::Failed,
            Finding::Fine,
        ]
        .into_iter()
        .enumerate()
        {
            let after = standing.after(finding, rules, at(second as i64));
            told_of.push((after.state, told(&standing, &after)));
            standing = after;
        }
        let error = (State::Error, Some(EventType::AlertError));
        let goes_on = (State::Triggered, None);
        assert_eq!(
            told_of,
            [
                (State::Ok, None),
                (State::Triggered, Some(EventType::AlertTriggered)),
                error,
                (State::Error, None),
                goes_on,
                error,
                (State::Error, None),
                goes_on,
                error,
                (State::Ok, Some(EventType::AlertResolved)),
            ]
        );
        assert_eq!(standing.last_triggered_at, Some(at(1)));

        // What is over stays over: the next breach begins anew, and an error changes nothing about that.
        let early = standing.after(Finding::Breach, rules, at(10));
        let failed = early.after(Finding::Failed, rules, at(11));
        assert_eq!((failed.state, failed.was_triggered), (State::Error, false));
        let again = failed.after(Finding::Breach, rules, at(12));
        assert_eq!(
            (again.state, again.last_triggered_at),
            (State::Triggered, Some(at(12)))
        );
        assert_eq!(told(&failed, &again), Some(EventType::AlertTriggered));
    }

    /// An alert keeps its step, however late it is evaluated, and what was missed is not made up for.
    #[test]
    fn checks_keep_their_step() {
        let minute = Duration::from_secs(60);
        assert_eq!(next_check(at(0), minute, at(0)), at(60));
        assert_eq!(next_check(at(0), minute, at(59)), at(60));
        assert_eq!(next_check(at(0), minute, at(60)), at(120));
        assert_eq!(next_check(at(0), minute, at(1_000)), at(1_020));
        assert_eq!(next_check(at(100), minute, at(0)), at(160));
    }
}
