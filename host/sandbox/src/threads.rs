//! What the kernel is asked for about the threads of this host: who goes first, and for how long at a stretch.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use parking_lot::Mutex;

/// A slice of a thread that serves others, as all of the host do but the lanes, while a lane computes: where it wakes up it takes the core
/// from whoever has a longer one. At other times it has the kernel's own, because it would take the core from the clients and the sources
/// beside it, too, and they then wake each other for every single request: a tenth of the throughput of small ones.
const PROMPT: Duration = Duration::from_micros(100);
/// A slice of a thread that computes. A turn in the lanes is several of them, and offers the core to others at its end: who
/// does that gives up what is left of its slice, which therefore is not a long one.
pub(crate) const PATIENT: Duration = Duration::from_micros(200);
/// Some milliseconds, which depend on the number of processors.
const KERNELS_OWN: Duration = Duration::ZERO;

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

/// The threads of this process that compute, and how many of them have done so within a moment.
#[derive(Default)]
struct Computing {
    threads: HashSet<libc::pid_t>,
    awake: usize,
}

static COMPUTING: Mutex<Option<Computing>> = Mutex::new(None);

/// A thread that computes. While at least one is awake, those that serve are prompt.
pub(crate) struct Computes {
    thread: libc::pid_t,
    is_awake: bool,
}

impl Computes {
    /// The calling thread, from now on patient, which for now has nothing to do.
    pub fn register() -> Computes {
        set_slice(PATIENT);
        let thread = thread_id();
        let mut computing = COMPUTING.lock();
        computing.get_or_insert_default().threads.insert(thread);
        Computes {
            thread,
            is_awake: false,
        }
    }

    /// It has had something to do, and has not rested since.
    pub fn is_awake(&self) -> bool {
        self.is_awake
    }

    /// It has something to do. Costs nothing while it goes on having something.
    pub fn wake(&mut self) {
        if !std::mem::replace(&mut self.is_awake, true) {
            let mut computing = COMPUTING.lock();
            let computing = computing.get_or_insert_default();
            computing.awake += 1;
            if computing.awake == 1 {
                computing.serve_in(PROMPT);
            }
        }
    }

    /// It has had nothing to do for a while.
    pub fn rest(&mut self) {
        if std::mem::take(&mut self.is_awake) {
            let mut computing = COMPUTING.lock();
            let computing = computing.get_or_insert_default();
            computing.awake -= 1;
            if computing.awake == 0 {
                computing.serve_in(KERNELS_OWN);
            }
        }
    }
}

impl Drop for Computes {
    fn drop(&mut self) {
        self.rest();
        let mut computing = COMPUTING.lock();
        computing
            .get_or_insert_default()
            .threads
            .remove(&self.thread);
    }
}

impl Computing {
    /// Tells all threads of this process that do not compute. Those that begin later have the slice of who begins them.
    fn serve_in(&self, slice: Duration) {
        // Without /proc they keep what they have, which is a matter of latency only.
        for thread in threads().unwrap_or_default() {
            if !self.threads.contains(&thread) {
                set_slice_of(thread, slice);
            }
        }
    }
}

/// The threads of this process.
fn threads() -> io::Result<Vec<libc::pid_t>> {
    let tasks = std::fs::read_dir("/proc/self/task")?;
    let number =
        |task: io::Result<std::fs::DirEntry>| task.ok()?.file_name().to_str()?.parse().ok();
    Ok(tasks.filter_map(number).collect())
}

#[allow(unsafe_code)]
fn thread_id() -> libc::pid_t {
    // SAFETY: a system call without arguments that cannot fail.
    unsafe { libc::gettid() }
}

/// Of the calling thread, see [`set_slice_of`].
pub(crate) fn set_slice(slice: Duration) {
    set_slice_of(thread_id(), slice);
}

/// As `sched_setattr(2)` has it.
#[repr(C)]
#[derive(Default)]
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

/// For how long a thread runs at a stretch when others want its core. It is no more and no less of the core that it
/// gets, only in other pieces: the kernel compares slices when a thread wakes up (Linux 6.12; older ones do not listen). Nice and policy
/// are kept.
#[allow(unsafe_code)]
fn set_slice_of(thread: libc::pid_t, slice: Duration) {
    // SAFETY: `attributes` is a valid struct of the size that it names for the duration of the call.
    unsafe {
        let attributes = Attributes {
            size: size_of::<Attributes>() as u32,
            policy: libc::SCHED_OTHER as u32,
            nice: libc::getpriority(libc::PRIO_PROCESS, thread.cast_unsigned()),
            runtime_ns: slice.as_nanos() as u64,
            ..Attributes::default()
        };
        libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zero: of a kernel that knows no slices.
    #[allow(unsafe_code)]
    fn slice_of(thread: libc::pid_t) -> Duration {
        let mut attributes = Attributes::default();
        // SAFETY: `attributes` is a valid struct of the size that is named for the duration of the call.
        unsafe {
            let (to, size) = (&raw mut attributes, size_of::<Attributes>());
            libc::syscall(libc::SYS_sched_getattr, thread, to, size, 0);
        }
        Duration::from_nanos(attributes.runtime_ns)
    }

    /// Only while somebody computes do those that serve take the core from others beside them.
    #[test]
    fn threads_are_prompt_while_others_compute() {
        let own = slice_of(thread_id());
        if own.is_zero() {
            // Linux before 6.12.
            return;
        }
        let here = thread_id();
        std::thread::spawn(move || {
            let mut computes = Computes::register();
            computes.wake();
            assert_eq!(slice_of(here), PROMPT);
            assert_eq!(slice_of(thread_id()), PATIENT);
        })
        .join()
        .unwrap();
        // Lanes of other tests may be awake, for a second.
        for _ in 0..600 {
            if slice_of(here) == own {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("still {:?}", slice_of(here));
    }
}
