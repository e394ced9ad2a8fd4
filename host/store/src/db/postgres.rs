//! The first connection to PostgreSQL: the pools only say that none came; this says why. And how long either side waits for the other.
//!
//! A network can lose a connection without telling its ends. The server then keeps the locks of what was under way, and whoever tries again
//! waits for them; the host waits for an answer that does not come. So the server ends a transaction that its client has left
//! alone ([`WRITER`]), sooner than anybody gives up waiting for its locks, and the host ends a connection that does not answer
//! ([`ANSWERED_WITHIN`], [`WRITTEN_WITHIN`], [`READ_WITHIN`]), later than the server may have reason to keep it waiting.

use crate::error::StoreError;
use crate::fields::Fields;
use souk_domain::time::Timestamp;
use sqlx::any::AnyConnectOptions;
use sqlx::{AnyConnection, ConnectOptions, Connection};
use std::io::ErrorKind;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How often a server is asked why it gives no connection, however many wait for one.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// What it takes over TLS from the other side of the world, with room.
const REACHED_WITHIN: Duration = Duration::from_secs(2);
const SILENT: &str =
    "PostgreSQL does not answer: is the address right, and nothing in between that drops packets?";

/// A server that starts beside the host needs some seconds.
const PAUSE: Duration = Duration::from_millis(250);

/// Of each connection. A search that looks dear to the planner would be compiled for some tenths of a second, or shared among processes that
/// have to be started, to run for some milliseconds.
///
/// A client that has gone without a word is noticed within a minute, where the system's own settings have two hours.
pub(super) const EACH: &[&str] = &[
    "SET jit = off; SET max_parallel_workers_per_gather = 0",
    "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3; SET tcp_user_timeout = '60s'",
];

/// Likewise, where the server can (from version 14 on, on most systems). One that computes looks every ten seconds whether its client is still there: what is
/// asked by a connection that is thrown away ends soon behind it, or whoever gives up again and again would have the server compute for one more each time.
pub(super) const WISHED: &str = "
    SELECT set_config(name, '10s', false) FROM pg_settings WHERE name = 'client_connection_check_interval'";

/// The same of one that writes. Between two statements of a transaction the host only computes, or waits for a reader, which its patience ends by then,
/// too. Locks are waited for longer than that, so that whoever meets those of a connection that was lost goes on behind it; migrations wait for
/// theirs as long as it takes.
pub(super) const WRITER: &[&str] = &[
    EACH[0],
    EACH[1],
    "SET idle_in_transaction_session_timeout = '5s'; SET lock_timeout = '10s'",
];

/// What begins or ends a transaction, and what takes no time to be found: it waits for no lock but for the disk, and for a standby where there is one.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(15);
/// What is done in one transaction, the time for locks of several statements included. Of what is large each has its part; migrations take as long as
/// they take.
pub(super) const WRITTEN_WITHIN: Duration = Duration::from_secs(120);
/// The same of the teller: a handful of statements, each of which waits for locks at most once.
pub(super) const TOLD_WITHIN: Duration = Duration::from_secs(60);
/// Of each of these statements: more than a lock is waited for. A network that has lost the connection is noticed while most of the holds of a batch are
/// still there. One that waits for several locks, each nearly as long as it may, is undone and tried again.
pub(super) const TOLD_EACH_WITHIN: Duration = ANSWERED_WITHIN;
/// What somebody waits for is read in tenths of a second, one thing after the other: so long after the last of them it is not answered any more.
pub const READ_WITHIN: Duration = Duration::from_secs(30);
/// What nobody waits for, or reads whole tables: forgetting, counting, proving the books.
pub const SWEPT_WITHIN: Duration = Duration::from_secs(600);
/// A connection is given back when what it was asked last has ended, whether or not somebody waits for that; within this time, or it is thrown away.
pub(super) const GIVEN_BACK_WITHIN: Duration = READ_WITHIN;

/// Connects once, and waits for a server that is not there yet, or still starts, for as long as `patience` lasts. Says in one sentence why it
/// cannot be used.
pub(super) async fn reach(
    options: &AnyConnectOptions,
    patience: Duration,
) -> Result<(), StoreError> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now()).max(PAUSE);
        let error = match tokio::time::timeout(left, options.connect()).await {
            Ok(Ok(connection)) => {
                connection.close().await.ok();
                return Ok(());
            }
            Ok(Err(error)) => error,
            Err(_) => return Err(StoreError::unavailable(SILENT)),
        };
        if !is_passing(&error) || Instant::now() + PAUSE >= until {
            return Err(StoreError::Unavailable(reason(&error)));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Why no connection came, as of the last time that the server was asked; `None`: it gives them.
#[derive(Default)]
pub(super) struct Unreached(Mutex<Option<(Instant, Option<String>)>>);

impl Unreached {
    /// What to tell whoever has waited for a connection in vain.
    pub(super) async fn why(&self, options: &AnyConnectOptions) -> StoreError {
        let mut asked = self.0.lock().await;
        let is_known = asked
            .as_ref()
            .is_some_and(|(at, _)| at.elapsed() < ASKED_EVERY);
        if !is_known {
            let reached = async { options.connect().await?.close().await };
            let reason = match tokio::time::timeout(REACHED_WITHIN, reached).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(reason(&error)),
                Err(_) => Some(SILENT.to_owned()),
            };
            *asked = Some((Instant::now(), reason));
        }
        match asked.as_ref().and_then(|(_, reason)| reason.clone()) {
            Some(reason) => StoreError::Unavailable(reason),
            // Others have them.
            None => StoreError::Busy,
        }
    }
}

/// What the server's own clock shows: those of hosts may differ.
pub(crate) async fn server_clock(db: &mut AnyConnection) -> Result<Timestamp, StoreError> {
    let now = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) AS value";
    sqlx::query(now).fetch_one(db).await?.time("value")
}

/// `false` of a standby, and of a server whose transactions only read unless they say otherwise, as providers have it to save a disk.
pub(super) async fn takes_writes(db: &mut AnyConnection) -> Result<bool, StoreError> {
    let is_writable = "SELECT CAST(CASE current_setting('transaction_read_only') WHEN 'on' THEN 0 ELSE 1 END AS BIGINT) AS value";
    let value = sqlx::query(is_writable).fetch_one(db).await?;
    Ok(value.number("value")? == 1)
}

/// Whether it may be otherwise in a moment.
fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        // What TLS refuses it will refuse again.
        sqlx::Error::Io(error) => !matches!(
            error.kind(),
            ErrorKind::InvalidInput | ErrorKind::InvalidData
        ),
        // Starting up, too many connections.
        sqlx::Error::Database(error) => matches!(error.code().as_deref(), Some("57P03" | "53300")),
        _ => false,
    }
}

/// One sentence: sqlx repeats what the server said on each level of its errors.
fn reason(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
            "PostgreSQL refuses connections: is it running, and listening at this address?"
                .to_owned()
        }
        sqlx::Error::Io(error) if error.kind() == ErrorKind::InvalidData => without_tls(error),
        sqlx::Error::Io(error) => format!("PostgreSQL cannot be reached: {error}"),
        sqlx::Error::Tls(error) => without_tls(error),
        sqlx::Error::Configuration(error) => format!("the URL cannot be used: {error}"),
        sqlx::Error::Database(error) => {
            let said = error.message();
            match error.code().as_deref() {
                Some("28P01" | "28000") => format!("PostgreSQL refuses this user: {said}"),
                Some("3D000") => format!("PostgreSQL does not have this database: {said}"),
                _ => format!("PostgreSQL refuses: {said}"),
            }
        }
        other => other.to_string(),
    }
}

fn without_tls(error: &dyn std::fmt::Display) -> String {
    format!(
        "no TLS with PostgreSQL: {error} (sslmode says what is demanded, sslrootcert whose certificates are believed)"
    )
}
