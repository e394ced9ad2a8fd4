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

/// Statements are not logged one by one: they are many, and some carry digests and sealed credentials.
pub(super) fn quiet(options: AnyConnectOptions) -> AnyConnectOptions {
    options.disable_statement_logging()
}
