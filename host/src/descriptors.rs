//! Open files: a client connection is one, and many systems start a process with 1,024 although they
//! would allow it far more.

/// For the store, sessions at sources, files in flight and logs.
const RESERVED: u64 = 2_048;

/// Raises the soft limit as far as the hard one, up to what `connections_max` and the rest need.
/// Returns how many client connections there is room for.
pub fn make_room(connections_max: usize) -> usize {
    let wanted = connections_max as u64 + RESERVED;
    let allowed = raise(wanted);
    let room = allowed.saturating_sub(RESERVED.min(allowed / 2));
    usize::try_from(room)
        .unwrap_or(usize::MAX)
        .clamp(1, connections_max)
}

/// The soft limit that holds from now on.
#[allow(
    unsafe_code,
    reason = "two system calls that read and write one structure of ours"
)]
fn raise(wanted: u64) -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for writing, and the call writes nothing else.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return wanted;
    }
    if limit.rlim_cur >= wanted {
        return limit.rlim_cur;
    }
    let raised = libc::rlimit {
        rlim_cur: wanted.min(limit.rlim_max),
        ..limit
    };
    // SAFETY: `raised` is valid for reading; a refusal changes nothing.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
        raised.rlim_cur
    } else {
        limit.rlim_cur
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_some_connections_and_never_for_more_than_asked() {
        assert_eq!(make_room(10), 10);
        assert!((1..=usize::MAX).contains(&make_room(1_000_000)));
    }
}
