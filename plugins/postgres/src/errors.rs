//! Whose fault an error of the server's is, by its SQLSTATE. The server's text goes into `detail` only.

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::ErrorResponseBody;
use souk_sdk::Error;

use crate::typing::Unknown;

/// An `ErrorResponse`, read.
pub struct ServerError {
    pub sqlstate: String,
    /// FATAL or PANIC: the server closes the wire.
    pub fatal: bool,
    /// The server's function that raised it; not translated.
    routine: String,
    text: String,
    /// Where it is, if it is in the statement's own text.
    is_in_statement: bool,
    /// The same of a text that a function has within, or makes.
    is_in_function: bool,
    /// Which parameter it was about, the first one being 0.
    parameter: Option<usize>,
}

impl ServerError {
    pub fn read(body: &ErrorResponseBody) -> ServerError {
        let mut error = ServerError {
            sqlstate: String::new(),
            fatal: false,
            routine: String::new(),
            text: String::new(),
            is_in_statement: false,
            is_in_function: false,
            parameter: None,
        };
        let mut fields = body.fields();
        while let Ok(Some(field)) = fields.next() {
            let value = String::from_utf8_lossy(field.value_bytes());
            match field.type_() {
                b'C' => error.sqlstate = value.into_owned(),
                // `V` is never translated; servers before 9.6 have only `S`.
                b'S' | b'V' => error.fatal |= value == "FATAL" || value == "PANIC",
                b'R' => error.routine = value.into_owned(),
                b'M' => error.text.insert_str(0, &value),
                b'D' | b'H' => {
                    error.text.push_str("; ");
                    error.text.push_str(&value);
                }
                // `unnamed portal parameter $1 = '…'`: no translation touches the number. What a function of the seller's has in it (`EXECUTE … USING`)
                // is told with numbers of its own, and the function behind it.
                b'W' => error.parameter = value.lines().next_back().and_then(named),
                b'P' => {
                    error.is_in_statement = true;
                    error.text.push_str(&format!(" (at character {value})"));
                }
                b'p' => error.is_in_function = true,
                _ => {}
            }
        }
        error
    }

    /// The prepared statement is no longer what the server has: prepare it again.
    pub fn is_stale_statement(&self) -> bool {
        self.is_lost_statement()
            || (self.sqlstate == "0A000" && self.routine == "RevalidateCachedQuery")
    }

    /// What the statement names has no such operator or function any more for what its parameters were when it was prepared. A function of the seller's
    /// that fails so does it each time, and is not called twice for it.
    pub fn is_outgrown(&self) -> bool {
        self.is_in_statement
            && matches!(
                self.sqlstate.as_str(),
                "42725" | "42804" | "42846" | "42883"
            )
    }

    /// The server knows no statement of that name.
    pub fn is_lost_statement(&self) -> bool {
        self.sqlstate == "26000"
    }

    /// The transaction before this one could not be ended.
    pub fn is_aborted(&self) -> bool {
        self.sqlstate == "25P02"
    }

    /// The server cannot tell the types of parameters by itself, or has told them wrong.
    pub fn untyped(&self) -> Option<Unknown> {
        match self.sqlstate.as_str() {
            // Ambiguous, or of no type at all: the text names it.
            "42P08" | "42P18" => Some(numbered(&self.text).map_or(Unknown::Some, Unknown::One)),
            // Several operators or functions would do.
            "42725" => Some(Unknown::Some),
            // No such operator or function, no common type, no such cast.
            "42883" | "42804" | "42846" => Some(Unknown::Mistaken),
            _ => None,
        }
    }

    /// A statement timeout or a cancel.
    pub fn is_cancelled(&self) -> bool {
        self.sqlstate == "57014"
    }

    /// The same, and a cancel for all that is known: the server does not say that it was the time limit, or says so in another language.
    pub fn may_be_a_cancel(&self) -> bool {
        self.is_cancelled() && !self.text.contains(STATEMENT_TIMEOUT)
    }

    /// A write in a read-only transaction.
    pub fn is_read_only(&self) -> bool {
        self.sqlstate == "25006"
    }

    /// The error of the contract. `cancelled`: we asked for the cancel ourselves; `is_bound`: the statement had values, and one of them may
    /// be what the server refuses.
    pub fn blame(self, cancelled: bool, is_bound: bool) -> Error {
        let state = self.sqlstate.as_str();
        let parameter = self.parameter.filter(|_| is_bound);
        let is_in_text = self.is_in_statement || self.is_in_function;
        let error = match state {
            "28P01" => Error::authentication(
                "password_rejected",
                "the database refused the user name or the password",
            ),
            "28000" => Error::authentication(
                "login_refused",
                "the database does not let this user in from here: is there such a user, and does pg_hba.conf take it from this service's address, with TLS as ssl_mode says?",
            ),
            "3D000" => Error::configuration(
                "unknown_database",
                "the database does not exist at the server: the connection's `database` must name one that does",
            ),
            "42501" => Error::permission(
                "permission_denied",
                "the database user may not read what the statement names: it needs USAGE on the schema and SELECT on the table",
            ),
            "25006" => Error::permission(
                "read_only",
                "the statement tries to change the database; connections are read-only",
            ),
            "57014" if cancelled => Error::timeout("cancelled", "the statement was cancelled"),
            "57014" => Error::timeout(
                "statement_timeout",
                "the statement ran longer than the database allows",
            ),
            "53300" => Error::unavailable(
                "too_many_connections",
                "the database takes no more connections, of this user or of anybody",
            ),
            // Of the whole of a transaction, which others may have made long.
            "25P04" => Error::unavailable(
                "transaction_timeout",
                "the transaction lasted longer than the database allows",
            ),
            "57P05" | "25P03" => {
                Error::unavailable("session_closed", "the database closed an idle session")
            }
            // Searches (`to_tsquery`), paths of jsonpath and of XML are read where a statement runs; its own text was read before, when it was prepared. Of a
            // text that is a statement, as a function of the seller's makes, the server says where.
            "42601" | "10608" if parameter.is_some() || is_bound && !is_in_text => {
                refused_value(parameter)
            }
            // And so is a name that a parameter is (`:table::regclass`, `regconfig`).
            "42P01" | "42602" | "42703" | "42704" | "42883" | "3F000" if parameter.is_some() => {
                refused_value(parameter)
            }
            "42P01" => Error::source_failed(
                "unknown_table",
                "the statement names a table that does not exist",
            ),
            "42703" => Error::source_failed(
                "unknown_column",
                "the statement names a column that does not exist",
            ),
            "42883" => Error::source_failed(
                "unknown_function",
                "the statement names a function or operator that does not exist for these types",
            ),
            "42601" => {
                Error::source_failed("syntax_error", "the database cannot read the statement")
            }
            // The others of their class are about what the database is like, which trying again does not change.
            "55P03" | "55006" => conflict(),
            _ => match state.get(..2).unwrap_or_default() {
                "28" => Error::authentication("login_refused", "the database refused the login"),
                "22" if is_bound => refused_value(parameter),
                "22" => Error::source_failed(
                    "invalid_value",
                    "the statement makes a value that its type does not have",
                ),
                "53" => {
                    Error::unavailable("out_of_resources", "the database has run out of a resource")
                }
                "57" => Error::unavailable(
                    "shutting_down",
                    "the database is starting up or shutting down",
                ),
                "08" if self.text.contains(STATEMENT_POOLING) => Error::configuration(
                    "statement_pooling",
                    "the pooler gives each statement another backend, so that no transaction can be read-only: set its `pool_mode` to transaction, or to session",
                ),
                "08" => Error::unavailable("connection_lost", "the database broke the connection"),
                "40" => conflict(),
                _ => Error::source_failed("sql_error", "the database could not run the statement"),
            },
        };
        error.detail(self.text).source_code(self.sqlstate)
    }
}

/// A cancel that was meant for another statement has met this one.
#[cold]
pub fn interrupted() -> Error {
    Error::unavailable(
        "interrupted",
        "the statement was stopped in another one's stead; try again",
    )
    .source_code("57014")
}

/// Of the parameter that the server names, if it names one.
fn refused_value(parameter: Option<usize>) -> Error {
    match parameter {
        Some(index) => {
            Error::invalid_request("invalid_value", "is no value of its type").parameter(index)
        }
        None => Error::invalid_request("invalid_value", "the database refused a value"),
    }
}

fn conflict() -> Error {
    Error::unavailable(
        "conflict",
        "the statement was in conflict with other work at the database; try again",
    )
}

/// What PostgreSQL says in English of a statement that took too long, and CockroachDB. A cancel has the same state, and comes from the same routine.
const STATEMENT_TIMEOUT: &str = "due to statement timeout";

/// What PgBouncer says of a transaction where `pool_mode` is statement.
const STATEMENT_POOLING: &str = "not allowed in statement pooling mode";

/// What poolers and proxies say of a login that they or the server refuse (PgBouncer, Neon's, Supavisor, pgcat), and the state that the server would have
/// said it with.
const WORDS_OF_POOLERS: [(&str, &str); 24] = [
    ("authentication failed", "28P01"),
    ("no such user", "28000"),
    ("no pg_hba.conf entry", "28000"),
    ("role \"", "28000"),
    ("ssl required", "28000"),
    ("login rejected", "28000"),
    ("not allowed", "28000"),
    ("username too long", "28000"),
    ("endpoint id is not specified", "3D000"),
    ("no such database", "3D000"),
    ("no pool configured", "3D000"),
    ("tenant/user", "3D000"),
    ("tenant or user", "3D000"),
    ("does not exist", "3D000"),
    ("no more connections", "53300"),
    ("too many clients", "53300"),
    ("too many connections", "53300"),
    ("connection slots are reserved", "53300"),
    ("max client connections", "53300"),
    ("emaxconn", "53300"),
    ("from the pool", "53300"),
    ("timeout", "57P03"),
    ("pool down", "57P03"),
    ("connect to compute node", "57P03"),
];
/// The states that they say it with: a violation of the protocol, an error within, one of the system.
const STATES_OF_POOLERS: [&str; 3] = ["08P01", "XX000", "58000"];

/// A login that the server ended. No statement names anything yet: what is not permitted is to connect. PgBouncer calls all that it refuses a violation of the protocol, in words that are not translated; the
/// server's own words, which it passes on so, may be.
pub fn login_refused(mut error: ServerError, is_pooler_told: bool) -> Error {
    let is_poolers = STATES_OF_POOLERS.contains(&error.sqlstate.as_str());
    let text = error.text.to_lowercase();
    if error.sqlstate == "42704" || is_poolers && error.text.contains("startup parameter") {
        let message = match is_pooler_told {
            true => "the server refuses a setting of the login that poolers keep for their clients",
            false => {
                "the server takes no settings at login, as poolers (PgBouncer) and Redshift do not: set `pooler` to true in the credentials"
            }
        };
        return Error::configuration("login_settings", message)
            .detail(error.text)
            .source_code(error.sqlstate);
    }
    if error.sqlstate == "42501" {
        return Error::permission(
            "permission_denied",
            "the user may not connect to the database: GRANT CONNECT ON DATABASE to it",
        )
        .detail(error.text)
        .source_code(error.sqlstate);
    }
    let known = WORDS_OF_POOLERS
        .iter()
        .find(|(words, _)| is_poolers && text.contains(words));
    if let Some((_, sqlstate)) = known {
        error.sqlstate = (*sqlstate).to_owned();
    }
    error.blame(false, false)
}

/// The parameter that a context is about. One that has all of them (`unnamed portal with parameters: $1 = '…'`, where the server has
/// `log_parameter_max_length_on_error`) names none.
fn named(context: &str) -> Option<usize> {
    let (before, _) = context.split_once('$')?;
    match before.contains([':', '：']) {
        true => None,
        false => numbered(context),
    }
}

/// The first parameter that a text names as `$1`, counted from 0.
fn numbered(text: &str) -> Option<usize> {
    text.split('$').skip(1).find_map(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..digits].parse::<usize>().ok()?.checked_sub(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol;
    use bytes::BytesMut;
    use postgres_protocol::message::backend::Message;
    use souk_sdk::ErrorClass;

    /// An error of the server's with these fields.
    fn read(fields: &[u8]) -> ServerError {
        let mut whole = Vec::new();
        protocol::message(&mut whole, b'E', |out| out.extend_from_slice(fields));
        match Message::parse(&mut BytesMut::from(whole.as_slice())) {
            Ok(Some(Message::ErrorResponse(body))) => ServerError::read(&body),
            _ => panic!("{fields:?} are no error"),
        }
    }

    /// What the server reads only where a statement runs is its caller's, of the parameter that it names. What a function of the seller's binds by itself
    /// has numbers, too, and is nobody's parameter.
    #[test]
    fn a_value_is_the_callers_where_it_has_given_one() {
        use ErrorClass::{InvalidRequest, Source};
        const BOUND: &str = "Wunnamed portal parameter $2 = '...'\0";
        const OWN: &str =
            "WSQL statement \"SELECT 1 / $1\"\nPL/pgSQL function divide() line 1 at EXECUTE\0";
        const MADE: &str = "p8\0qSELECT FROM WHERE\0WPL/pgSQL function made() line 1 at EXECUTE\0";
        const TYPE: &str =
            "p5\0qint(\0Winvalid type name \"int(\"\nunnamed portal parameter $1 = '...'\0";
        const ALL: &str = "WPL/pgSQL function f(text) line 1 at EXECUTE\nunnamed portal with parameters: $1 = 'x', $2 = 'y'\0";
        for (state, context, is_bound, class, parameter) in [
            ("22P02", BOUND, true, InvalidRequest, Some(1)),
            ("22012", "", true, InvalidRequest, None),
            ("22012", OWN, true, InvalidRequest, None),
            ("22012", OWN, false, Source, None),
            ("42601", BOUND, true, InvalidRequest, Some(1)),
            ("42601", "", true, InvalidRequest, None),
            ("42601", "", false, Source, None),
            ("42601", MADE, true, Source, None),
            ("42601", TYPE, true, InvalidRequest, Some(0)),
            ("42601", "P8\0", true, Source, None),
            ("42601", ALL, true, InvalidRequest, None),
            ("42883", ALL, true, Source, None),
            ("22012", ALL, true, InvalidRequest, None),
            ("42P01", BOUND, true, InvalidRequest, Some(1)),
            ("42P01", OWN, true, Source, None),
            ("42P01", "", true, Source, None),
            ("42704", BOUND, true, InvalidRequest, Some(1)),
            ("42704", "", true, Source, None),
        ] {
            let fields = format!("SERROR\0C{state}\0Mtold\0{context}\0");
            let error = read(fields.as_bytes()).blame(false, is_bound);
            assert_eq!(
                (error.class, error.parameter),
                (class, parameter),
                "{fields:?} {is_bound}"
            );
        }
    }

    /// What is there no more for a statement's own text is looked at again, whatever else the server says; what a function lacks stays.
    #[test]
    fn only_a_statements_own_text_is_outgrown() {
        for (place, is_outgrown) in [
            ("P34\0", true),
            ("P34\0Wunnamed portal with parameters: $1 = '7'\0", true),
            (
                "p1\0qnosuch(a)\0WPL/pgSQL function f(integer) line 1 at RETURN\0",
                false,
            ),
            ("Wunnamed portal parameter $1 = '...'\0", false),
            ("", false),
        ] {
            let fields = format!("SERROR\0C42883\0Mtold\0{place}\0");
            assert_eq!(
                read(fields.as_bytes()).is_outgrown(),
                is_outgrown,
                "{place:?}"
            );
        }
        assert!(!read(b"SERROR\0C22012\0Mtold\0P34\0\0").is_outgrown());
    }

    /// Whoever stands before the server says what is wrong in words of its own.
    #[test]
    fn what_poolers_refuse_is_told_as_what_it_is() {
        use ErrorClass::{Authentication, Configuration, Unavailable};
        for (sqlstate, text, class) in [
            (
                "XX000",
                "password authentication failed for user 'x'",
                Authentication,
            ),
            (
                "XX000",
                "This IP address 192.0.2.1 is not allowed to connect",
                Authentication,
            ),
            (
                "XX000",
                "Endpoint ID is not specified. Either please upgrade",
                Configuration,
            ),
            (
                "XX000",
                "unsupported startup parameter: statement_timeout",
                Configuration,
            ),
            (
                "XX000",
                "(ENOTFOUND) tenant/user postgres.abc not found",
                Configuration,
            ),
            (
                "XX000",
                "(EMAXCONN) max client connections reached",
                Unavailable,
            ),
            ("XX000", "Couldn't connect to compute node", Unavailable),
            (
                "58000",
                "No pool configured for database: x, user: y",
                Configuration,
            ),
            (
                "58000",
                "could not get connection from the pool",
                Unavailable,
            ),
            ("08P01", "SSL required", Authentication),
            ("08P01", "login rejected", Authentication),
        ] {
            let error = ServerError {
                sqlstate: sqlstate.into(),
                fatal: false,
                routine: String::new(),
                text: text.into(),
                is_in_statement: false,
                is_in_function: false,
                parameter: None,
            };
            let told = login_refused(error, false);
            assert_eq!(told.class, class, "{text}: {told:?}");
        }
    }

    /// A transaction that others have made long fails nobody for good: the host asks again on another session.
    #[test]
    fn a_transaction_that_lasted_too_long_may_be_asked_again() {
        let error = ServerError {
            sqlstate: "25P04".into(),
            fatal: true,
            routine: String::new(),
            text: "terminating connection due to transaction timeout".into(),
            is_in_statement: false,
            is_in_function: false,
            parameter: None,
        };
        let error = error.blame(false, false);
        assert_eq!(
            (error.class, error.code.as_str()),
            (ErrorClass::Unavailable, "transaction_timeout")
        );
    }
}
