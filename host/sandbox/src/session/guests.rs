//! What a session does with its guest, whatever wire it is on: the budget of its calls, the lane in which they are made, and
//! what a failed one means.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::{
    connector::{Need, Scope},
    errands::ErrandPlace,
    fault::{Blame, Fault, FaultKind},
    lanes::Task,
    pool::{Pool, shutting_down},
    v1::{
        Budget, Call, CallError, CheckedStep, ErrorClass, Guest, GuestError, GuestState,
        MemoryGrant, reported,
    },
};

/// Bytes that a call may return on a worker. Lifting and checking them takes a millisecond or two; a call whose
/// input is large runs in a lane from the beginning, and where one returns more the session is lost and asked again there.
const INLINE_BYTES: usize = 2 << 20;
/// Bytes that a call may return in a lane: a few times the largest result.
const CALL_BYTES: usize = 64 << 20;

/// Bytes that may wait to be written: past that the guest is sending without being asked.
pub const UNSENT_BYTES_MAX: usize = 16 << 20;

/// Memory with which a company's connector may compute on a worker. An instruction that fills so much of it, none of which was ever touched, takes some
/// 3 ms there, and nothing interrupts it; 64 MiB take 37 (two virtual cores, 2026-11-27). The platform's connectors have none that would.
const ON_WORKER_BYTES: usize = 6 << 20;

pub(super) fn budget(pool: &Pool) -> Budget {
    let limits = &pool.shared.options.limits;
    let is_wire = pool.connector.need != Need::Directory;
    Budget {
        memory: MemoryGrant {
            bytes_max: match is_wire {
                true => limits.wire_memory_bytes,
                false => limits.directory_memory_bytes,
            },
            on_worker_max: match pool.connector.scope {
                Scope::Platform => usize::MAX,
                Scope::Company(_) => ON_WORKER_BYTES,
            },
            uncounted: 0,
            account: Some(pool.memory_account()),
        },
        is_suspended: pool.connector.need != Need::Tcp,
        // A statement on files may compute until its deadline.
        call: match is_wire {
            true => limits.call_budget,
            false => Duration::MAX,
        },
        call_per_mib: limits.call_budget_per_mib,
        inline_bytes: INLINE_BYTES,
        call_bytes: CALL_BYTES,
        columns_max: limits.columns_max,
        ticker: pool.shared.ticker.clone(),
    }
}

/// A guest of a session. Wherever that is dropped (when its task has ended, or a time limit cuts it), the guest's memory goes back to the
/// system in the lanes: that takes milliseconds where it was large, which a worker has not.
pub(crate) struct Kept<T: GuestState> {
    pool: Arc<Pool>,
    /// Absent while it is in a lane.
    guest: Option<Box<Guest<T>>>,
    /// On an errand: its place is free when the guest is.
    place: Option<Arc<ErrandPlace>>,
}

impl<T: GuestState> Kept<T> {
    /// Opens a guest in the lanes.
    pub(super) async fn open<F>(
        pool: &Arc<Pool>,
        place: Option<&Arc<ErrandPlace>>,
        open: F,
    ) -> Result<Kept<T>, Fault>
    where
        F: Future<Output = Result<Box<Guest<T>>, CallError>> + Send + 'static,
    {
        let (owned, place) = (pool.clone(), place.cloned());
        // One that is there when nobody waits any more is kept, too.
        let opened = pool.lanes().call(&pool.tenant, false, async move {
            open.await.map(|guest| Kept {
                pool: owned,
                guest: Some(guest),
                place,
            })
        });
        opened.await.ok_or_else(shutting_down)?.map_err(call_fault)
    }

    /// For a call on this worker.
    #[inline]
    pub(super) fn here(&mut self) -> Option<&mut Guest<T>> {
        self.guest.as_deref_mut()
    }

    /// Whether it has so much memory that one instruction could hold a worker.
    #[inline]
    pub(super) fn is_large(&self) -> bool {
        self.guest.as_deref().is_some_and(Guest::is_large)
    }

    /// Makes a call in the compute lanes, in turns with those of other companies; its first turn here, if `inline`. The guest comes back with
    /// the answer. `None`: it is in a lane already.
    pub(super) fn call_in_lane(&mut self, inline: bool, call: Call) -> Option<Task<Called<T>>> {
        let (guest, pool, place) = (self.guest.take()?, self.pool.clone(), self.place.take());
        Some(
            self.pool
                .lanes()
                .call(&self.pool.tenant, inline, async move {
                    let (guest, step) = guest.call(call, inline).await;
                    let guest = Some(guest);
                    (Kept { pool, guest, place }, step)
                }),
        )
    }

    /// The same with its first turn here. Most calls are over with that, and make no task. `None`: the guest is in a lane already.
    pub(super) fn call_here(&mut self, call: Call) -> Option<Begun<T>> {
        let guest = self.guest.take()?;
        // Made where it stays, and not moved there.
        let memory = Box::new_uninit();
        let mut called = Box::into_pin(Box::write(memory, guest.call(call, true)));
        // What gives its turn back has its next one in the lanes: nobody has to wake it.
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready((guest, step)) = called.as_mut().poll(&mut cx) {
            self.guest = Some(guest);
            return Some(Begun::Returned(step));
        }
        let (pool, place) = (self.pool.clone(), self.place.take());
        let goes_on = async move {
            let (guest, step) = called.await;
            let guest = Some(guest);
            (Kept { pool, guest, place }, step)
        };
        let pool = &self.pool;
        let task = pool.lanes().call(&pool.tenant, false, goes_on);
        Some(Begun::GoesOn(task))
    }
}

/// A call whose first turn was here.
pub(super) enum Begun<T: GuestState> {
    /// It is over, and the guest is back.
    Returned(Result<CheckedStep, CallError>),
    GoesOn(Task<Called<T>>),
}

impl<T: GuestState> Drop for Kept<T> {
    fn drop(&mut self) {
        if let Some(guest) = self.guest.take() {
            let place = self.place.take();
            let freed = async move {
                drop(guest);
                drop(place);
            };
            let pool = &self.pool;
            pool.lanes().call(&pool.tenant, false, freed).detach();
        }
    }
}

/// What the lanes answer; nothing where the host is shutting down.
pub(super) type Called<T> = (Kept<T>, Result<CheckedStep, CallError>);

/// Why a guest's call failed, as an answer.
pub(super) fn call_fault(error: CallError) -> Fault {
    match error {
        CallError::Lost(fault) | CallError::Cut(fault, _) => fault,
        CallError::Ended(error) => reported(error),
    }
}

/// The guest did what the contract does not allow.
pub(super) fn broken(reason: impl Into<String>) -> Fault {
    Fault::new(
        Blame::Connector,
        FaultKind::ContractBroken,
        "the connector broke its contract",
    )
    .detail(reason)
}

pub(super) fn is_unavailable(error: &GuestError) -> bool {
    error.class == ErrorClass::Unavailable
}
