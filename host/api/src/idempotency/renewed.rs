//! Claims of requests that are at work. Whoever asks again with the key of one that has lapsed has it done a second time, beside the first: so it
//! does not lapse while its operation is at work, nor while its answer is being kept, however long that takes. Start reading at [`meanwhile`].

use crate::state::ApiState;
use souk_domain::time::Timestamp;
use souk_store::idempotency::{self as store, Ticket};
use std::pin::pin;
use std::time::Duration;

/// How long a claim that the router makes holds where its host dies: it is renewed while that lives. The test before a publication may last a minute, and
/// what is waited for beside it longer still, as a connector's turn to be put to work.
const CLAIM: Duration = Duration::from_secs(60);
/// Several times before it lapses: the store may be away at some of them, and each has as long, so that one that a network swallows is not the last.
const RENEWED_EVERY: Duration = Duration::from_secs(10);

/// When a claim that is made or renewed now lapses. Not from when its request began: a body may be minutes on its way.
pub(super) fn lapses_at(state: &ApiState) -> Timestamp {
    state.app().clock.now().after(CLAIM)
}

/// Does `work`, and renews its claim meanwhile. How long that may be is its operation's business.
pub(super) async fn meanwhile<T>(
    state: &ApiState,
    ticket: &Ticket,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    loop {
        let renewed = async {
            tokio::time::sleep(RENEWED_EVERY).await;
            renew(state, ticket).await;
        };
        // Side by side: the work may be in the transaction that a renewal waits for.
        tokio::select! {
            done = &mut work => return done,
            () = renewed => {}
        }
    }
}

async fn renew(state: &ApiState, ticket: &Ticket) {
    let until = lapses_at(state);
    let renewed = state
        .db()
        .write(async |write| store::renew(write, ticket, until).await);
    let error = match tokio::time::timeout(RENEWED_EVERY, renewed).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(late) => late.to_string(),
    };
    tracing::warn!(error, "a claim on an Idempotency-Key could not be renewed");
}
