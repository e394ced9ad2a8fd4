//! Those who have no key: all of them together read the host's own records few at a time, from however many addresses they ask. Knows no operation.
//!
//! Every handler without a caller that asks the store takes a [`NobodysRead`], as its last argument, so that what is wrong with a request costs
//! others no place, and so that the place is free before the rest of a body that nobody wants is taken from its client.

use crate::describe::{Argument, Describe, Description, Incoming};
use crate::problem::Problem;
use crate::refusals::{CONCURRENCY_LIMIT_EXCEEDED, SERVICE_UNAVAILABLE};
use crate::unread::Turn;
use souk_store::db;
use std::sync::Arc;

/// A place among the reads of all who have no key, until it is dropped and what was asked of the store has ended.
pub struct NobodysRead {
    _place: Arc<Turn>,
}

impl Describe for NobodysRead {
    fn describe(into: &mut Description) {
        into.refuse(&[CONCURRENCY_LIMIT_EXCEEDED, SERVICE_UNAVAILABLE]);
    }
}

impl Argument for NobodysRead {
    async fn take(incoming: &mut Incoming) -> Result<NobodysRead, Problem> {
        let place = Box::pin(incoming.state.nobody().read()).await;
        let place = Arc::new(place.ok_or_else(|| Problem::busy(1))?);
        db::hold(Arc::downgrade(&place));
        Ok(NobodysRead { _place: place })
    }
}
