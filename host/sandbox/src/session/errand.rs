//! An errand: a message that a session hands to a second one of the same connection, which is opened for it and closed when it has ended. It is
//! no session of the pool's: it takes no request, and is there when every other one is busy, as a cancel request must be.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::{
    guests::broken,
    lease::Lease,
    open::{self, Opened},
    outgoing::Later,
    wire::WireSession,
};
use crate::{
    errands::ErrandPlace,
    fault::{Blame, Fault, FaultKind},
    pool::{Handle, Job, Pool, Ticket, Waiting, home, timed_out},
    request::{Errand, Limits, Request},
    v1::{Message, Received, Reply},
    wire::Dialer,
};

/// From asking for a place to the answer. Who has not ended by then, or earlier where another company waits for the place, is dropped where it is: its guest is freed in the lanes ([`Kept`]), and
/// its place with that.
///
/// [`Kept`]: super::guests::Kept
const ERRAND_TIMEOUT: Duration = Duration::from_secs(5);
/// KILL QUERY and a number.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// Runs an errand, whether or not its session lives to hear of it.
pub(super) fn confer(pool: &Arc<Pool>, dialer: &Dialer, message: Message) -> Result<Later, Fault> {
    let Message { id, bytes } = message;
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(broken(format!(
            "it conferred about more than {MESSAGE_BYTES_MAX} bytes"
        )));
    }
    let (told, ended) = oneshot::channel();
    match dialer.account.aside() {
        None => drop(told.send(Some(
            "this company has no room for another connection now".to_owned(),
        ))),
        Some(socket) => {
            let pool = pool.clone();
            tokio::spawn(async move {
                let _socket = socket;
                let ended = tokio::time::timeout(ERRAND_TIMEOUT, run(&pool, bytes)).await;
                let failure = ended.unwrap_or_else(|_| Err(timed_out())).err();
                let failure = failure.map(|fault| match fault.detail {
                    Some(detail) => format!("{}: {detail}", fault.message),
                    None => fault.message,
                });
                if let Some(failure) = &failure {
                    tracing::debug!(
                        connection = pool.source.connection,
                        failure,
                        "an errand failed"
                    );
                }
                // The session may be gone.
                let _ = told.send(failure);
            });
        }
    }
    Ok(Box::pin(ended.map(move |failure| {
        let failure = failure.unwrap_or_else(|_| Some("this host is shutting down".to_owned()));
        Some(Received::Conferred(Reply { id, failure }))
    })))
}

async fn run(pool: &Arc<Pool>, message: Vec<u8>) -> Result<(), Fault> {
    let deadline = Instant::now() + ERRAND_TIMEOUT;
    let errands = &pool.shared.errands;
    let place = errands.place(&pool.tenant).await;
    tokio::select! {
        ended = run_in(pool, message, deadline, place) => ended,
        () = errands.wanted() => Err(gave_way()),
    }
}

async fn run_in(
    pool: &Arc<Pool>,
    message: Vec<u8>,
    deadline: Instant,
    place: ErrandPlace,
) -> Result<(), Fault> {
    let place = Arc::new(place);
    let mut session = match open::open(pool, Some(&place)).await? {
        Opened::Wire(wire) => Box::new(WireSession::new(*wire)),
        Opened::Directory(_) => return Err(broken("it conferred, and there is no wire")),
    };
    session.is_on_errand();
    let now_us = pool.shared.micros(Instant::now());
    let handle = Handle::new(home(), now_us);
    let ticket = Arc::new(Ticket::default());
    let waiting = Waiting(ticket.clone());
    let errand = Errand {
        message,
        limits: Limits::new(0, 0),
    };
    let caller = &pool.source.company;
    let job = Job::new(caller, Request::Errand(errand), deadline, ticket);
    handle.push(job, now_us);
    // It ends when it has answered this.
    handle.close();
    let mut lease = Lease::errand(pool.clone(), handle);
    let end = session.serve(&mut lease).await;
    lease.finish(end);
    waiting.await.map(drop)
}

fn gave_way() -> Fault {
    Fault::new(
        Blame::Source,
        FaultKind::Timeout,
        "the source did not answer soon, and another company waited for its turn",
    )
    .code("deadline_exceeded")
}
