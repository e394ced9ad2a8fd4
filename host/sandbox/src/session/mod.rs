//! One open session: a guest, its wire, and the requests in flight, all owned by one task on one
//! thread. Start reading at `run`, then `wire::serve`.

mod directory;
mod in_flight;
mod lease;
mod open;
mod wire;

use std::{sync::Arc, time::Duration};

pub(crate) use lease::{End, Lease};

use crate::{
    connector::Need,
    fault::{Blame, Fault, FaultKind},
    lanes::Task,
    pool::{Handle, Permit, Pool, shutting_down},
    v1::{
        Budget, Call, CallError, CheckedStep, Guest, GuestError, GuestState, MemoryAccount,
        MemoryGrant, reported,
    },
};

/// How long a request that nobody waits for any more may take to end before its session is dropped.
const GRACE: Duration = Duration::from_secs(2);

/// Bytes that a call may return on a worker. Lifting and checking them takes a millisecond or two; a call whose
/// input is large runs in a lane from the beginning.
const INLINE_BYTES: usize = 2 << 20;
/// Bytes that a call may return in a lane: a few times the largest result.
const CALL_BYTES: usize = 64 << 20;

/// Opens a session and serves it to its end. Dropped with its runtime, it fails what it holds.
pub(crate) async fn run(pool: Arc<Pool>, permit: Permit, home: u64) {
    let opening = Opening(Some(pool.clone()));
    let limit = pool.shared.options.limits.open_timeout;
    let opened = tokio::time::timeout(limit, open::open(&pool))
        .await
        .unwrap_or_else(|_| Err(open_timeout(&pool)));
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
                open::Opened::Directory(guest) => directory::serve(guest, &mut lease).await,
            };
            lease.finish(end);
        }
    }
}

/// A directory is there at once: whoever takes long over it is the connector.
fn open_timeout(pool: &Pool) -> Fault {
    let fault = match pool.is_on_files() {
        true => Fault::new(
            Blame::Connector,
            FaultKind::Timeout,
            "the connector did not open the files in time",
        ),
        false => Fault::new(
            Blame::Source,
            FaultKind::Unreachable,
            "the source did not take a session in time",
        ),
    };
    fault.code("open_timeout")
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
            drop(permit);
            pool.made_room();
        }
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
        if let Some(unlogged) = pool.logs(std::time::Instant::now()) {
            tracing::warn!(
                connector,
                version,
                connection,
                code = fault.code,
                detail,
                unlogged,
                "a connector failed to open a session"
            );
        }
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
    let is_wire = pool.connector.need != Need::Directory;
    Budget {
        memory: MemoryGrant {
            bytes_max: match is_wire {
                true => limits.wire_memory_bytes,
                false => limits.directory_memory_bytes,
            },
            account: Some(MemoryAccount {
                company: pool.tenant.clone(),
                company_max: limits.quota.memory_bytes,
                host: pool.shared.host.clone(),
                host_max: limits.guest_memory_bytes,
            }),
        },
        // A statement on files may compute until its deadline.
        call: match is_wire {
            true => limits.call_budget,
            false => Duration::MAX,
        },
        inline_bytes: INLINE_BYTES,
        call_bytes: CALL_BYTES,
        columns_max: limits.columns_max,
    }
}

/// Makes a guest's call in the compute lanes, in turns with those of other companies; its first turn here, if
/// `inline`. `None`: the host is shutting down.
fn in_lane<T: GuestState>(
    pool: &Pool,
    inline: bool,
    guest: Box<Guest<T>>,
    call: Call,
) -> Task<Called<T>> {
    pool.lanes().call(&pool.tenant, inline, guest.call(call))
}

type Called<T> = (Box<Guest<T>>, Result<CheckedStep, CallError>);

/// Gives a guest's memory back to the system, which takes milliseconds where it was large.
fn let_go<T: GuestState>(pool: &Pool, guest: Option<Box<Guest<T>>>) {
    if let Some(guest) = guest {
        let freed = async move { drop(guest) };
        pool.lanes().call(&pool.tenant, false, freed).detach();
    }
}

/// Why a guest's call failed, as an answer.
fn call_fault(error: CallError) -> Fault {
    match error {
        CallError::Lost(fault) | CallError::TooSlow(fault) => fault,
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
