//! What can go wrong in the store, by kind. Never names a constraint: callers know what they were inserting.

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("no such row")]
    NotFound,
    /// A unique column already has this value.
    #[error("a row with this value exists already")]
    Conflict,
    /// A row refers to one that does not exist, or one that is still referred to was to be deleted.
    #[error("the row is referred to by, or refers to, another one")]
    Referenced,
    /// Waited too long for a connection, or lost a race that a retry would win.
    #[error("the store is busy; try again")]
    Busy,
    /// The database cannot be reached, or its disk is full or failing.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// A stored value does not have the shape that was written.
    #[error("the store holds a malformed value: {0}")]
    Corrupt(String),
    #[error(transparent)]
    Other(sqlx::Error),
}

impl StoreError {
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable(message.into())
    }

    /// Whether the store answered and said no, so that trying the same again is pointless.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Busy | Self::Unavailable(_))
    }

    /// Whether what was to be written contradicts what is there or what may be, rather than anything being wrong with the store.
    pub(crate) fn is_contradiction(&self) -> bool {
        use sqlx::error::ErrorKind;
        match self {
            Self::Conflict | Self::Referenced | Self::Corrupt(_) => true,
            Self::Other(sqlx::Error::Database(error)) => matches!(
                error.kind(),
                ErrorKind::CheckViolation | ErrorKind::NotNullViolation
            ),
            _ => false,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::error::ErrorKind;
        match &error {
            sqlx::Error::RowNotFound => Self::NotFound,
            sqlx::Error::PoolTimedOut => Self::Busy,
            sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::Io(_)
            | sqlx::Error::Tls(_) => Self::Unavailable(error.to_string()),
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                Self::Corrupt(error.to_string())
            }
            sqlx::Error::Database(database) => match database.kind() {
                ErrorKind::UniqueViolation => Self::Conflict,
                ErrorKind::ForeignKeyViolation => Self::Referenced,
                _ => match database.code().as_deref().map(classify) {
                    Some(Condition::Busy) => Self::Busy,
                    Some(Condition::Unavailable) => Self::Unavailable(error.to_string()),
                    _ => Self::Other(error),
                },
            },
            _ => Self::Other(error),
        }
    }
}

enum Condition {
    Busy,
    Unavailable,
    Other,
}

/// SQLSTATE has five characters; SQLite's extended result codes are decimal numbers whose low byte is the primary code.
fn classify(code: &str) -> Condition {
    if let (true, Ok(number)) = (code.len() < 5, code.parse::<i32>()) {
        return match number & 0xff {
            5 | 6 => Condition::Busy,                   // SQLITE_BUSY, SQLITE_LOCKED
            8 | 10 | 13 | 14 => Condition::Unavailable, // READONLY, IOERR, FULL, CANTOPEN
            _ => Condition::Other,
        };
    }
    match code {
        "40001" | "40P01" | "55P03" => Condition::Busy, // serialization failure, deadlock, lock not available
        // The server has ended a transaction that was idle, or took too long; or it takes no writes: a standby, or one whose provider saves its disk.
        "25P03" | "25P04" | "25006" => Condition::Unavailable,
        // Connections, who may connect (a password that was changed), resources, the operator, the system.
        _ if ["08", "28", "53", "57", "58"]
            .iter()
            .any(|class| code.starts_with(class)) =>
        {
            Condition::Unavailable
        }
        _ => Condition::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server refuses to everybody is the store's state, and no fault of the request that meets it.
    #[test]
    fn a_server_that_takes_nothing_is_unavailable() {
        for code in [
            "25006", "28P01", "28000", "53100", "53300", "57P03", "08006",
        ] {
            assert!(matches!(classify(code), Condition::Unavailable), "{code}");
        }
        for code in ["42501", "22003", "42P01"] {
            assert!(matches!(classify(code), Condition::Other), "{code}");
        }
    }
}
