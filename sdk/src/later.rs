//! What a session waits for without its wire: pauses, and errands that another session runs.

use crate::io::Shared;
use std::collections::HashMap;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Those under way, by number: pauses and errands are numbered together.
#[derive(Default)]
pub(crate) struct Later {
    last_id: u32,
    waiting: HashMap<u32, Awaited>,
}

#[derive(Default)]
struct Awaited {
    /// How it ended: an errand may have failed.
    ended: Option<Option<String>>,
    waker: Option<Waker>,
}

/// Takes a number; dropping the guard forgets it, and what comes for it is ignored then.
pub(crate) fn begin(shared: &Shared) -> (u32, Forget<'_>) {
    let later = &mut *shared.later.borrow_mut();
    later.last_id = later.last_id.wrapping_add(1);
    let id = later.last_id;
    later.waiting.insert(id, Awaited::default());
    (id, Forget { shared, id })
}

/// Waits for it. `Some` says why an errand failed.
pub(crate) async fn end(shared: &Shared, id: u32) -> Option<String> {
    poll_fn(|context| {
        let mut later = shared.later.borrow_mut();
        let Some(awaited) = later.waiting.get_mut(&id) else {
            return Poll::Pending;
        };
        match awaited.ended.take() {
            Some(ended) => Poll::Ready(ended),
            None => {
                awaited.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}

pub(crate) struct Forget<'a> {
    shared: &'a Shared,
    id: u32,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.shared.later.borrow_mut().waiting.remove(&self.id);
    }
}

impl Shared {
    /// A pause is over, or an errand has ended.
    pub(crate) fn came(&self, id: u32, failure: Option<String>) {
        let waker = match self.later.borrow_mut().waiting.get_mut(&id) {
            None => return,
            Some(awaited) => {
                awaited.ended = Some(failure);
                awaited.waker.take()
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
