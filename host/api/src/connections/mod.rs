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
    CONFLICT, CONNECTION_LIMIT_REACHED, CONNECTOR_FAULT, CONNECTOR_UNAVAILABLE, EXECUTION_TIMEOUT,
    INVALID_REQUEST, RESOURCE_IN_USE, SHUTTING_DOWN, SOURCE_ERROR, UNSAFE_URL, VALIDATION_ERROR,
};
use crate::{FieldError, Problem, Routes};
pub use shape::{ConnectionIn, ConnectionOut};
use souk_app::connections::ConnectionError;
use souk_app::connections::check::{Fault, FaultKind, blames_connector};

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
        error @ ConnectionError::NoConnector(_) => {
            Problem::of(CONNECTOR_UNAVAILABLE, error.to_string())
        }
        error @ ConnectionError::NoCatalog(_) => Problem::of(INVALID_REQUEST, error.to_string()),
        ConnectionError::Fault(fault) => failed(&fault),
        ConnectionError::Sealed(error) => Problem::internal(error),
        ConnectionError::Store(error) => error.into(),
    }
}

/// A request to the source that failed, told to the owner of the source.
fn failed(fault: &Fault) -> Problem {
    let refusal = match fault.kind {
        FaultKind::Busy => return Problem::busy(1),
        FaultKind::Timeout => EXECUTION_TIMEOUT,
        FaultKind::ShuttingDown => SHUTTING_DOWN,
        FaultKind::Internal => return Problem::internal(fault),
        _ if blames_connector(fault) => CONNECTOR_FAULT,
        _ => SOURCE_ERROR,
    };
    let problem = Problem::of(refusal, fault.message.clone())
        .detail("charged", false)
        .detail("blame", fault.blame.as_str())
        .detail("reason", fault.kind.as_str());
    match &fault.source_code {
        Some(code) => problem.detail("source_code", code.as_str()),
        None => problem,
    }
}
