//! Who may have a session opened for an errand. A statement that is to be stopped is stopped now or not at all, so nobody's errands may
//! keep another company's from beginning: most places are for companies that hold none of them, and where a company that has none waits, errands
//! that have taken long end. Knows nothing of sessions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::tenants::Tenant;

/// Sessions of errands, of all companies at once: the engine keeps memory for them.
pub(crate) const ERRANDS_MAX: u32 = FIRSTS_MAX + OTHERS_MAX;
/// Of them, those of which no company holds two: so many companies' sources have to be silent before another company waits for a place.
const FIRSTS_MAX: u32 = 24;
/// The others, for whoever comes first: a company that has several statements stopped at once, and two such companies.
const OTHERS_MAX: u32 = 8;
/// What every errand has for itself: enough for a new connection, TLS and a login on another continent. Who waits has five seconds: its turn comes
/// within two of them, and within four behind as many companies as there are places.
const OWN_TIME: Duration = Duration::from_secs(2);
/// How often one that has had that looks whether somebody waits.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The places of one host.
pub(crate) struct Errands {
    firsts: Arc<Semaphore>,
    others: Arc<Semaphore>,
    /// Companies that have none, and wait for one of these.
    waiting: AtomicUsize,
}

/// One errand's place, of its company and of the host. It is given back when the guest is freed that it is held for.
pub(crate) struct ErrandPlace {
    _permits: [Option<OwnedSemaphorePermit>; 3],
}

impl Default for Errands {
    fn default() -> Errands {
        let places = |count: u32| Arc::new(Semaphore::new(count as usize));
        Errands {
            firsts: places(FIRSTS_MAX),
            others: places(OTHERS_MAX),
            waiting: AtomicUsize::new(0),
        }
    }
}

impl Errands {
    /// Waits for a place.
    pub async fn place(&self, tenant: &Tenant) -> ErrandPlace {
        let of_company = permit(tenant.errands()).await;
        let other = permit(self.others.clone());
        tokio::pin!(other);
        let (first, of_host) = tokio::select! {
            biased;
            first = permit(tenant.first_errand()) => {
                let _waiting = Waiting::one(&self.waiting);
                let of_host = tokio::select! {
                    biased;
                    of_host = permit(self.firsts.clone()) => of_host,
                    of_host = &mut other => of_host,
                };
                (first, of_host)
            }
            of_host = &mut other => (None, of_host),
        };
        ErrandPlace {
            _permits: [of_company, first, of_host],
        }
    }

    /// Ends when an errand that begins now has had its time, and its place is wanted.
    pub async fn wanted(&self) {
        tokio::time::sleep(OWN_TIME).await;
        while self.waiting.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// One that waits, until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn one(waiting: &AtomicUsize) -> Waiting<'_> {
        waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A semaphore that is never closed has one sooner or later.
async fn permit(of: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    of.acquire_owned().await.ok()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::tenants::Tenants;

    /// Eight companies that want all they may have leave a place for each of sixteen others, whose second one waits; and what is given back
    /// is had by who waits.
    #[test]
    fn a_companys_second_errand_takes_no_place_of_anothers_first() {
        let (errands, tenants) = (Errands::default(), Tenants::default());
        let place = |company: &str| {
            let tenant = tenants.of(company);
            errands.place(&tenant).now_or_never()
        };
        let greedy = (0..8).map(|number| format!("greedy {number}"));
        let wanted = greedy.flat_map(|company| [(); 4].map(|()| company.clone()));
        let held: Vec<_> = wanted.filter_map(|company| place(&company)).collect();
        assert_eq!(held.len(), 8 + 8, "a first one each, and eight others");
        let mut others: Vec<_> = (0..16)
            .map(|number| place(&format!("other {number}")))
            .collect();
        assert!(others.iter().all(Option::is_some));
        assert!(place("other 0").is_none(), "its second one");
        assert!(place("one more").is_none(), "there are no more");
        others.pop();
        let late = place("one more");
        assert!(late.is_some());
        drop(held);
        assert!(place("other 0").is_some());
    }

    /// A place is wanted where a company has none and waits for one, not where one of its own does; and no errand loses it at once.
    #[tokio::test]
    async fn a_place_is_wanted_by_who_has_none() {
        let (errands, tenants) = (Errands::default(), Tenants::default());
        let companies: Vec<_> = (0..ERRANDS_MAX)
            .map(|number| tenants.of(&number.to_string()))
            .collect();
        let mut held = Vec::new();
        for company in &companies {
            held.push(errands.place(company).await);
        }
        let is_wanted = async || {
            let wanted = tokio::time::timeout(OWN_TIME + 5 * LOOK_EVERY, errands.wanted());
            wanted.await.is_ok()
        };
        let second = errands.place(&companies[0]);
        tokio::pin!(second);
        assert!(second.as_mut().now_or_never().is_none());
        assert!(!is_wanted().await);

        let late = tenants.of("late");
        let first = errands.place(&late);
        tokio::pin!(first);
        assert!(first.as_mut().now_or_never().is_none());
        assert!(errands.wanted().now_or_never().is_none());
        assert!(is_wanted().await);
        held.remove(0);
        let _first = first.await;
        assert!(!is_wanted().await);
    }

    /// A company has four at most, and its first place again when it has given that back.
    #[test]
    fn a_company_has_four() {
        let (errands, tenants) = (Errands::default(), Tenants::default());
        let tenant = tenants.of("company");
        let place = || errands.place(&tenant).now_or_never();
        let mut held: Vec<_> = (0..4).map(|_| place().unwrap()).collect();
        assert!(place().is_none());
        assert_eq!(errands.others.available_permits(), OTHERS_MAX as usize - 3);
        held.remove(0);
        assert_eq!(errands.firsts.available_permits(), FIRSTS_MAX as usize);
        held.push(place().unwrap());
        assert_eq!(errands.firsts.available_permits(), FIRSTS_MAX as usize - 1);
    }
}
