//! Memory of what is written in C: SQLite, mostly.

/// One heap of it for all threads. By itself glibc gives each thread one, and each of them keeps what was once needed there: a page cache that
/// has moved on from thread to thread left 20 to 30 MiB behind, a sixth of a small host's memory.
pub fn share() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(
        unsafe_code,
        reason = "one setting of the allocator, before any thread is started"
    )]
    {
        // SAFETY: changes one number of the allocator's. Where it does not know the setting it answers 0 and changes nothing.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}
