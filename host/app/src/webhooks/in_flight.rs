//! Whose deliveries are being attempted: for metrics.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use souk_domain::ids::CompanyId;

/// Attempts under way on this host, of the companies that have any.
#[derive(Default)]
pub struct InFlight(Mutex<HashMap<CompanyId, u64>>);

/// One of them; dropping it ends it.
pub(super) struct Attempt {
    of: Arc<InFlight>,
    company: CompanyId,
}

impl InFlight {
    pub(super) fn begin(self: &Arc<InFlight>, company: &CompanyId) -> Attempt {
        *self.0.lock().entry(company.clone()).or_default() += 1;
        Attempt {
            of: self.clone(),
            company: company.clone(),
        }
    }

    /// How many each company has that has any.
    pub fn by_company(&self) -> Vec<(CompanyId, u64)> {
        let attempts = self.0.lock();
        let attempts = attempts.iter();
        attempts
            .map(|(company, attempts)| (company.clone(), *attempts))
            .collect()
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut attempts = self.of.0.lock();
        if let Some(own) = attempts.get_mut(&self.company) {
            *own -= 1;
            if *own == 0 {
                attempts.remove(&self.company);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each company's are counted by themselves, and a company without any is forgotten.
    #[test]
    fn attempts_count_until_they_end() {
        let in_flight = Arc::new(InFlight::default());
        let [one, other] = [(); 2].map(|()| CompanyId::generate());
        let begun = [&one, &other, &one].map(|company| in_flight.begin(company));
        let mut counted = in_flight.by_company();
        counted.sort_by_key(|(_, attempts)| *attempts);
        assert_eq!(counted, [(other, 1), (one.clone(), 2)]);
        let [first, second, third] = begun;
        drop((first, second));
        assert_eq!(in_flight.by_company(), [(one, 1)]);
        drop(third);
        assert!(in_flight.by_company().is_empty());
    }
}
