//! Why a connector was not taken in, put to work, or taken off it.

use souk_sandbox::LoadError;
use souk_store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Unhealthy(String),
    #[error(
        "engine \"{0}\" is the platform's: give the engine of your connector a slug of its own, such as \"acme-{0}\""
    )]
    EngineReserved(String),
    /// By the platform's staff.
    #[error("the platform has taken this connector off work{}", reason.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Blocked { reason: Option<String> },
    #[error("{0}")]
    NoRoom(String),
    #[error(
        "compiling your connectors has taken {spent_seconds} seconds of this hour, which is what it may take: try again in {wait_seconds} seconds"
    )]
    CompileTime {
        spent_seconds: u32,
        wait_seconds: u64,
    },
    /// Versions that wait to be put to work.
    #[error(
        "{waiting_max} activations of connectors are under way or wait for each other: try again when some have ended; what was uploaded is kept"
    )]
    Busy { waiting_max: usize },
    #[error("there is no such connector or version")]
    NotFound,
    #[error("a component may have at most {max} bytes")]
    TooLarge { max: usize },
    #[error("the upload broke off: {0}")]
    Aborted(String),
    #[error("{0}")]
    DiskFull(String),
    #[error("the sandbox failed: {0}")]
    Internal(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<LoadError> for ConnectorError {
    fn from(error: LoadError) -> ConnectorError {
        let text = error.to_string();
        match error {
            LoadError::Invalid(_) | LoadError::Compile(_) => ConnectorError::Invalid(text),
            LoadError::Conflict { .. }
            | LoadError::Active { .. }
            | LoadError::Canary { .. }
            | LoadError::NoCanary { .. }
            | LoadError::NotActive { .. }
            | LoadError::NoEarlier { .. } => ConnectorError::Conflict(text),
            LoadError::Unknown { .. } => ConnectorError::NotFound,
            LoadError::Unhealthy { .. } => ConnectorError::Unhealthy(text),
            LoadError::DiskFull(_) => ConnectorError::DiskFull(text),
            LoadError::Internal(_) | LoadError::NotKept => ConnectorError::Internal(text),
        }
    }
}
