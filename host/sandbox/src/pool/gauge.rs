//! Counts the sessions of one data connection over all its pools, and of the whole host. A permit is
//! the right to have one open; dropping it gives it back and wakes who waited for it.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use crate::{loaded::Connector, tenants::Held};

/// Who may wait for a permit.
pub(crate) trait Waits: Send + Sync {
    fn is_waiting(&self) -> bool;
    fn wake(self: Arc<Self>);
}

#[derive(Default)]
pub(crate) struct Gauge {
    open: AtomicUsize,
    pools: Mutex<Vec<Weak<dyn Waits>>>,
}

impl Gauge {
    pub fn join(&self, pool: Weak<dyn Waits>) {
        let mut pools = self.pools.lock();
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(pool);
    }

    pub fn acquire(self: &Arc<Gauge>, max: usize) -> Option<Permit> {
        take(&self.open, max.max(1)).then(|| Permit {
            gauge: Some(self.clone()),
            total: None,
            held: None,
        })
    }
}

/// The right to have one session open.
pub(crate) struct Permit {
    gauge: Option<Arc<Gauge>>,
    total: Option<Total>,
    held: Option<Held>,
}

impl Permit {
    /// One of the host's sessions, and one of the company's.
    pub fn with(mut self, total: Total, held: Held) -> Permit {
        self.total = Some(total);
        self.held = Some(held);
        self
    }

    /// Gives it back without waking anybody: the caller holds the lock of a pool.
    pub fn forget(mut self) {
        if let Some(gauge) = self.gauge.take() {
            gauge.open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        drop((self.total.take(), self.held.take()));
        let Some(gauge) = self.gauge.take() else {
            return;
        };
        gauge.open.fetch_sub(1, Ordering::AcqRel);
        let waiting: Vec<Arc<dyn Waits>> = gauge
            .pools
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|pool| pool.is_waiting())
            .collect();
        for pool in waiting {
            pool.wake();
        }
    }
}

/// One of the host's sessions, counted at its connector too.
pub(crate) struct Total {
    pub open: Arc<AtomicUsize>,
    pub connector: Arc<Connector>,
}

impl Total {
    pub fn acquire(
        open: &Arc<AtomicUsize>,
        max: usize,
        connector: &Arc<Connector>,
    ) -> Option<Total> {
        take(open, max).then(|| {
            connector.stats.sessions.fetch_add(1, Ordering::AcqRel);
            Total {
                open: open.clone(),
                connector: connector.clone(),
            }
        })
    }
}

impl Drop for Total {
    fn drop(&mut self) {
        self.connector.stats.sessions.fetch_sub(1, Ordering::AcqRel);
        self.open.fetch_sub(1, Ordering::AcqRel);
    }
}

fn take(open: &AtomicUsize, max: usize) -> bool {
    open.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
        (count < max).then_some(count + 1)
    })
    .is_ok()
}
