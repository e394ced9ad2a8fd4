//! Open files: a client connection is one, and many systems start a process with 1,024 although they
//! would allow it far more.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

/// For the store, sessions at sources (a thousand), files in flight and logs.
const OWN: u64 = 1_536;
/// So many companies may have all of their sockets at once before anybody is short of descriptors.
const COMPANIES: u64 = 4;
/// Files that a company's connectors may hold open: 64 sessions, and as many in each. Where the system allows it they are beside all else.
const GUESTS_FILES: u64 = 64 * 64;
/// The last descriptors, or a quarter of few: no client connection takes them, whatever else is open.
const KEPT: u64 = 256;
/// Descriptors held for nothing, to be given up when there is no other: with each a client can be refused.
const SPARES: usize = 4;

/// What client connections may take.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub connections_max: usize,
    /// The kernel hands out the lowest free descriptor, so that a connection with this one or a higher says that so many are open.
    pub descriptors_max: i32,
    /// Clients that are being refused at once, out of what is kept.
    pub refusing_max: usize,
    /// Sockets of one company beyond the wires of its sessions: half of what clients leave is for others, however little that is.
    pub company_sockets: usize,
}

/// Raises the soft limit as far as the hard one, up to what `connections_max`, the sockets of some companies and the rest need.
/// Returns how many client connections there is room for, and how many sockets of one company.
pub fn make_room(connections_max: usize, company_sockets: usize) -> Room {
    let reserved = OWN + COMPANIES * company_sockets as u64;
    let allowed = raise(connections_max as u64 + reserved + COMPANIES * GUESTS_FILES);
    share_out(allowed, reserved, connections_max, company_sockets)
}

fn share_out(allowed: u64, reserved: u64, connections_max: usize, company_sockets: usize) -> Room {
    let reserved = reserved.min(allowed / 2);
    let kept = KEPT.min(allowed / 4);
    let at_most = |room: u64, max: usize| usize::try_from(room).unwrap_or(usize::MAX).clamp(1, max);
    Room {
        connections_max: at_most(allowed - reserved, connections_max),
        descriptors_max: i32::try_from(allowed - kept).unwrap_or(i32::MAX),
        refusing_max: kept as usize / 2,
        company_sockets: at_most(reserved / 2, company_sockets),
    }
}

/// Some descriptors in reserve. Cheap to clone.
#[derive(Clone)]
pub struct Spares(Arc<Mutex<Vec<File>>>);

impl Spares {
    pub fn new() -> Spares {
        let spares = Spares(Arc::default());
        spares.refill();
        spares
    }

    /// Gives one up, if there is one: the next descriptor that this process opens takes its place.
    pub fn lend(&self) -> bool {
        self.with(|files| files.pop().is_some())
    }

    /// Takes back as many as were given up, as far as there are any.
    pub fn refill(&self) {
        self.with(|files| {
            while files.len() < SPARES
                && let Ok(file) = File::open("/dev/null")
            {
                files.push(file);
            }
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut Vec<File>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
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

/// How much address space this process may have, if that is limited at all.
#[allow(
    unsafe_code,
    reason = "a system call that writes one structure of ours"
)]
pub fn address_space() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for writing, and the call writes nothing else.
    let is_read = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    (is_read && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_some_connections_and_never_for_more_than_asked() {
        assert_eq!(make_room(10, 10).connections_max, 10);
        let room = make_room(1_000_000, 640);
        assert!((1..=1_000_000).contains(&room.connections_max));
        assert!(room.descriptors_max > 0);
    }

    /// Where descriptors are few, clients leave half of them, and of these one company has half; where they are not, all have what they are promised.
    #[test]
    fn one_company_leaves_descriptors_to_others() {
        let (connections_max, sockets) = (10_000, 640);
        let reserved = OWN + COMPANIES * sockets as u64;
        let of = |allowed| share_out(allowed, reserved, connections_max, sockets);
        for (allowed, its) in [(256, 64), (1_024, 256), (2_048, 512), (4_096, 640)] {
            let room = of(allowed);
            let clients = usize::try_from(allowed / 2).unwrap();
            assert_eq!((room.connections_max, room.company_sockets), (clients, its));
        }
        let ample = of(connections_max as u64 + reserved);
        assert_eq!(
            (ample.connections_max, ample.company_sockets),
            (connections_max, sockets)
        );
    }

    #[test]
    fn spares_are_given_up_and_taken_back() {
        let spares = Spares::new();
        for _ in 0..SPARES {
            assert!(spares.lend());
        }
        assert!(!spares.lend());
        spares.refill();
        assert!(spares.lend());
    }
}
