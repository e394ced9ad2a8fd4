//! What processes take of the machine.

use std::time::Duration;

/// What a process has used so far on all its threads. Unlike the clock on the wall it does not count what others take of the machine.
#[allow(unsafe_code)]
pub fn time_of(process: u32) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both functions are given valid places to write to; a process that is gone leaves zero.
    unsafe {
        let mut clock = 0;
        if libc::clock_getcpuclockid(process as libc::pid_t, &mut clock) == 0 {
            libc::clock_gettime(clock, &mut time);
        }
    }
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
