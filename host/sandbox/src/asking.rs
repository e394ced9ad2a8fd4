//! What a thread and its sessions tell each other, which know nothing of the requests that the thread serves.
//!
//! A session tells its thread when it asks its source over HTTP: where a statement takes several exchanges, the next answer is likely to follow at once, as the
//! first one was when the request came. The thread tells a session whether it has anything else to do than the request that is submitted.

use std::cell::OnceCell;

thread_local! {
    static TOLD: OnceCell<Box<dyn Fn()>> = const { OnceCell::new() };
    static ALONE: OnceCell<Box<dyn Fn() -> bool>> = const { OnceCell::new() };
}

/// Has this called whenever a session of the calling thread has an HTTP request for its source. Of several on one thread only the first is.
pub fn when_asking(tell: impl Fn() + 'static) {
    TOLD.with(|told| {
        let _ = told.set(Box::new(tell));
    });
}

pub(crate) fn asking() {
    TOLD.with(|told| {
        if let Some(tell) = told.get() {
            tell();
        }
    });
}

/// Has this say whether the calling thread serves one request at most. Of several on one thread only the first does; where none does, a session has its
/// thread to itself.
pub fn when_alone(is_alone: impl Fn() -> bool + 'static) {
    ALONE.with(|alone| {
        let _ = alone.set(Box::new(is_alone));
    });
}

pub(crate) fn is_alone() -> bool {
    ALONE.with(|alone| alone.get().is_none_or(|is_alone| is_alone()))
}
