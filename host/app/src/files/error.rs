//! Why a file was not taken in, given or deleted.

use souk_domain::ids::ConnectionId;
use souk_store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(
        "a file's name has 1 to 128 characters of a-z, A-Z, 0-9, _, . and -, and begins with a letter, a digit or _"
    )]
    Name,
    #[error("a file may have at most {max} bytes")]
    TooLarge { max: u64 },
    #[error(
        "the company's files, with those that are being uploaded, may have at most {max} bytes together; delete some first"
    )]
    CompanyFull { max: u64 },
    #[error("a company may have at most {max} files; delete some first")]
    TooManyFiles { max: i64 },
    #[error("the upload broke off: {0}")]
    Aborted(String),
    #[error("the body is the file, and it is empty; nothing was changed")]
    Empty,
    /// Nothing was changed.
    #[error(
        "the engine of connection {connection}, which reads the file, cannot read what was sent: {told}"
    )]
    Unfit {
        connection: ConnectionId,
        /// In words for the connection's owner.
        told: String,
    },
    #[error("the file is read by {}", list(.0))]
    InUse(Vec<ConnectionId>),
    #[error("there is no such file")]
    NotFound,
    #[error("could not write the file: {0}")]
    Io(#[from] std::io::Error),
    /// Nothing was changed.
    #[error("{0}")]
    ObjectStore(ObjectError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// It did not answer, or not as it should: nobody knows what is there.
    #[error("the object store does not do what it is asked: {0}")]
    Away(String),
    #[error("the object store does not have it")]
    Missing,
    #[error("what the object store has is not what was uploaded: {0}")]
    Damaged(String),
    /// This host's own disk.
    #[error("{0}")]
    Disk(#[from] std::io::Error),
}

impl From<object_store::Error> for ObjectError {
    fn from(error: object_store::Error) -> ObjectError {
        match error {
            object_store::Error::NotFound { .. } => ObjectError::Missing,
            error => ObjectError::Away(error.to_string()),
        }
    }
}

impl From<ObjectError> for FileError {
    fn from(error: ObjectError) -> FileError {
        match error {
            ObjectError::Disk(error) => FileError::Io(error),
            error => FileError::ObjectStore(error),
        }
    }
}

fn list(ids: &[ConnectionId]) -> String {
    ids.iter()
        .map(ConnectionId::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}
