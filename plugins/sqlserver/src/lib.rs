//! SQL Server and Azure SQL as a connector: a state machine over the Tabular Data Stream, 7.4 and 8.0.
//!
//! Start reading at `session` (what a request is made of, and what arrives for it); `protocol` cuts messages from the stream, `login` opens a
//! session, `tokens` reads what a message is made of, `job` is the request at work, `rows` finds a row's values, `types` says what a column
//! becomes, `values` and `dates` write the values, `requests` is what is sent with bound values (`parameters`), `statements` refuses what
//! writes, `catalog` asks for the schema, `ping` tests a connection, `patience` bounds a statement's time, `errors` says whose fault an error number is.
//!
//! The crate `tds-protocol` writes logins and calls and reads descriptions of columns. What it does not carry is here: rows of which only a
//! part has arrived, and bounds on what a server may have a session hold.
//!
//! **Read-only.** T-SQL has no transaction that only reads. So a statement is one query by its words, wherever they stand; it runs in a
//! transaction that is always rolled back; and a connection's test tries a write and says so if it succeeds.
//!
//! **One request at a time.** What stops a statement (ATTENTION) strikes whatever a session is doing, and until it is acknowledged nothing else is sent.

mod catalog;
mod dates;
mod errors;
mod job;
mod login;
mod parameters;
mod patience;
mod ping;
mod protocol;
mod requests;
mod rows;
mod session;
mod settings;
mod statements;
mod tokens;
mod types;
mod values;

pub use session::Session;

souk_sdk::export_machine!(Session);
