//! What the kernel is asked for about the threads of this host: who goes first, and for how long at a stretch.

use std::time::Duration;

/// A slice of a thread that serves others, as all of the host do but the lanes: where it wakes up it takes the core from
/// whoever has a longer one.
pub const PROMPT: Duration = Duration::from_micros(100);
/// A slice of a thread that computes. A turn in the lanes is several of them, and offers the core to others at its end: who
/// does that gives up what is left of its slice, which therefore is not a long one.
pub const PATIENT: Duration = Duration::from_micros(200);

/// Processor time of this thread.
#[allow(unsafe_code)]
pub(crate) fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid struct for the duration of the call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Of this thread: on Linux the "process" 0 is the calling thread.
#[allow(unsafe_code)]
pub(crate) fn lower_priority(by: i32) {
    // SAFETY: plain system calls about the calling thread. A refusal leaves the priority as it is.
    unsafe {
        let now = libc::getpriority(libc::PRIO_PROCESS, 0);
        libc::setpriority(libc::PRIO_PROCESS, 0, now + by);
    }
}

/// For how long this thread runs at a stretch when others want its core. It is no more and no less of the core that it
/// gets, only in other pieces: the kernel compares slices when a thread wakes up (Linux 6.12; older ones do not listen).
#[allow(unsafe_code)]
pub fn set_slice(slice: Duration) {
    /// As `sched_setattr(2)` has it; nice and policy are kept.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    // SAFETY: `attributes` is a valid struct of the size that it names for the duration of the call.
    unsafe {
        let attributes = Attributes {
            size: size_of::<Attributes>() as u32,
            policy: libc::SCHED_OTHER as u32,
            flags: 0,
            nice: libc::getpriority(libc::PRIO_PROCESS, 0),
            priority: 0,
            runtime_ns: slice.as_nanos() as u64,
            deadline_ns: 0,
            period_ns: 0,
        };
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
    }
}
