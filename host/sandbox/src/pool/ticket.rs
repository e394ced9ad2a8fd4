//! Where a caller waits for one answer. A one-shot channel that knows which session works on it, so
//! that a caller who leaves is noticed.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;

use super::session::Handle;
use crate::{columns::Output, fault::Fault};

pub(crate) type Answer = Result<Output, Fault>;

#[derive(Default)]
pub(crate) struct Ticket {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    answer: Option<Answer>,
    waker: Option<Waker>,
    answered: bool,
    gone: bool,
    session: Option<Arc<Handle>>,
}

impl Ticket {
    /// Gives the answer. Later ones are ignored: the first one counts.
    pub fn answer(&self, answer: Answer) {
        let mut inner = self.inner.lock();
        if inner.answered {
            return;
        }
        inner.answered = true;
        inner.session = None;
        if inner.gone {
            return;
        }
        inner.answer = Some(answer);
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Nobody waits any more.
    pub fn is_gone(&self) -> bool {
        self.inner.lock().gone
    }

    pub fn assign(&self, session: Option<Arc<Handle>>) {
        self.inner.lock().session = session;
    }
}

/// The caller's side. Dropping it before the answer cancels the request.
pub(crate) struct Waiting(pub Arc<Ticket>);

impl Future for Waiting {
    type Output = Answer;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let mut inner = self.0.inner.lock();
        match inner.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                match &mut inner.waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    none => *none = Some(cx.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock();
        inner.gone = true;
        inner.answer = None;
        if !inner.answered
            && let Some(session) = inner.session.take()
        {
            drop(inner);
            session.nudge();
        }
    }
}
