//! The pool's view of one open session: what it works on, and the way to give it more. The session
//! itself (guest and wire) lives in its own task.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::Context,
    time::Instant,
};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use super::{pace::hash, ticket::Ticket};
use crate::request::Request;

/// One request on its way.
pub(crate) struct Job {
    pub request: Request,
    pub deadline: Instant,
    pub ticket: Arc<Ticket>,
    /// Of whose name: those who wait are served by turns of their callers.
    pub caller: u64,
    /// Times that it was submitted to a session that then died.
    pub attempts: u8,
    /// It joins sessions with fewer requests than this; none, and none joins it, where it is slow at its source and others would wait behind it, or where two
    /// sessions have died that it shared.
    pub joins_below: usize,
}

impl Job {
    pub fn new(caller: &str, request: Request, deadline: Instant, ticket: Arc<Ticket>) -> Job {
        Job {
            request,
            deadline,
            ticket,
            caller: hash(caller),
            attempts: 0,
            joins_below: 0,
        }
    }
}

pub(crate) struct Handle {
    /// The thread whose runtime polls the session; see `home`.
    pub home: u64,
    pub opened: Instant,
    /// Requests given to it that are not answered yet.
    pub depth: AtomicUsize,
    /// When the oldest of them was submitted, in microseconds of the pool's clock.
    pub oldest_us: AtomicU64,
    /// When it last became idle, same clock.
    pub idle_us: AtomicU64,
    /// Takes no more requests; ends when it has answered those it has.
    closing: AtomicBool,
    /// Somebody who waited for an answer has gone.
    nudged: AtomicBool,
    inbox: Mutex<Vec<Job>>,
    waker: AtomicWaker,
}

impl Handle {
    pub fn new(home: u64, now_us: u64) -> Arc<Handle> {
        Arc::new(Handle {
            home,
            opened: Instant::now(),
            depth: AtomicUsize::new(0),
            oldest_us: AtomicU64::new(now_us),
            idle_us: AtomicU64::new(now_us),
            closing: AtomicBool::new(false),
            nudged: AtomicBool::new(false),
            inbox: Mutex::new(Vec::new()),
            waker: AtomicWaker::new(),
        })
    }

    /// Called by the pool, under its lock.
    #[inline]
    pub fn push(self: &Arc<Handle>, job: Job, now_us: u64) {
        job.ticket.assign(Some(self.clone()));
        if self.depth.fetch_add(1, Ordering::AcqRel) == 0 {
            // As if it had begun long ago: nobody joins it.
            let begun = if job.joins_below == 0 { 0 } else { now_us };
            self.oldest_us.store(begun, Ordering::Relaxed);
        }
        let mut inbox = self.inbox.lock();
        inbox.push(job);
        let first = inbox.len() == 1;
        drop(inbox);
        if first {
            self.waker.wake();
        }
    }

    /// What it works on takes long: nobody joins it until that is over.
    pub fn will_be_long(&self) {
        self.oldest_us.store(0, Ordering::Relaxed);
    }

    /// Moves all waiting jobs into `jobs`, which is empty.
    #[inline]
    pub fn take(&self, jobs: &mut Vec<Job>) {
        std::mem::swap(&mut *self.inbox.lock(), jobs);
    }

    #[inline]
    pub fn register(&self, cx: &Context<'_>) {
        self.waker.register(cx.waker());
    }

    #[inline]
    pub fn has_jobs(&self) -> bool {
        !self.inbox.lock().is_empty()
    }

    pub fn nudge(&self) {
        self.nudged.store(true, Ordering::Release);
        self.waker.wake();
    }

    pub fn take_nudge(&self) -> bool {
        self.nudged.load(Ordering::Relaxed) && self.nudged.swap(false, Ordering::AcqRel)
    }

    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.waker.wake();
    }

    #[inline]
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    pub fn is_idle(&self) -> bool {
        self.depth.load(Ordering::Acquire) == 0
    }
}
