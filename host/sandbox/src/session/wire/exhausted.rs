//! Why an HTTP request of a guest's failed, where its company had used up what that needed. The guest knows only that it did.

use crate::{fault::Fault, session::guests::is_unavailable, v1::GuestError};

/// What the company had used up that an HTTP request of the guest's needed, the last such one: the guest knows only that it failed.
#[derive(Default)]
pub(super) struct Exhausted {
    fault: Option<Fault>,
    /// No HTTP request has ended since.
    is_last: bool,
}

impl Exhausted {
    /// An HTTP request has ended, for which the company had used up this.
    #[inline]
    pub fn ended(&mut self, exhausted: Option<Fault>) {
        self.is_last = exhausted.is_some();
        if self.is_last {
            self.fault = exhausted;
        }
    }

    /// It, where that is what a request failed with. The guest may have asked its source for something since, as to stop what it had begun: then it is known by
    /// the host's own words, which the guest has had with the failure.
    pub fn told(&mut self, error: &GuestError) -> Option<Fault> {
        let fault = self.fault.as_ref().filter(|_| is_unavailable(error))?;
        let is_in_its_words = error.detail.as_ref() == Some(&fault.message);
        (std::mem::take(&mut self.is_last) || is_in_its_words).then(|| fault.clone())
    }
}
