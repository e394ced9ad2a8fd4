//! One open session: a guest, its wire, and the requests in flight, all owned by one task on one
//! thread. Start reading at `run`, then `wire::serve`.

mod directory;
mod flights;
mod lease;
mod open;
mod wire;

use std::{sync::Arc, time::Duration};

pub(crate) use lease::{End, Lease};

use crate::{
    fault::{Blame, Fault, FaultKind},
    pool::{Handle, Permit, Pool, shutting_down},
    v1::{Budget, CallError, GuestError, reported},
};

/// How long a request that nobody waits for any more may take to end before its session is dropped.
const GRACE: Duration = Duration::from_secs(2);

/// A call while a session is opened may take this many times what a later one may.
const OPEN_CALL_FACTOR: u64 = 4;

/// Opens a session and serves it to its end. Dropped with its runtime, it fails what it holds.
pub(crate) async fn run(pool: Arc<Pool>, permit: Permit, home: u64) {
    let opening = Opening(Some(pool.clone()));
    let limit = pool.shared.options.limits.open_timeout;
    let opened = tokio::time::timeout(limit, open::open(&pool))
        .await
        .unwrap_or_else(|_| {
            Err(Fault::new(
                Blame::Source,
                FaultKind::Unreachable,
                "the source did not take a session in time",
            )
            .code("open_timeout"))
        });
    match opened {
        Err(fault) => {
            log_failure(&pool, &fault);
            opening.failed(permit, &fault);
        }
        Ok(session) => {
            let handle = Handle::new(home, pool.shared.micros(std::time::Instant::now()));
            let mut lease = Lease::new(pool.clone(), handle.clone(), permit);
            opening.done();
            pool.add(&handle);
            let end = match session {
                open::Opened::Wire(session) => session.serve(&mut lease).await,
                open::Opened::Directory(guest) => directory::serve(*guest, &mut lease).await,
            };
            lease.finish(end);
        }
    }
}

/// A session that is being opened: the pool counts on it.
struct Opening(Option<Arc<Pool>>);

impl Opening {
    fn done(mut self) {
        self.0 = None;
    }

    fn failed(mut self, permit: Permit, fault: &Fault) {
        if let Some(pool) = self.0.take() {
            pool.open_failed(fault);
        }
        drop(permit);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(pool) = self.0.take() {
            pool.open_failed(&shutting_down());
        }
    }
}

fn log_failure(pool: &Pool, fault: &Fault) {
    let (connector, version) = (&pool.connector.name, &pool.connector.version);
    let connection = &pool.source.connection;
    let detail = fault.detail.as_deref().unwrap_or_default();
    if fault.blame == Blame::Connector {
        pool.connector
            .stats
            .traps
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        tracing::warn!(
            connector,
            version,
            connection,
            code = fault.code,
            detail,
            "a connector failed to open a session"
        );
    } else {
        tracing::debug!(
            connector,
            version,
            connection,
            code = fault.code,
            detail,
            "no session could be opened"
        );
    }
}

fn budget(pool: &Pool) -> Budget {
    let limits = &pool.shared.options.limits;
    Budget {
        call_ticks: OPEN_CALL_FACTOR * pool.shared.call_ticks,
        // No call can return more than a few times what a guest can hold.
        lift_bytes: 2 * limits
            .wire_memory_bytes
            .max(limits.directory_memory_bytes / 2),
    }
}

/// Why a guest's call failed, as an answer.
fn call_fault(error: CallError) -> Fault {
    match error {
        CallError::Lost(fault) => fault,
        CallError::Ended(error) => reported(error),
    }
}

/// The guest did what the contract does not allow.
fn broken(reason: impl Into<String>) -> Fault {
    Fault::new(
        Blame::Connector,
        FaultKind::ContractBroken,
        "the connector broke its contract",
    )
    .detail(reason)
}

fn is_unavailable(error: &GuestError) -> bool {
    error.class == crate::v1::ErrorClass::Unavailable
}
