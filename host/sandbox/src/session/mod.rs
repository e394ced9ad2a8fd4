//! One open session: a guest, its wire, and the requests in flight, all owned by one task on one
//! thread. Start reading at `start`, then `wire::serve`.

mod directory;
mod errand;
mod guests;
mod in_flight;
mod lease;
mod open;
mod outgoing;
mod wire;

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use tokio::runtime::Handle as Runtime;

use lease::Lease;

use crate::{
    fault::{Blame, Fault, FaultKind},
    journal::Stream,
    pool::{Handle, Permit, Pool, shutting_down},
};

/// Opens a session on this runtime and serves it to its end.
pub(crate) fn start(runtime: &Runtime, pool: Arc<Pool>, permit: Permit, home: u64) {
    runtime.spawn(run(pool, permit, home));
}

/// Dropped with its runtime, it fails what it holds.
async fn run(pool: Arc<Pool>, permit: Permit, home: u64) {
    let opening = Opening(Some(pool.clone()));
    let limit = pool.shared.options.limits.open_timeout;
    let opened = tokio::time::timeout(limit, open::open(&pool, None))
        .await
        .unwrap_or_else(|_| Err(open_timeout(&pool)));
    match opened {
        Err(fault) => {
            log_failure(&pool, &fault);
            let pause = opening.failed(permit, &fault);
            if !pause.is_zero() {
                // Whoever waits then has another one opened. In a task of its own, which is small.
                tokio::spawn(look_again(Arc::downgrade(&pool), pause));
            }
        }
        Ok(session) => {
            let handle = Handle::new(home, pool.shared.micros(Instant::now()));
            let mut lease = Lease::new(pool.clone(), handle.clone(), permit);
            opening.done();
            pool.add(&handle);
            let end = match session {
                open::Opened::Wire(wire) => {
                    Box::new(wire::WireSession::new(*wire))
                        .serve(&mut lease)
                        .await
                }
                open::Opened::Directory(guest) => directory::serve(guest, &mut lease).await,
            };
            lease.finish(end);
        }
    }
}

async fn look_again(pool: Weak<Pool>, pause: Duration) {
    tokio::time::sleep(pause).await;
    if let Some(pool) = pool.upgrade() {
        pool.kick();
    }
}

/// A directory is there at once, or lent within a part of this time: whoever takes longer over it is the connector.
fn open_timeout(pool: &Pool) -> Fault {
    let fault = match pool.is_on_files() {
        true => Fault::new(
            Blame::Connector,
            FaultKind::Timeout,
            "the connector did not open the files in time",
        ),
        false => Fault::new(
            Blame::Source,
            FaultKind::Unreachable,
            "the source did not take a session in time",
        ),
    };
    fault.code("open_timeout")
}

/// A session that is being opened: the pool counts on it.
struct Opening(Option<Arc<Pool>>);

impl Opening {
    fn done(mut self) {
        self.0 = None;
    }

    /// Returns how long the source is left alone now.
    fn failed(mut self, permit: Permit, fault: &Fault) -> Duration {
        let Some(pool) = self.0.take() else {
            return Duration::ZERO;
        };
        let pause = pool.open_failed(fault);
        drop(permit);
        pool.made_room();
        pause
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(pool) = self.0.take() {
            pool.open_failed(&shutting_down());
        }
    }
}

fn log_failure(pool: &Pool, fault: &Fault) {
    let (connector, version) = (&pool.connector.name, &pool.connector.version);
    let connection = &pool.source.connection;
    let speaker = &pool.speaker;
    let detail = speaker.redacted(fault.detail.clone().unwrap_or_default());
    if fault.blame == Blame::Connector {
        pool.connector
            .stats
            .traps
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        speaker.say(Stream::Fault, &speaker.redacted(fault.told()));
        if let Some(unlogged) = pool.logs(Instant::now()) {
            tracing::warn!(
                connector,
                version,
                connection,
                code = fault.code,
                detail,
                unlogged,
                "a connector failed to open a session"
            );
        }
    } else {
        tracing::debug!(
            connector,
            version,
            connection,
            code = fault.code,
            detail,
            "no session could be opened"
        );
    }
}
