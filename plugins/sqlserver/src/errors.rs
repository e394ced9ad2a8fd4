//! Whose fault an error of the server's is, by its number. The server's text goes into `detail` only.

use souk_sdk::Error;
use tds_protocol::token::ServerError;

/// A write that is refused for want of a permission, or by a database that takes none.
const REFUSED_WRITES: [i32; 7] = [229, 230, 262, 300, 2760, 3906, 3908];

/// Whether a write was refused.
pub fn is_refused_write(error: &ServerError) -> bool {
    REFUSED_WRITES.contains(&error.number)
}

/// The error of the contract. `is_bound`: values of the caller's were part of the statement.
pub fn told(error: ServerError, is_bound: bool) -> Error {
    let blamed = blame(error.number, is_bound);
    let place = match error.line {
        0..=1 => String::new(),
        line => format!(" (line {line})"),
    };
    blamed
        .source_code(error.number.to_string())
        .detail(format!("{}{place}", error.message))
}

fn blame(number: i32, is_bound: bool) -> Error {
    match number {
        18456 => Error::authentication(
            "password_rejected",
            "SQL Server refused the login or its password",
        ),
        18452 | 18470 | 18486 | 18487 | 18488 => Error::authentication(
            "login_refused",
            "SQL Server does not let this login in: is it enabled, is its password expired, and may it log in with one?",
        ),
        40531 | 40532 => Error::configuration(
            "login_refused",
            "Azure SQL cannot tell which server the login is for: does the connection's host name it, and is the server's name right?",
        ),
        40615 | 40914 | 40544 | 47073 => Error::configuration(
            "address_refused",
            "Azure SQL does not let this host in: allow its address in the server's firewall",
        ),
        4060 | 911 | 916 | 4064 => Error::configuration(
            "unknown_database",
            "SQL Server has no database of the connection's name, or does not let the login use it",
        ),
        978 => Error::configuration(
            "read_intent_needed",
            "the database is a secondary that takes only those who say that they read: set application_intent to ReadOnly",
        ),
        18451 | 18461 | 6005 => Error::unavailable(
            "server_unavailable",
            "SQL Server takes only administrators at the moment, or is shutting down",
        ),
        921 | 922 | 923 | 924 | 927 | 942 | 945 | 952 | 976 | 982 | 983 | 40613 | 40197 | 40143
        | 4221 => Error::unavailable(
            "database_unavailable",
            "the database is not available at the moment",
        ),
        601 | 3960 | 3961 | 1205 | 1211 => Error::unavailable(
            "conflict",
            "the statement met changes of others and was given up: ask again",
        )
        .retry_after_ms(1_000),
        1222 => Error::unavailable(
            "lock_timeout",
            "what the statement reads is locked by others for longer than it may wait",
        )
        .retry_after_ms(1_000),
        10928 | 10929 | 40501 | 40540 | 40550 | 40551 | 40552 | 40553 | 49918 | 49919 | 49920 => {
            Error::rate_limited("throttled", "Azure SQL takes no more work at the moment")
                .retry_after_ms(10_000)
        }
        701 | 802 | 8645 | 8651 | 8657 | 8902 => Error::unavailable(
            "out_of_memory",
            "SQL Server has no memory for the statement at the moment",
        ),
        17809 | 17892 | 17300 | 17312 => Error::unavailable(
            "too_many_connections",
            "SQL Server takes no more connections at the moment",
        ),
        17830 => Error::unavailable("login_timeout", "SQL Server gave the login up: ask again"),
        3952 | 3957 => Error::configuration(
            "isolation_refused",
            "the database does not allow what the statement asks of its transaction",
        ),
        229 | 230 | 262 | 297 | 300 | 15247 | 15151 | 33015 | 40515 => Error::permission(
            "permission_denied",
            "the login may not read what the statement names",
        ),
        3906 | 3908 => Error::permission(
            "read_only",
            "the statement tries to change a database that only reads",
        ),
        208 => Error::not_found(
            "unknown_table",
            "the statement names a table that does not exist, or that the login does not see",
        ),
        2812 | 195 | 4121 => Error::not_found(
            "unknown_function",
            "the statement names a function that does not exist",
        ),
        207 | 209 | 4104 | 1038 | 8155 | 8156 | 8158 => Error::source_failed(
            "unknown_column",
            "the statement names a column that does not exist, none, or one twice",
        ),
        102 | 103 | 105 | 111 | 113 | 137 | 141 | 145 | 156 | 170 | 174 | 189 | 319 | 321 | 325
        | 1033 | 4145 | 8120 | 10742 => {
            Error::source_failed("syntax_error", "SQL Server cannot read the statement")
        }
        // A value that cannot become what it is compared with, or is too large for it.
        8134 | 245 | 220 | 8115 | 8114 | 241 | 242 | 244 | 248 | 295 | 296 | 517 | 535 | 1007
        | 3606 | 3607 | 6522 | 8152 | 8169 | 9420 | 10744 | 13609 | 2628 => match is_bound {
            true => Error::invalid_request("invalid_value", "SQL Server refused a value"),
            false => Error::source_failed(
                "invalid_value",
                "the statement computes a value that SQL Server refuses",
            ),
        },
        206 | 257 | 260 | 402 | 403 | 409 | 468 | 529 | 8116 | 8117 => Error::source_failed(
            "type_mismatch",
            "the statement compares or computes with types that do not fit: CAST one of them",
        ),
        8649 | 8622 | 8623 | 8632 | 8631 | 1101..=1105 | 9002 => Error::limit_exceeded(
            "resources_exceeded",
            "the statement needs more than SQL Server gives to one statement",
        ),
        // The end of a session by another one, or by an administrator.
        596 | 6104 | 6107 | 4014 => {
            Error::unavailable("connection_lost", "SQL Server has ended the session")
        }
        8525 | 8501 | 8522 | 7391 => Error::source_failed(
            "distributed",
            "the statement reads from a linked server, which a transaction here cannot",
        ),
        _ => Error::source_failed("sql_error", "SQL Server could not run the statement"),
    }
}

pub fn cancelled() -> Error {
    Error::timeout("cancelled", "the statement was cancelled")
}

pub fn too_long() -> Error {
    Error::timeout(
        "statement_timeout",
        "the statement runs longer than the connection allows",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::ErrorClass::{
        Authentication, Configuration, InvalidRequest, LimitExceeded, NotFound, Permission,
        RateLimited, Source, Unavailable,
    };

    fn of(number: i32, is_bound: bool) -> Error {
        let error = ServerError {
            number,
            state: 1,
            class: 16,
            message: "said".into(),
            server: String::new(),
            procedure: String::new(),
            line: 3,
        };
        told(error, is_bound)
    }

    /// Whoever can help is told, and whoever asks again in vain is not told to.
    #[test]
    fn each_is_blamed_on_who_can_help() {
        for (number, class, code) in [
            (18456, Authentication, "password_rejected"),
            (18451, Unavailable, "server_unavailable"),
            (18461, Unavailable, "server_unavailable"),
            (17830, Unavailable, "login_timeout"),
            (921, Unavailable, "database_unavailable"),
            (922, Unavailable, "database_unavailable"),
            (927, Unavailable, "database_unavailable"),
            (942, Unavailable, "database_unavailable"),
            (40613, Unavailable, "database_unavailable"),
            (601, Unavailable, "conflict"),
            (3961, Unavailable, "conflict"),
            (1205, Unavailable, "conflict"),
            (1222, Unavailable, "lock_timeout"),
            (40531, Configuration, "login_refused"),
            (40532, Configuration, "login_refused"),
            (4060, Configuration, "unknown_database"),
            (40501, RateLimited, "throttled"),
            (10928, RateLimited, "throttled"),
            (10929, RateLimited, "throttled"),
            (207, Source, "unknown_column"),
            (208, NotFound, "unknown_table"),
            (229, Permission, "permission_denied"),
            (230, Permission, "permission_denied"),
            (3906, Permission, "read_only"),
            (102, Source, "syntax_error"),
            (8645, Unavailable, "out_of_memory"),
            (701, Unavailable, "out_of_memory"),
            (1105, LimitExceeded, "resources_exceeded"),
            (50000, Source, "sql_error"),
        ] {
            let error = of(number, true);
            assert_eq!(
                (error.class, error.code.as_str()),
                (class, code),
                "{number}"
            );
            assert_eq!(error.source_code, Some(number.to_string()));
            assert_eq!(error.detail.as_deref(), Some("said (line 3)"));
        }
    }

    /// A value is the caller's only where one of the caller's is bound.
    #[test]
    fn values_are_whose_they_are() {
        for number in [8134, 245, 220, 8115] {
            assert_eq!(of(number, true).class, InvalidRequest, "{number}");
            assert_eq!(of(number, false).class, Source, "{number}");
        }
    }
}
