//! What a session does with its guest, whatever wire it is on: the budget of its calls, the lane in which they are made, and
//! what a failed one means.

use std::time::Duration;

use crate::{
    connector::Need,
    fault::{Blame, Fault, FaultKind},
    lanes::Task,
    pool::Pool,
    v1::{
        Budget, Call, CallError, CheckedStep, ErrorClass, Guest, GuestError, GuestState,
        MemoryAccount, MemoryGrant, reported,
    },
};

/// Bytes that a call may return on a worker. Lifting and checking them takes a millisecond or two; a call whose
/// input is large runs in a lane from the beginning.
const INLINE_BYTES: usize = 2 << 20;
/// Bytes that a call may return in a lane: a few times the largest result.
const CALL_BYTES: usize = 64 << 20;

pub(super) fn budget(pool: &Pool) -> Budget {
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
pub(super) fn in_lane<T: GuestState>(
    pool: &Pool,
    inline: bool,
    guest: Box<Guest<T>>,
    call: Call,
) -> Task<Called<T>> {
    pool.lanes().call(&pool.tenant, inline, guest.call(call))
}

pub(super) type Called<T> = (Box<Guest<T>>, Result<CheckedStep, CallError>);

/// Gives a guest's memory back to the system, which takes milliseconds where it was large.
pub(super) fn let_go<T: GuestState>(pool: &Pool, guest: Option<Box<Guest<T>>>) {
    if let Some(guest) = guest {
        let freed = async move { drop(guest) };
        pool.lanes().call(&pool.tenant, false, freed).detach();
    }
}

/// Why a guest's call failed, as an answer.
pub(super) fn call_fault(error: CallError) -> Fault {
    match error {
        CallError::Lost(fault) | CallError::TooSlow(fault) => fault,
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
