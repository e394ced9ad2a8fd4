//! Why an integration was not saved, found or used.

use souk_domain::fields::FieldError;
use souk_store::StoreError;
use souk_store::sealing::SealError;
use tokio::task::JoinError;

#[derive(Debug, thiserror::Error)]
pub enum IntegrationError {
    #[error("there is no such integration")]
    NotFound,
    #[error("the integration breaks {} rules", .0.len())]
    Invalid(Vec<FieldError>),
    /// The address is none that this host sends to.
    #[error("{0}")]
    UnsafeAddress(String),
    /// Nobody says at the moment where its address leads.
    #[error("{0}")]
    UnknownAddress(String),
    #[error("the company has as many integrations as it may have")]
    TooMany,
    #[error("the integration was changed at the same time; read it again and repeat the change")]
    Lost,
    /// Its publisher is not there at the moment.
    #[error("no publisher for \"{0}\" is active")]
    NoPublisher(String),
    /// What went on without its client has panicked.
    #[error("the change broke off: {0}")]
    BrokenOff(#[from] JoinError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<SealError> for IntegrationError {
    fn from(error: SealError) -> IntegrationError {
        StoreError::from(error).into()
    }
}
