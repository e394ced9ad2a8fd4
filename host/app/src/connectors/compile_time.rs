//! How long each company has kept this host compiling.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// What is counted together.
const HOUR: Duration = Duration::from_secs(3600);
/// Companies that are remembered; only those that uploaded within the hour are.
const PRUNED_AT: usize = 1024;

/// The time spent for each company in the hour that began with its first compile.
#[derive(Debug, Default)]
pub(super) struct CompileTime(Mutex<HashMap<String, Hour>>);

#[derive(Debug)]
struct Hour {
    began: Instant,
    spent: Duration,
}

impl CompileTime {
    /// How long a company that has used up its time has to wait. `None`: it need not.
    pub fn wait(&self, company: &str, max: Duration, now: Instant) -> Option<Duration> {
        let hours = self.0.lock();
        let hour = hours.get(company)?;
        let passed = now.saturating_duration_since(hour.began);
        (hour.spent >= max && passed < HOUR).then(|| HOUR - passed)
    }

    pub fn spend(&self, company: &str, took: Duration, now: Instant) {
        if took.is_zero() {
            return;
        }
        let mut hours = self.0.lock();
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
