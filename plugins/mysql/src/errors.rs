//! Whose fault an error of the server's is, by its number. The server's text goes into `detail` only.

use crate::protocol::{Reader, malformed};
use souk_sdk::Error;

/// An error message, read.
pub struct ServerError {
    pub number: u16,
    sqlstate: String,
    text: String,
}

impl ServerError {
    /// `body` begins with 0xff.
    pub fn read(body: &[u8]) -> Result<ServerError, Error> {
        let mut reader = Reader(body);
        reader.u8()?;
        let number = reader.u16()?;
        let mut sqlstate = "HY000".to_owned();
        // Before the login there is no SQLSTATE.
        if let Some(state) = reader.0.strip_prefix(b"#") {
            let (state, text) = state.split_at_checked(5).ok_or_else(malformed)?;
            sqlstate = String::from_utf8_lossy(state).into_owned();
            reader.0 = text;
        }
        Ok(ServerError {
            number,
            sqlstate,
            text: String::from_utf8_lossy(reader.0).into_owned(),
        })
    }

    /// The prepared statement is no longer what the server has: prepare it again.
    pub fn is_stale_statement(&self) -> bool {
        matches!(self.number, 1243 | 1615)
    }

    /// The server keeps no more prepared statements, of all its sessions together.
    pub fn is_full_of_statements(&self) -> bool {
        self.number == 1461
    }

    /// A write was refused: by the transaction, the server, or for want of a privilege.
    pub fn is_refused_write(&self) -> bool {
        matches!(self.number, 1792 | 1290 | 1836 | 1044 | 1142 | 1227)
    }

    /// A `KILL QUERY` has struck.
    pub fn is_cancelled(&self) -> bool {
        self.number == 1317
    }

    /// There is no session of that number any more.
    pub fn is_unknown_thread(&self) -> bool {
        self.number == 1094
    }

    /// There is no such table.
    pub fn is_unknown_table(&self) -> bool {
        self.number == 1146
    }

    /// A variable that this server does not have.
    pub fn is_unknown_variable(&self) -> bool {
        self.number == 1193
    }

    /// As [`ServerError::blame`], of a statement, prepared or run.
    pub fn of_statement(self, bound: bool) -> Error {
        match self.number {
            // MySQL 8 says so of a table whose database there is not.
            1049 => self.told(Error::not_found(
                "unknown_table",
                "the statement names a table of a database that does not exist",
            )),
            _ => self.blame(bound),
        }
    }

    fn told(self, error: Error) -> Error {
        error
            .detail(format!("{} ({})", self.text, self.number))
            .source_code(self.sqlstate)
    }

    /// The error of the contract. `bound`: the caller's values were part of what ran. What is wrong with the statement itself the server has
    /// mostly said before that, when it was prepared.
    pub fn blame(self, bound: bool) -> Error {
        let error = match self.number {
            1045 | 1698 => Error::authentication(
                "password_rejected",
                "the database refused the user name or the password, or has the user for other addresses or with TLS only ('name'@'host', REQUIRE SSL)",
            ),
            1130 => Error::authentication(
                "login_refused",
                "the database has no user for this service's address: make one for it, as 'name'@'%'",
            ),
            1820 | 1862 => Error::authentication(
                "password_expired",
                "the password of the database user has expired: give it a new one",
            ),
            3118 | 3955 | 4151 => Error::authentication(
                "account_locked",
                "the account of the database user is locked: unlock it (ALTER USER … ACCOUNT UNLOCK)",
            ),
            1251 | 2059 => Error::configuration(
                "login_method",
                "the database wants a kind of login that this connector does not know",
            ),
            1524 => Error::configuration(
                "login_method",
                "the database user has a kind of login that the server has no more, as mysql_native_password since MySQL 8.4: give it another one (ALTER USER … IDENTIFIED WITH caching_sha2_password BY …)",
            ),
            3159 => Error::configuration(
                "tls_required",
                "the database takes connections with TLS only: set ssl_mode to require, verify-ca or verify-full",
            ),
            1046 | 1049 => Error::configuration(
                "unknown_database",
                "the database does not exist at the server: the connection's `database` must name one that does",
            ),
            // At the login, too: who may use no database of that name is not told whether there is one.
            1044 => Error::permission(
                "permission_denied",
                "the database user may not use this database, or there is none of that name: GRANT it SELECT there, or mend the connection's `database`",
            ),
            1142 | 1143 | 1227 | 1356 | 1370 => Error::permission(
                "permission_denied",
                "the database user may not read what the statement names: GRANT SELECT on it, and EXECUTE on functions",
            ),
            1290 | 1792 | 1836 => Error::permission(
                "read_only",
                "the statement tries to change the database; connections are read-only",
            ),
            // The first of tables that MySQL itself would have, as `information_schema` has.
            1109 | 1146 => Error::not_found(
                "unknown_table",
                "the statement names a table that does not exist",
            ),
            1305 | 1630 => Error::not_found(
                "unknown_function",
                "the statement names a function that does not exist",
            ),
            1054 => Error::source_failed(
                "unknown_column",
                "the statement names a column that does not exist",
            ),
            // Found where the statement runs, not where it is prepared: a search, a pattern, a document or a path of the caller's that the
            // server cannot read, a text in a character set that a column does not have, a number or a system of places that a function does not take.
            1064
            | 1139
            | 1267
            | 1270
            | 1271
            | 3048
            | 3143
            | 3149
            | 3153
            | 3154
            | 3165
            | 3548
            | 3684..=3700
            | 3854
            | 3887
            | 3900
            | 3988
            | 4007
            | 4024
            | 4036..=4044
            | 6138
                if bound =>
            {
                refused_value()
            }
            1064 | 1065 | 1149 => {
                Error::source_failed("syntax_error", "the database cannot read the statement")
            }
            // A sort that was stopped has a number of its own, and says why.
            1028 if self.text.contains("maximum statement execution time")
                || self.text.contains("max_statement_time") =>
            {
                too_long()
            }
            1028 if self.text.contains("was interrupted") => {
                Error::timeout("cancelled", "the statement was cancelled at the database")
            }
            1969 | 3024 => too_long(),
            1317 => Error::timeout("cancelled", "the statement was cancelled at the database"),
            1038 => Error::limit_exceeded(
                "sort_buffer",
                "a row is larger than what the database sorts in: give it a larger sort_buffer_size, or sell smaller columns",
            ),
            1040 | 1203 => Error::unavailable(
                "too_many_connections",
                "the database takes no more connections, of this user or of anybody",
            ),
            1226 => Error::unavailable(
                "quota_exhausted",
                "the database user has used up what the database allows it",
            ),
            1129 => Error::unavailable(
                "host_blocked",
                "the database takes no connections from here after too many failed ones: have it forget them (FLUSH HOSTS, since MySQL 8.4 TRUNCATE TABLE performance_schema.host_cache)",
            ),
            1053 | 1077 | 1079 => {
                Error::unavailable("shutting_down", "the database is shutting down")
            }
            3032 | 3168 | 3796..=3799 => Error::unavailable(
                "server_unavailable",
                "the database takes no statements at the moment: it is offline, or catching up with its group",
            ),
            1080 | 1927 | 3169 | 4031 => {
                Error::unavailable("session_closed", "the database closed the session")
            }
            1021 | 1037 | 1041 | 1114 | 1135 | 1461 | 4081 | 4082 => {
                Error::unavailable("out_of_resources", "the database has run out of a resource")
            }
            1205 | 1213 | 1615 => Error::unavailable(
                "conflict",
                "the statement was in conflict with other work at the database; try again",
            ),
            1153 | 1301 if bound => Error::invalid_request(
                "value_too_long",
                "the database refused a value because of its length",
            ),
            // Values that are none of their type, some of which have no SQLSTATE of their own.
            1210 | 1367 | 1411 | 1525 if bound => refused_value(),
            // Of an error of no number of its own.
            1105 if bound && self.text.starts_with("XPATH syntax error") => refused_value(),
            _ => match self.sqlstate.get(..2).unwrap_or_default() {
                "28" => Error::authentication("login_refused", "the database refused the login"),
                "22" if bound => refused_value(),
                "22" => Error::source_failed(
                    "invalid_value",
                    "the statement computes a value that the database refuses",
                ),
                "08" => Error::unavailable("connection_lost", "the database broke the connection"),
                "40" => Error::unavailable(
                    "conflict",
                    "the statement was in conflict with other work at the database; try again",
                ),
                _ => Error::source_failed("sql_error", "the database could not run the statement"),
            },
        };
        self.told(error)
    }
}

fn too_long() -> Error {
    Error::timeout(
        "statement_timeout",
        "the statement ran longer than the database allows",
    )
}

fn refused_value() -> Error {
    Error::invalid_request("invalid_value", "the database refused a value")
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::ErrorClass;

    /// What a statement runs into only with the caller's values is the caller's; the same number of a statement that is prepared, or has no
    /// values, is the seller's.
    #[test]
    fn values_are_blamed_on_who_gave_them() {
        let error = |number: u16| ServerError {
            number,
            sqlstate: "HY000".to_owned(),
            text: "told".to_owned(),
        };
        for number in [
            1064, 1139, 1267, 3048, 3143, 3548, 3685, 3988, 4024, 4037, 4038, 4042,
        ] {
            let caller = error(number).blame(true);
            assert_eq!(caller.class, ErrorClass::InvalidRequest, "{number}");
            assert_eq!(caller.code, "invalid_value", "{number}");
            let seller = error(number).blame(false);
            assert_eq!(seller.class, ErrorClass::Source, "{number}");
        }
        for number in [1054, 1105, 1111, 1242, 1644, 4000] {
            let seller = error(number).blame(true);
            assert_eq!(seller.class, ErrorClass::Source, "{number}");
        }
        let path = ServerError {
            text: "XPATH syntax error: '['".to_owned(),
            ..error(1105)
        };
        assert_eq!(path.blame(true).class, ErrorClass::InvalidRequest);
    }

    /// Who is not let in learns what to change, and where.
    #[test]
    fn logins_are_refused_with_what_helps() {
        for (number, code, helps) in [
            (1045, "password_rejected", "REQUIRE SSL"),
            (1130, "login_refused", "'name'@'%'"),
            (1862, "password_expired", "a new one"),
            (1820, "password_expired", "a new one"),
            (3118, "account_locked", "ACCOUNT UNLOCK"),
            (4151, "account_locked", "ACCOUNT UNLOCK"),
        ] {
            let error = ServerError {
                number,
                sqlstate: "HY000".to_owned(),
                text: "told".to_owned(),
            };
            let told = error.blame(false);
            assert_eq!(
                (told.class, told.code.as_str()),
                (ErrorClass::Authentication, code),
                "{number}"
            );
            assert!(told.message.contains(helps), "{}", told.message);
        }
    }

    /// A statement's database is not the connection's.
    #[test]
    fn a_database_of_a_statement_is_the_statements() {
        let error = || ServerError {
            number: 1049,
            sqlstate: "42000".to_owned(),
            text: "Unknown database 'other'".to_owned(),
        };
        let at_login = error().blame(false);
        assert_eq!(at_login.class, ErrorClass::Configuration);
        let told = error().of_statement(false);
        assert_eq!(
            (told.class, told.code.as_str()),
            (ErrorClass::NotFound, "unknown_table")
        );
    }

    /// A sort that is stopped, and one that has no room, say so with numbers of their own.
    #[test]
    fn sorts_that_end_are_told_as_what_they_are() {
        for (number, text, class, code) in [
            (
                1028,
                "Sort aborted: Query execution was interrupted, maximum statement execution time exceeded",
                ErrorClass::Timeout,
                "statement_timeout",
            ),
            (
                1028,
                "Sort aborted: Query execution was interrupted",
                ErrorClass::Timeout,
                "cancelled",
            ),
            (
                1028,
                "Sort aborted: Error writing file",
                ErrorClass::Source,
                "sql_error",
            ),
            (
                1038,
                "Out of sort memory, consider increasing server sort buffer size",
                ErrorClass::LimitExceeded,
                "sort_buffer",
            ),
        ] {
            let error = ServerError {
                number,
                sqlstate: "HY000".to_owned(),
                text: text.to_owned(),
            };
            let told = error.blame(false);
            assert_eq!((told.class, told.code.as_str()), (class, code), "{text}");
        }
    }

    /// A login that names a wrong database is not told of a statement.
    #[test]
    fn a_database_that_may_not_be_used_is_told_as_one() {
        let error = ServerError {
            number: 1044,
            sqlstate: "42000".to_owned(),
            text: "told".to_owned(),
        };
        let told = error.blame(false);
        assert_eq!(told.class, ErrorClass::Permission);
        assert_eq!(
            told.message,
            "the database user may not use this database, or there is none of that name: GRANT it SELECT there, or mend the connection's `database`"
        );
    }
}
