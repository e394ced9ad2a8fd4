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
    #[error("the file is read by {}", list(.0))]
    InUse(Vec<ConnectionId>),
    #[error("there is no such file")]
    NotFound,
    #[error("could not write the file: {0}")]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn list(ids: &[ConnectionId]) -> String {
    ids.iter()
        .map(ConnectionId::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}
