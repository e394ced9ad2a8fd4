//! What goes wrong on the way out.

/// The message names the address or the host, and is for whoever chose it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The address refused the connection.
    Refused,
    /// No address, or no route.
    Unreachable,
    /// Whoever it is done for has none left of what the code says.
    Exhausted(&'static str),
    /// The address is one that the policy does not allow.
    EgressRefused,
    Tls,
    Timeout,
    /// The wire broke.
    Reset,
    /// What came is not what the protocol allows, or more of it than was asked for.
    BadResponse,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            message: message.into(),
        }
    }
}
