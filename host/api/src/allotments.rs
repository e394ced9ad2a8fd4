//! What companies have sent of the requests that their plans allow in a UTC month.
//!
//! A count begins with what the store has counted and goes on in memory, so that a call costs one atomic operation. What other hosts on
//! the same store count is learnt from it every [`READ_SECONDS`]. Knows no HTTP.

use parking_lot::Mutex;
use souk_domain::ids::CompanyId;
use souk_domain::time::Timestamp;
use souk_store::db::READ_WITHIN;
use souk_store::{AnyConnection, Db, StoreError, usage};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use tokio::sync::OnceCell;

use crate::limiter::Quota;

/// How late a host may learn what the others counted: a month has a quarter of a million times that.
const READ_SECONDS: u32 = 10;
/// No second: the store is being asked.
const ASKING: u32 = u32::MAX;
/// Companies in the table before those that no cached key belongs to are swept: about 150 bytes each.
const COMPANIES_MAX: usize = 10_000;

#[derive(Default)]
pub struct Allotments {
    companies: Mutex<HashMap<CompanyId, Arc<Allotment>>>,
}

/// What one company has sent this month.
pub struct Allotment {
    company: CompanyId,
    /// The second at which the month ends in the upper half, requests so far in the lower.
    sent: AtomicU64,
    /// The second at which the store was asked last, or [`ASKING`].
    read_at: AtomicU32,
    /// Set when the store was asked first.
    learnt: OnceCell<()>,
}

impl Allotments {
    /// That of a company, for the cached records of its keys.
    pub async fn company(
        &self,
        db: &mut AnyConnection,
        company: &CompanyId,
        now: Timestamp,
    ) -> Result<Arc<Allotment>, StoreError> {
        let allotment = self.known(company, now);
        // Those who come together wait for one answer.
        let asked = allotment.learn(db, now);
        allotment.learnt.get_or_try_init(|| asked).await?;
        Ok(allotment)
    }

    /// That of a company, whether or not it has learnt anything.
    fn known(&self, company: &CompanyId, now: Timestamp) -> Arc<Allotment> {
        let mut companies = self.companies.lock();
        if let Some(known) = companies.get(company) {
            return known.clone();
        }
        if companies.len() >= COMPANIES_MAX {
            companies.retain(|_, allotment| Arc::strong_count(allotment) > 1);
        }
        let allotment = Arc::new(Allotment::new(company, now));
        companies.insert(company.clone(), allotment.clone());
        allotment
    }
}

impl Allotment {
    fn new(company: &CompanyId, now: Timestamp) -> Allotment {
        Allotment {
            company: company.clone(),
            sent: AtomicU64::new(pack(ends(now), 0)),
            read_at: AtomicU32::new(seconds(now)),
            learnt: OnceCell::new(),
        }
    }

    /// What is left of so many requests.
    pub fn left(&self, limit: u32, now: Timestamp) -> Quota {
        let (reset, sent) = live(self.sent.load(Relaxed), now);
        Quota {
            limit,
            remaining: limit.saturating_sub(sent),
            reset,
        }
    }

    /// Requests sent this month.
    pub fn sent(&self, now: Timestamp) -> u32 {
        live(self.sent.load(Relaxed), now).1
    }

    /// Counts one request.
    pub fn count(&self, now: Timestamp) {
        self.set(now, |sent| sent.saturating_add(1));
    }

    /// Asks a store that several hosts write once in a while, behind the request's back.
    pub fn keep_up(self: &Arc<Self>, db: &Db, now: Timestamp) {
        let second = seconds(now);
        if db.is_shared() && self.begins_to_ask(second) {
            let (allotment, db) = (self.clone(), db.clone());
            tokio::spawn(async move {
                let learnt = async {
                    let mut read = db.read().await?;
                    allotment.learn(&mut read, now).await
                };
                if let Err(error) = db.answered(READ_WITHIN, learnt).await {
                    tracing::warn!(%error, "what other hosts counted could not be read; trying again later");
                }
                allotment.read_at.store(second, Relaxed);
            });
        }
    }

    /// Whether the store is to be asked now, by whoever is told so: one at a time, however long it takes to answer.
    fn begins_to_ask(&self, second: u32) -> bool {
        let read_at = self.read_at.load(Relaxed);
        let claim = || {
            self.read_at
                .compare_exchange(read_at, ASKING, Relaxed, Relaxed)
        };
        second.saturating_sub(read_at) >= READ_SECONDS && claim().is_ok()
    }

    /// The store lags behind what this host has counted, and knows what others have.
    async fn learn(&self, db: &mut AnyConnection, now: Timestamp) -> Result<(), StoreError> {
        let (month, _) = now.month();
        let stored = usage::company_requests(db, &self.company, month).await?;
        self.take_over(u32::try_from(stored).unwrap_or(u32::MAX), now);
        Ok(())
    }

    /// Raises the count to what was stored of the month of `now`, if that is the one being counted: the next may have begun while the store
    /// was asked.
    fn take_over(&self, stored: u32, now: Timestamp) {
        let end = ends(now);
        let _ = self.sent.fetch_update(Relaxed, Relaxed, |current| {
            let (until, sent) = live(current, now);
            (until == end).then(|| pack(until, sent.max(stored)))
        });
    }

    fn set(&self, now: Timestamp, next: impl Fn(u32) -> u32) {
        let _ = self.sent.fetch_update(Relaxed, Relaxed, |current| {
            let (ends, sent) = live(current, now);
            Some(pack(ends, next(sent)))
        });
    }
}

/// The end of the month and the count at `now`: a month that is over is a new one.
fn live(packed: u64, now: Timestamp) -> (u32, u32) {
    let (until, sent) = ((packed >> 32) as u32, packed as u32);
    match seconds(now) < until {
        true => (until, sent),
        false => (ends(now), 0),
    }
}

fn pack(until: u32, sent: u32) -> u64 {
    u64::from(until) << 32 | u64::from(sent)
}

fn ends(now: Timestamp) -> u32 {
    seconds(now.month().1)
}

fn seconds(at: Timestamp) -> u32 {
    u32::try_from(at.seconds()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A month ends at its last midnight, and the next begins with nothing.
    #[test]
    fn a_month_is_counted_for_itself() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let december = at("2026-12-31T23:59:59Z");
        let allotment = Allotment::new(&CompanyId::generate(), december);
        allotment.count(december);
        allotment.count(december);
        let left = allotment.left(3, december);
        let january = at("2027-01-01T00:00:00Z");
        assert_eq!((left.remaining, left.reset), (1, seconds(january)));
        assert_eq!(allotment.left(1, december).remaining, 0);
        assert_eq!((allotment.sent(january), allotment.sent(december)), (0, 2));
        allotment.count(january);
        assert_eq!(allotment.sent(january), 1);
        let left = allotment.left(3, january);
        assert_eq!(left.reset, seconds(at("2027-02-01T00:00:00Z")));
    }

    /// What was stored of a month counts in that month, and not in the next that has begun while the store was asked.
    #[test]
    fn what_is_learnt_of_a_month_counts_in_no_other() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let (december, january) = (at("2026-12-31T23:59:59Z"), at("2027-01-01T00:00:00Z"));
        let allotment = Allotment::new(&CompanyId::generate(), december);
        allotment.count(december);
        allotment.take_over(90_000, december);
        assert_eq!(allotment.left(100_000, december).remaining, 10_000);
        allotment.count(january);
        allotment.take_over(90_001, december);
        assert_eq!(allotment.left(100_000, january).remaining, 99_999);
        // What others have counted in it counts, and so does what the store has not heard of yet.
        for (stored, sent) in [(7, 7), (3, 7)] {
            allotment.take_over(stored, january);
            assert_eq!(allotment.sent(january), sent);
        }
        let untouched = Allotment::new(&CompanyId::generate(), december);
        untouched.take_over(5, january);
        assert_eq!(untouched.sent(january), 5);
    }

    /// A store that answers slowly is not asked again before it has answered.
    #[test]
    fn one_asks_at_a_time() {
        let now = Timestamp::parse("2026-12-01T00:00:00Z").unwrap();
        let allotment = Allotment::new(&CompanyId::generate(), now);
        let second = seconds(now);
        assert!(!allotment.begins_to_ask(second + READ_SECONDS - 1));
        assert!(allotment.begins_to_ask(second + READ_SECONDS));
        assert!(!allotment.begins_to_ask(second + 10 * READ_SECONDS));
        allotment.read_at.store(second + READ_SECONDS, Relaxed);
        assert!(allotment.begins_to_ask(second + 2 * READ_SECONDS));
    }
}
