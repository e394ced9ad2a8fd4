//! How long each company has kept this host compiling.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// What is counted together.
const HOUR: Duration = Duration::from_secs(3600);
/// Companies that are remembered; only those that uploaded within the hour are.
const PRUNED_AT: usize = 1024;

/// The time spent for each company in the hour that began with its first compile.
#[derive(Debug, Default)]
pub(super) struct CompileTime {
    hours: Mutex<HashMap<String, Hour>>,
    /// Of all companies, since the start.
    total_us: AtomicU64,
}

#[derive(Debug)]
struct Hour {
    began: Instant,
    spent: Duration,
}

/// How long what began then has compiled: as long as the sandbox says (of what was compiled here before it may say what that took once) and no longer than
/// it is ago; all of that, where it says nothing.
pub(super) fn took(compile_ms: Option<u64>, began: Instant) -> Duration {
    let all = began.elapsed();
    compile_ms.map_or(all, |ms| Duration::from_millis(ms).min(all))
}

impl CompileTime {
    /// How long a company that has used up its time has to wait. `None`: it need not.
    pub fn wait(&self, company: &str, max: Duration, now: Instant) -> Option<Duration> {
        let hours = self.hours.lock();
        let hour = hours.get(company)?;
        let passed = now.saturating_duration_since(hour.began);
        (hour.spent >= max && passed < HOUR).then(|| HOUR - passed)
    }

    pub fn spend(&self, company: &str, took: Duration, now: Instant) {
        if took.is_zero() {
            return;
        }
        self.total_us.fetch_add(took.as_micros() as u64, Relaxed);
        let mut hours = self.hours.lock();
        if hours.len() >= PRUNED_AT {
            hours.retain(|_, hour| now.saturating_duration_since(hour.began) < HOUR);
        }
        match hours.get_mut(company) {
            Some(hour) if now.saturating_duration_since(hour.began) < HOUR => hour.spent += took,
            _ => {
                let hour = Hour {
                    began: now,
                    spent: took,
                };
                hours.insert(company.to_owned(), hour);
            }
        }
    }

    /// What each company has spent of the hour that it is in.
    pub fn spent(&self, now: Instant) -> Vec<(String, Duration)> {
        let hours = self.hours.lock();
        let live = hours
            .iter()
            .filter(|(_, hour)| now.saturating_duration_since(hour.began) < HOUR);
        live.map(|(company, hour)| (company.clone(), hour.spent))
            .collect()
    }

    pub fn total(&self) -> Duration {
        Duration::from_micros(self.total_us.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever waits for a place meanwhile does not pay for that, nor for what was compiled long ago.
    #[test]
    fn what_is_counted_is_what_was_compiled() {
        let second = Duration::from_secs(1);
        let began = Instant::now().checked_sub(2 * second).unwrap();
        assert_eq!(took(Some(0), began), Duration::ZERO);
        assert_eq!(took(Some(1_000), began), second);
        for all in [took(Some(60_000), began), took(None, began)] {
            assert!(all >= 2 * second && all < 60 * second, "{all:?}");
        }
    }

    /// What one company has used up is no other's, and is given back when its hour is over.
    #[test]
    fn each_company_has_its_hour() {
        let (time, began) = (CompileTime::default(), Instant::now());
        let (max, minute) = (Duration::from_secs(100), Duration::from_secs(60));
        assert_eq!(time.wait("a", max, began), None);
        time.spend("a", minute, began);
        assert_eq!(time.wait("a", max, began + minute), None);
        time.spend("a", minute, began + minute);
        assert_eq!(
            time.wait("a", max, began + 2 * minute),
            Some(58 * minute),
            "two minutes of its hour are over"
        );
        assert_eq!(time.wait("b", max, began), None);
        assert_eq!(time.wait("a", max, began + HOUR), None);
        time.spend("a", minute, began + HOUR);
        assert_eq!(time.wait("a", max, began + HOUR), None);
        assert_eq!(time.spent(began + HOUR), [("a".to_owned(), minute)]);
        assert!(time.spent(began + 2 * HOUR).is_empty());
        assert_eq!(time.total(), 3 * minute);
    }
}
