//! Whose fault an error of the server's is, by its number. The server's text goes into `detail` only.

use souk_sdk::Error;
use tds_protocol::token::ServerError;

/// A write that is refused for want of a permission, or by a database that takes none.
const REFUSED_WRITES: [i32; 7] = [229, 230, 262, 300, 2760, 3906, 3908];

/// Whether a write was refused.
pub fn is_refused_write(error: &ServerError) -> bool {
    REFUSED_WRITES.contains(&error.number)
}

/// What the server refused while logging in.
pub fn login_refused(error: ServerError) -> Error {
    let blamed = match error.number {
        911 | 916 => unknown_database(),
        number => blame(number, false),
    };
    described(blamed, error)
}

/// What the server refused of a statement, of which these values were the caller's.
pub fn told(error: ServerError, callers: &[String]) -> Error {
    // Seldom does a message say which value it was. One that does not may be of the seller's data.
    let quotes = |value: &String| {
        let quoted = [format!("'{value}'"), format!("value = {value}.")];
        quoted.iter().any(|quoted| error.message.contains(quoted))
    };
    described(blame(error.number, callers.iter().any(quotes)), error)
}

fn described(blamed: Error, error: ServerError) -> Error {
    let place = match error.line {
        0..=1 => String::new(),
        line => format!(" (line {line})"),
    };
    blamed
        .source_code(error.number.to_string())
        .detail(format!("{}{place}", error.message))
}

fn unknown_database() -> Error {
    Error::configuration(
        "unknown_database",
        "SQL Server has no database of the connection's name, or does not let the login use it: CREATE USER … FOR LOGIN … there",
    )
}

/// `is_callers`: the message has a value of the caller's in it.
fn blame(number: i32, is_callers: bool) -> Error {
    match number {
        18456 => Error::authentication(
            "password_rejected",
            "SQL Server refused the login or its password: is it a login of SQL Server's own, and does the server take such (mixed mode)?",
        ),
        18452 | 18470 | 18486 | 18487 | 18488 => Error::authentication(
            "login_refused",
            "SQL Server does not let this login in: is it enabled, is its password expired, and may it log in with one?",
        ),
        40531 | 40532 => Error::configuration(
            "login_refused",
            "Azure SQL cannot tell which server the login is for: does the connection's host name it, and is the server's name right?",
        ),
        40615 | 40914 | 47073 => Error::configuration(
            "address_refused",
            "Azure SQL does not let this host in: allow its address in the server's firewall",
        ),
        4060 | 4064 => unknown_database(),
        911 => Error::not_found(
            "unknown_database",
            "the statement names a database that does not exist",
        ),
        978 => Error::configuration(
            "read_intent_needed",
            "the database is a secondary that takes only those who say that they read: set application_intent to ReadOnly",
        ),
        17892 => Error::configuration(
            "login_refused_by_trigger",
            "a trigger of the server's (LOGON) does not let this login in: its administrators know why",
        ),
        18401 | 18451 | 18461 | 6005 | 17187 => Error::unavailable(
            "server_unavailable",
            "SQL Server takes only administrators at the moment, is being upgraded, or is shutting down",
        ),
        921 | 922 | 923 | 924 | 927 | 942 | 945 | 952 | 976 | 982 | 983 | 40613 | 40197 | 40143
        | 4221 | 615 | 926 => Error::unavailable(
            "database_unavailable",
            "the database is not available at the moment",
        ),
        601 | 3960 | 3961 | 1205 | 1211 | 41301 | 41302 | 41305 | 41325 | 3947 | 3948 | 3950 => {
            Error::unavailable(
                "conflict",
                "the statement met changes of others and was given up: ask again",
            )
            .retry_after_ms(1_000)
        }
        1222 => Error::unavailable(
            "lock_timeout",
            "what the statement reads is locked by others for longer than it may wait",
        )
        .retry_after_ms(1_000),
        10928 | 10929 | 10936 | 40501 | 40540 | 49918 | 49919 | 49920 => {
            Error::rate_limited("throttled", "Azure SQL takes no more work at the moment")
                .retry_after_ms(10_000)
        }
        1204 => Error::unavailable(
            "out_of_locks",
            "SQL Server has no locks for the statement at the moment",
        ),
        701 | 802 | 8645 | 8651 | 8657 | 8902 => Error::unavailable(
            "out_of_memory",
            "SQL Server has no memory for the statement at the moment",
        ),
        17809 | 17300 | 17312 => Error::unavailable(
            "too_many_connections",
            "SQL Server takes no more connections at the moment",
        ),
        17830 | 17197 => {
            Error::unavailable("login_timeout", "SQL Server gave the login up: ask again")
        }
        41368 => Error::configuration(
            "memory_optimized",
            "a memory-optimized table is read in a transaction only with SNAPSHOT: write WITH (SNAPSHOT) behind its name, or set the database's option MEMORY_OPTIMIZED_ELEVATE_TO_SNAPSHOT",
        ),
        3952 | 3957 => Error::configuration(
            "isolation_refused",
            "the database does not allow what the statement asks of its transaction",
        ),
        40515 => Error::source_failed(
            "other_database",
            "the statement names a table of another database, which Azure SQL does not read",
        ),
        229 | 230 | 262 | 916 | 297 | 300 | 15247 | 15151 => Error::permission(
            "permission_denied",
            "the login may not read what the statement names: GRANT SELECT on it, or make its user a member of db_datareader",
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
        245 | 220 | 8115 | 8114 | 241 | 242 | 244 | 248 | 295 | 296 | 517 | 535 | 1007 | 8152
        | 8169 | 10744 | 2628
            if is_callers =>
        {
            Error::invalid_request("invalid_value", "SQL Server refused a value")
        }
        8134 | 245 | 220 | 8115 | 8114 | 241 | 242 | 244 | 248 | 295 | 296 | 517 | 535 | 1007
        | 3606 | 3607 | 6522 | 8152 | 8169 | 9420 | 10744 | 13609 | 2628 => Error::source_failed(
            "invalid_value",
            "the statement computes a value that SQL Server refuses, or compares one with a type that it does not fit",
        ),
        206 | 257 | 260 | 402 | 403 | 409 | 468 | 529 | 8116 | 8117 | 13636 | 42213 => {
            Error::source_failed(
                "type_mismatch",
                "the statement compares or computes with types that do not fit: CAST one of them",
            )
        }
        8649 | 8622 | 8623 | 8632 | 8631 | 1101..=1105 | 9002 | 40544 | 40549..=40553 => {
            Error::limit_exceeded(
                "resources_exceeded",
                "the statement needs more than SQL Server gives to one statement",
            )
        }
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

    fn said(number: i32, message: &str) -> ServerError {
        ServerError {
            number,
            state: 1,
            class: 16,
            message: message.into(),
            server: String::new(),
            procedure: String::new(),
            line: 3,
        }
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
            (911, NotFound, "unknown_database"),
            (916, Permission, "permission_denied"),
            (1204, Unavailable, "out_of_locks"),
            (18401, Unavailable, "server_unavailable"),
            (596, Unavailable, "connection_lost"),
            // Sessions that used too much, of which the next one would use as much.
            (40549, LimitExceeded, "resources_exceeded"),
            (40553, LimitExceeded, "resources_exceeded"),
            (10936, RateLimited, "throttled"),
            (3948, Unavailable, "conflict"),
            (17892, Configuration, "login_refused_by_trigger"),
            (41368, Configuration, "memory_optimized"),
            (40515, Source, "other_database"),
            (13636, Source, "type_mismatch"),
            (41301, Unavailable, "conflict"),
            (41302, Unavailable, "conflict"),
            (41305, Unavailable, "conflict"),
            (41325, Unavailable, "conflict"),
            (50000, Source, "sql_error"),
        ] {
            let error = told(said(number, "said"), &["x".into()]);
            assert_eq!(
                (error.class, error.code.as_str()),
                (class, code),
                "{number}"
            );
            assert_eq!(error.source_code, Some(number.to_string()));
            assert_eq!(error.detail.as_deref(), Some("said (line 3)"));
        }
    }

    /// Who sets a login up learns what it lacks, and where that is given.
    #[test]
    fn what_a_login_lacks_is_named() {
        for (number, helps) in [
            (18456, "mixed mode"),
            (4060, "FOR LOGIN"),
            (229, "db_datareader"),
            (40615, "firewall"),
        ] {
            let error = login_refused(said(number, "said"));
            assert!(error.message.contains(helps), "{number}: {}", error.message);
        }
    }

    /// What is not there in a statement is another thing in the connection.
    #[test]
    fn a_logins_database_is_the_connections() {
        for number in [911, 916, 4060] {
            let error = login_refused(said(number, "said"));
            assert_eq!(
                (error.class, error.code.as_str()),
                (Configuration, "unknown_database"),
                "{number}"
            );
        }
    }

    /// A value is the caller's only where the server says that it was that one.
    #[test]
    fn values_are_whose_they_are() {
        let callers = ["ada".to_owned(), "300".to_owned()];
        let converts = |value: &str| {
            format!(
                "Conversion failed when converting the nvarchar value '{value}' to data type int."
            )
        };
        let overflows = "Arithmetic overflow error for data type tinyint, value = 300.";
        for (number, message, class) in [
            (245, converts("ada").as_str(), InvalidRequest),
            (245, converts("bob").as_str(), Source),
            (245, converts("ada lovelace").as_str(), Source),
            (220, overflows, InvalidRequest),
            (
                8115,
                "Arithmetic overflow error converting expression to data type int.",
                Source,
            ),
            (
                8114,
                "Error converting data type nvarchar to numeric.",
                Source,
            ),
            (
                241,
                "Conversion failed when converting date and/or time from character string.",
                Source,
            ),
            // Never the caller's, whatever is said.
            (8134, "Divide by zero error encountered in 'ada'.", Source),
            (6522, "'ada'", Source),
            (9420, "'ada'", Source),
            (
                13609,
                "JSON text is not properly formatted. Unexpected character 'ada'.",
                Source,
            ),
            (3606, "'ada'", Source),
            (3607, "'ada'", Source),
        ] {
            let error = told(said(number, message), &callers);
            assert_eq!(
                (error.class, error.code.as_str()),
                (class, "invalid_value"),
                "{message}"
            );
            let error = told(said(number, message), &[]);
            assert_eq!(error.class, Source, "{message}");
        }
    }
}
