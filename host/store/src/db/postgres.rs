//! The first connection to PostgreSQL: the pools only say that none came; this says why.

use crate::error::StoreError;
use sqlx::any::AnyConnectOptions;
use sqlx::{ConnectOptions, Connection};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// A server that starts beside the host needs some seconds.
const PAUSE: Duration = Duration::from_millis(250);

/// Of each connection. A search that looks dear to the planner would be compiled for some tenths of a second, or shared among processes that
/// have to be started, to run for some milliseconds.
pub(super) const EACH: &[&str] = &["SET jit = off", "SET max_parallel_workers_per_gather = 0"];

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
            Err(_) => {
                return Err(StoreError::unavailable(
                    "PostgreSQL does not answer: is the address right, and nothing in between that drops packets?",
                ));
            }
        };
        if !is_passing(&error) || Instant::now() + PAUSE >= until {
            return Err(StoreError::Unavailable(reason(&error)));
        }
        tokio::time::sleep(PAUSE).await;
    }
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
