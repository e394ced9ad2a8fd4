//! Connectors: what speaks to the engines, which version runs, and uploads of new ones.
//!
//! The same operations twice: for the platform (`/connectors`, role 5) and private to a company
//! (`/companies/{company_id}/connectors`).

pub mod activate;
pub mod connections;
pub mod deactivate;
pub mod get;
pub mod list;
pub mod logs;
pub mod remove;
pub mod rollback;
mod shape;
pub mod upload;

use crate::caller::Caller;
use crate::operation::CompanyRule;
use crate::refusals::{
    COMPILE_TIME_EXCEEDED, CONCURRENCY_LIMIT_EXCEEDED, CONFLICT, CONNECTOR_BLOCKED,
    CONNECTOR_INVALID, CONNECTOR_NOT_FOUND, CONNECTOR_QUOTA_EXCEEDED, CONNECTOR_UNHEALTHY,
    ENGINE_RESERVED, INVALID_REQUEST, Refusal,
};
use crate::{ApiState, Data, Problem, Routes};
pub use shape::ConnectorOut;
use souk_app::connectors::{self, ConnectorError, ConnectorInfo, Engines, Scope};

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_connectors)
        .add(get::OPERATION, get::get_connector)
        .add(logs::PLATFORM, logs::connector_logs)
        .add(logs::COMPANY, logs::company_connector_logs)
        .add(upload::PLATFORM, upload::upload_connector)
        .add(upload::COMPANY, upload::upload_connector)
        .add(activate::PLATFORM, activate::activate_connector)
        .add(activate::COMPANY, activate::activate_company_connector)
        .add(deactivate::PLATFORM, deactivate::deactivate_connector)
        .add(
            deactivate::COMPANY,
            deactivate::deactivate_company_connector,
        )
        .add(connections::PLATFORM, connections::connector_connections)
        .add(
            connections::COMPANY,
            connections::company_connector_connections,
        )
        .add(rollback::PLATFORM, rollback::rollback_connector)
        .add(rollback::COMPANY, rollback::rollback_company_connector)
        .add(remove::PLATFORM, remove::delete_connector_version)
        .add(remove::COMPANY, remove::delete_company_connector_version)
}

/// What is answered to who changed which version of a connector serves.
async fn changed(
    api: &ApiState,
    caller: &Caller,
    info: ConnectorInfo,
) -> Result<Data<ConnectorOut>, Problem> {
    let engines = Engines::load(api.app(), caller.company())
        .await
        .map_err(refusal(&info.name))?;
    Ok(Data(ConnectorOut::new(info, &engines)))
}

/// What one that its sources do not keep waiting takes less than.
const ACTIVATION_SECONDS: u64 = 5;

/// What putting a version to work is refused with.
const REFUSALS: &[Refusal] = &[
    CONNECTOR_NOT_FOUND,
    CONNECTOR_BLOCKED,
    CONNECTOR_INVALID,
    CONNECTOR_UNHEALTHY,
    CONFLICT,
    ENGINE_RESERVED,
    CONNECTOR_QUOTA_EXCEEDED,
    COMPILE_TIME_EXCEEDED,
    CONCURRENCY_LIMIT_EXCEEDED,
];

/// The scope that an operation's path speaks of.
fn scope(caller: &Caller) -> Scope {
    match caller.operation().operation.company {
        CompanyRule::Own => Scope::Company(caller.company().to_string()),
        CompanyRule::Unchecked => Scope::Platform,
    }
}

/// The refusal of an operation on a version of a connector: which of the two is not there.
async fn version_refusal(
    api: &ApiState,
    caller: &Caller,
    (name, version): (&str, &str),
    error: ConnectorError,
) -> Problem {
    if !matches!(error, ConnectorError::NotFound) {
        return refusal(name)(error);
    }
    let company = match scope(caller) {
        Scope::Platform => None,
        Scope::Company(company) => Some(company),
    };
    match connectors::visible(api.app(), caller.company(), caller.is_staff()).await {
        Ok(visible)
            if visible
                .iter()
                .any(|info| info.name == name && info.company_id == company) =>
        {
            let message = format!(
                "there is no version {version:?} of the connector {name:?} that this key can see"
            );
            Problem::of(CONNECTOR_NOT_FOUND, message)
                .detail("id", name)
                .detail("version", version)
        }
        Ok(_) => refusal(name)(error),
        Err(error) => refusal(name)(error),
    }
}

/// The refusal of an operation on the connector `name`.
fn refusal(name: &str) -> impl Fn(ConnectorError) -> Problem {
    move |error| {
        let text = error.to_string();
        match error {
            ConnectorError::Invalid(_) => Problem::of(CONNECTOR_INVALID, text),
            ConnectorError::Unhealthy(_) => Problem::of(CONNECTOR_UNHEALTHY, text),
            ConnectorError::Conflict(_) => Problem::of(CONFLICT, text),
            ConnectorError::EngineReserved(slug) => {
                Problem::of(ENGINE_RESERVED, text).detail("engine", slug)
            }
            ConnectorError::Blocked { .. } => Problem::of(CONNECTOR_BLOCKED, text),
            ConnectorError::NoRoom(_) => Problem::of(CONNECTOR_QUOTA_EXCEEDED, text),
            ConnectorError::CompileTime { wait_seconds, .. } => {
                Problem::of(COMPILE_TIME_EXCEEDED, text)
                    .retry_after(wait_seconds)
                    .detail("retry_after", wait_seconds)
            }
            ConnectorError::Busy { .. } => Problem::busy(ACTIVATION_SECONDS)
                .worded(text)
                .detail("exhausted", "activations_exhausted"),
            ConnectorError::NotFound => Problem::not_found("connector", name),
            ConnectorError::TooLarge { max } => Problem::too_large(max as u64),
            ConnectorError::Aborted(_) => Problem::of(INVALID_REQUEST, text),
            ConnectorError::DiskFull(error) => Problem::full_disk(error),
            ConnectorError::Internal(error) => Problem::internal(error),
            ConnectorError::Store(error) => error.into(),
        }
    }
}
