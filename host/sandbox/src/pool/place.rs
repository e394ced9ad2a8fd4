//! Which session takes a request: one of the asking thread, or another thread's. Start reading at [`Sharing::session_for`].

use std::{
    cell::Cell,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use super::pace::{Pace, Speed};
use super::session::Handle;
use crate::{
    connector::{Need, Scope},
    loaded::Connector,
    request::Request,
};

/// A session whose oldest request is older than this is busy with something slow.
const JOIN_AGE_US: u64 = 2_000;
/// The same over HTTP, where only the answers of slow statements keep a guest busy. Requests of hundreds of clients at once take so long however
/// fast each is: on further sessions, or on another thread's, they would take longer.
const JOIN_AGE_HTTP_US: u64 = 50_000;
/// Requests in flight on one session. More gain nothing: the wire is full long before.
const DEPTH_MAX: usize = 64;
/// Over HTTP nobody waits behind somebody else's statement or function, however slow: so many share a session, whose guest they keep busy only with their
/// answers. All sessions of a data connection have thirty-two at the source then.
const SLOW_DEPTH_MAX: usize = 4;
/// Statements that nobody has run yet may take seconds, and on one stream each waits for those before it: a burst of them is spread over the sessions
/// that there may be, as far as it has more than so many for each.
const UNKNOWN_DEPTH_MAX: usize = 2;

/// So many requests on sessions of other threads are worth a session on files of one's own: each costs two wake-ups, some 15 us.
const FOREIGN_MAX: u32 = 64;

/// A session in its pool. Whose it is stands here, too: what a handle says changes with each request, on another core if it is not one's own.
pub(super) struct Seat {
    pub home: u64,
    pub handle: Arc<Handle>,
}

impl Deref for Seat {
    type Target = Arc<Handle>;

    fn deref(&self) -> &Arc<Handle> {
        &self.handle
    }
}

/// How requests share the sessions of a data connection.
#[derive(Clone, Copy)]
pub(super) struct Sharing {
    pipelining: bool,
    need: Need,
    /// Functions, too, which are asked once: who breaks the session of one ends all of them. So only where the connector is the platform's, and ends by itself
    /// what its callers have left.
    shares_calls: bool,
}

impl Sharing {
    pub fn of(connector: &Connector) -> Sharing {
        let need = connector.need;
        Sharing {
            pipelining: connector.pipelining && need != Need::Directory,
            need,
            shares_calls: need == Need::Http
                && connector.cancels
                && connector.scope == Scope::Platform,
        }
    }

    /// Whether one request waits for another that is slow, so that it matters which are not.
    pub fn knows_fast(self) -> bool {
        self.pipelining && self.need == Need::Tcp
    }

    /// Below how many requests in flight a session may be joined by this one.
    pub fn joins_below(self, request: &Request, pace: &Pace) -> usize {
        if !self.pipelining {
            return DEPTH_MAX;
        }
        match (pace.of(request), request) {
            (Speed::Fast, _) => DEPTH_MAX,
            (Speed::Unknown, _) => UNKNOWN_DEPTH_MAX,
            (Speed::Slow, Request::Query(_)) if self.shares_slow() => SLOW_DEPTH_MAX,
            (Speed::Slow, Request::Call(_)) if self.shares_calls => SLOW_DEPTH_MAX,
            (Speed::Slow, _) => 0,
        }
    }

    fn shares_slow(self) -> bool {
        self.need == Need::Http
    }

    fn join_age_us(self) -> u64 {
        match self.need {
            Need::Http => JOIN_AGE_HTTP_US,
            _ => JOIN_AGE_US,
        }
    }

    /// Whether a request that a session of another thread serves should find one on its own next time. A session on files has a page cache in
    /// its memory: a thread gets its first one when it has often asked those of others, and no second one for that. `foreign`: how often.
    pub fn is_worth_one_here(self, sessions: &[Seat], home: u64, foreign: &AtomicU32) -> bool {
        self.pipelining
            || (foreign.fetch_add(1, Ordering::Relaxed) % FOREIGN_MAX == FOREIGN_MAX - 1
                && sessions.iter().all(|session| session.home != home))
    }

    /// The session that takes a job which joins those with fewer than `joins_below` requests in flight, if there is one.
    pub fn session_for(
        self,
        sessions: &[Seat],
        home: u64,
        now_us: u64,
        joins_below: usize,
    ) -> Option<&Arc<Handle>> {
        let is_idle = |session: &Handle| session.depth.load(Ordering::Acquire) == 0;
        let joins = |session: &Handle, pipelining: bool| {
            let depth = session.depth.load(Ordering::Acquire);
            let oldest_us = session.oldest_us.load(Ordering::Relaxed);
            // Its guest is busy, or what it has shares with nobody.
            let is_alone = oldest_us == 0;
            let is_young = now_us.saturating_sub(oldest_us) < self.join_age_us();
            let is_shared = self.shares_slow() && depth < SLOW_DEPTH_MAX;
            let has_place = depth > 0 && depth < joins_below;
            pipelining && has_place && !is_alone && (is_young || is_shared)
        };
        // Of one's own. One on files serves one after the other. Who asks on its thread waits for it: mostly it has answered before another thread would
        // have woken up, and where it has not, those who joined are given back (`Lease::give_back`).
        let takes_turns = self.pipelining || self.need == Need::Directory;
        let of = |own: bool| {
            let sessions = sessions.iter();
            sessions.filter(move |seat| (seat.home == home) == own && !seat.is_closing())
        };
        of(true)
            .find(|session| joins(session, takes_turns))
            .or_else(|| of(true).find(|session| is_idle(session)))
            .or_else(|| {
                of(false).find(|session| is_idle(session) || joins(session, self.pipelining))
            })
            .map(|session| &session.handle)
    }

    /// Whether sessions that are being opened will do for the jobs that wait. `waiting`: of each, below how many requests it joins a session. Without
    /// pipelining each needs its own. With it they wait for one, by which all of them learn whether the source is there; where that takes sessions, as
    /// far as is known (`takes`), each counts for as much of one as it needs: who is slow for the whole, or over HTTP for a quarter.
    pub fn will_do_for(
        self,
        opening: usize,
        mut waiting: impl Iterator<Item = usize>,
        takes: bool,
    ) -> bool {
        let mut places = opening * DEPTH_MAX;
        waiting.all(|joins_below| {
            let needed = match (self.pipelining, takes) {
                (false, _) => DEPTH_MAX,
                (true, true) => DEPTH_MAX / joins_below.max(1),
                (true, false) => 1,
            };
            let has_place = needed <= places;
            places = places.saturating_sub(needed);
            has_place
        })
    }
}

/// Which sessions a request may be given to without changing threads: those opened by this thread
/// if it polls its own runtime; on a runtime with several threads, all that were opened there.
pub(crate) fn home() -> u64 {
    const UNKNOWN: u64 = u64::MAX;
    const SHARED: u64 = 0;
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static HOME: Cell<u64> = const { Cell::new(UNKNOWN) };
    }
    HOME.with(|home| {
        if home.get() == UNKNOWN {
            use tokio::runtime::{Handle, RuntimeFlavor};
            match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
                Ok(RuntimeFlavor::CurrentThread) => home.set(NEXT.fetch_add(1, Ordering::Relaxed)),
                Ok(_) => home.set(SHARED),
                Err(_) => return SHARED,
            }
        }
        home.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Call, Limits, Query, Route};

    const MS: u64 = 1_000;

    /// Whether a fast request joins a session, of its own thread, that has `depth` in flight, the oldest for `age_us`.
    fn joins(need: Need, depth: usize, age_us: u64) -> bool {
        let now_us = 1_000 * MS;
        joins_at(now_us, need, depth, now_us - age_us)
    }

    fn joins_at(now_us: u64, need: Need, depth: usize, oldest_us: u64) -> bool {
        let sharing = Sharing {
            pipelining: true,
            need,
            shares_calls: false,
        };
        let handle = Handle::new(1, oldest_us);
        handle.depth.store(depth, Ordering::Relaxed);
        let seats = [Seat { home: 1, handle }];
        sharing.session_for(&seats, 1, now_us, DEPTH_MAX).is_some()
    }

    #[test]
    fn fast_requests_join_others_that_are_young() {
        for need in [Need::Tcp, Need::Http] {
            assert!(joins(need, DEPTH_MAX - 1, MS));
            assert!(!joins(need, DEPTH_MAX, MS));
        }
        assert!(!joins(Need::Tcp, 1, 3 * MS));
    }

    /// Of hundreds of clients each waits for some milliseconds, and further sessions would not help.
    #[test]
    fn over_http_they_join_what_has_waited_for_the_processor() {
        assert!(joins(Need::Http, DEPTH_MAX - 1, 30 * MS));
        assert!(joins(Need::Http, SLOW_DEPTH_MAX - 1, 900 * MS));
        assert!(!joins(Need::Http, SLOW_DEPTH_MAX, 60 * MS));
    }

    /// A function is asked once, and shares its session only where that is known to outlive it; a statement is asked again.
    #[test]
    fn functions_share_sessions_of_the_platforms_connectors() {
        let limits = Limits::new(1, 1);
        let call = Request::Call(Call {
            route: Route::Function("f".into()),
            parameters: "{}".into(),
            asset_id: "ast_1".into(),
            request_id: "req_1".into(),
            execution_id: "exe_1".into(),
            limits,
        });
        let query = Request::Query(Query {
            text: "SELECT 1".into(),
            parameters: Vec::new(),
            limits,
        });
        let pace = Pace::default();
        for (shares_calls, depth) in [(true, SLOW_DEPTH_MAX), (false, 0)] {
            let sharing = Sharing {
                pipelining: true,
                need: Need::Http,
                shares_calls,
            };
            assert_eq!(sharing.joins_below(&call, &pace), depth);
            assert_eq!(sharing.joins_below(&query, &pace), DEPTH_MAX);
        }
    }

    /// What nothing is known of shares a stream with few; over HTTP nothing waits for it.
    #[test]
    fn unknown_statements_share_a_stream_with_few() {
        let query = |text: &str| {
            Request::Query(Query {
                text: text.into(),
                parameters: Vec::new(),
                limits: Limits::new(1, 1),
            })
        };
        for (need, depth) in [(Need::Tcp, UNKNOWN_DEPTH_MAX), (Need::Http, DEPTH_MAX)] {
            let sharing = Sharing {
                pipelining: true,
                need,
                shares_calls: false,
            };
            let pace = Pace::new(sharing.knows_fast());
            assert_eq!(sharing.joins_below(&query("SELECT 1"), &pace), depth);
            pace.learn(&query("SELECT 1"), std::time::Duration::from_micros(200));
            assert_eq!(sharing.joins_below(&query("SELECT 1"), &pace), DEPTH_MAX);
        }
    }

    /// Slow ones do not wait for one session one after the other: over tcp each needs its own, over HTTP a few share one. What is known of the source
    /// decides whether these are opened side by side.
    #[test]
    fn slow_ones_count_for_as_much_of_a_session_as_they_need() {
        let will_do = |pipelining, takes, opening, waiting: &[usize]| {
            let need = Need::Tcp;
            let sharing = Sharing {
                pipelining,
                need,
                shares_calls: false,
            };
            sharing.will_do_for(opening, waiting.iter().copied(), takes)
        };
        let (fast, few, alone) = ([DEPTH_MAX; DEPTH_MAX + 1], [SLOW_DEPTH_MAX; 9], [0; 9]);
        for takes in [true, false] {
            assert!(!will_do(true, takes, 0, &fast[..1]));
            assert!(will_do(true, takes, 1, &fast[1..]) && !will_do(true, takes, 1, &fast));
            assert!(will_do(false, takes, 2, &fast[..2]) && !will_do(false, takes, 2, &fast[..3]));
        }
        assert!(will_do(true, true, 2, &few[..8]) && !will_do(true, true, 2, &few));
        assert!(will_do(true, true, 2, &alone[..2]) && !will_do(true, true, 2, &alone[..3]));
        assert!(!will_do(true, true, 1, &[DEPTH_MAX, 0]));
        assert!(!will_do(true, true, 1, &[0, DEPTH_MAX]));
        assert!(will_do(true, false, 1, &few) && will_do(true, false, 1, &alone));
    }

    /// Also in the first moment of a host, when everything is young.
    #[test]
    fn nobody_joins_a_session_whose_guest_is_busy() {
        for now_us in [1, MS, 1_000 * MS] {
            assert!(!joins_at(now_us, Need::Tcp, 1, 0));
            assert!(!joins_at(now_us, Need::Http, 1, 0));
        }
    }
}
