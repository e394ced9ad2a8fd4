//! Why somebody was not identified.

#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// What was shown proves nothing. For whoever showed it.
    #[error("{0}")]
    Refused(String),
    /// The provider cannot be asked, or answers what it must not. For the log.
    #[error("{0}")]
    Unavailable(String),
}
