//! Data connections: how a seller's source is reached. Credentials go in and never come out.

pub mod create;
pub mod delete;
pub mod get;
pub mod list;
pub mod schema;
mod shape;
pub mod test;
pub mod test_unsaved;
pub mod update;

use crate::refusals::{
    CONFLICT, CONNECTION_LIMIT_REACHED, INVALID_REQUEST, RESOURCE_IN_USE, UNSAFE_URL,
    VALIDATION_ERROR,
};
use crate::{FieldError, Problem, Routes, runs};
pub use shape::{ConnectionIn, ConnectionOut, UntestedProducts};
use souk_app::connections::ConnectionError;
use souk_app::failure::Failure;

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_connections)
        .add(create::OPERATION, create::create_connection)
        .add(
            test_unsaved::OPERATION,
            test_unsaved::test_unsaved_connection,
        )
        .add(get::OPERATION, get::get_connection)
        .add(update::OPERATION, update::update_connection)
        .add(delete::OPERATION, delete::delete_connection)
        .add(test::OPERATION, test::test_connection)
        .add(schema::OPERATION, schema::get_connection_schema)
}

/// The refusal of an operation on the connection `id`.
fn refusal(id: &str) -> impl Fn(ConnectionError) -> Problem {
    move |error| match error {
        ConnectionError::NotFound => Problem::not_found("connection", id),
        ConnectionError::Invalid(errors) => Problem::fields(VALIDATION_ERROR, errors),
        ConnectionError::UnsafeAddress { field, message } => {
            Problem::fields(UNSAFE_URL, vec![FieldError::new(field, "unsafe", message)])
        }
        ConnectionError::InUse { assets, endpoints } => {
            let message = format!(
                "{assets} assets and {endpoints} endpoints run on this connection: archive them or give them another one first"
            );
            Problem::of(RESOURCE_IN_USE, message)
                .detail("assets", assets)
                .detail("endpoints", endpoints)
        }
        error @ ConnectionError::TooMany(max) => {
            Problem::of(CONNECTION_LIMIT_REACHED, error.to_string()).detail("limit", max)
        }
        error @ ConnectionError::Lost => Problem::of(CONFLICT, error.to_string()),
        error @ ConnectionError::NoCatalog(_) => Problem::of(INVALID_REQUEST, error.to_string()),
        // Only the owner of a connection has to do with it.
        ConnectionError::Failed(cause) => {
            runs::refusal("connection", id)(Failure::before(true, cause))
        }
    }
}
