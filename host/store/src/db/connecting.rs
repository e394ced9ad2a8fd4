//! What connections of both backends begin with.

use sqlx::any::AnyConnectOptions;
use sqlx::{AnyConnection, ConnectOptions, Executor};

/// Settings of a connection.
pub(super) async fn prepare(
    connection: &mut AnyConnection,
    statements: &[&'static str],
) -> Result<(), sqlx::Error> {
    for statement in statements {
        connection.execute(*statement).await?;
    }
    Ok(())
}

/// A setting that not every server has: it goes on without.
pub(super) async fn wish(
    connection: &mut AnyConnection,
    statement: &'static str,
) -> Result<(), sqlx::Error> {
    match connection.execute(statement).await {
        Ok(_) | Err(sqlx::Error::Database(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Statements are not logged one by one: they are many, and some carry digests and sealed credentials.
pub(super) fn quiet(options: AnyConnectOptions) -> AnyConnectOptions {
    options.disable_statement_logging()
}
