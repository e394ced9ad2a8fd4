//! Why a connection was not saved, found or used.

use souk_domain::fields::FieldError;
use souk_domain::ids::CompanyId;
use souk_store::StoreError;
use souk_store::sealing::SealError;
use tokio::task::JoinError;

use crate::failure::Cause;

#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    #[error("there is no such connection")]
    NotFound,
    #[error("the connection breaks {} rules", .0.len())]
    Invalid(Vec<FieldError>),
    #[error("{message}")]
    UnsafeAddress {
        field: &'static str,
        message: String,
    },
    #[error("{assets} assets and {endpoints} endpoints run on this connection")]
    InUse { assets: i64, endpoints: i64 },
    #[error("the company has {0} connections, which is as many as it may have: delete one first")]
    TooMany(u32),
    #[error("the connection was changed at the same time; read it again and repeat the change")]
    Lost,
    #[error("engine \"{0}\" has no catalog of tables")]
    NoCatalog(String),
    /// The source could not be asked, or its answer is no use.
    #[error(transparent)]
    Failed(#[from] Cause),
}

impl From<StoreError> for ConnectionError {
    fn from(error: StoreError) -> ConnectionError {
        Cause::from(error).into()
    }
}

/// What went on without its client has panicked.
impl From<JoinError> for ConnectionError {
    fn from(error: JoinError) -> ConnectionError {
        Cause::Internal(error.to_string()).into()
    }
}

impl From<SealError> for ConnectionError {
    fn from(error: SealError) -> ConnectionError {
        Cause::Internal(format!("the stored credentials cannot be opened: {error}")).into()
    }
}

/// For a product: what its own connection lacks is no fault of whoever runs it.
impl From<ConnectionError> for Cause {
    fn from(error: ConnectionError) -> Cause {
        match error {
            ConnectionError::Failed(cause) => cause,
            error => Cause::Internal(error.to_string()),
        }
    }
}

pub(super) fn no_file(company: &CompanyId, name: &str) -> FieldError {
    let message = format!(
        "the company has no file \"{name}\": upload it with PUT /companies/{company}/files/{name}"
    );
    FieldError::new("database", "unknown", message)
}
