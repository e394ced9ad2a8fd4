//! Tells a thread when one of its sessions asks its source over HTTP: where a statement takes several exchanges, the next answer is likely to follow
//! at once, as the first one was when the request came.

use std::cell::OnceCell;

thread_local! {
    static TOLD: OnceCell<Box<dyn Fn()>> = const { OnceCell::new() };
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
