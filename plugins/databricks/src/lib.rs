//! Databricks as a connector: a state machine over the SQL Statement Execution API of a workspace (`/api/2.0/sql/statements`).
//!
//! Start reading at `session` (how each statement is followed to its end) and `jobs` (which statements a request becomes); `api` makes requests and `answers`
//! reads responses, `statements` makes the host's text Databricks', `parameters` writes bound values, `described` says of which columns a
//! result is before it is asked for, `reading` turns chunks into batches, `types` reads the names of types, `values` the cells, `catalog`
//! asks for the schema, `ping` tests a connection, `token` keeps a service principal's token, `pauses` says when something is asked
//! again, `errors` says whose fault a refusal is.
//!
//! **Read-only.** Databricks has no transaction that only reads. Its own parser says instead what a text is: `DESCRIBE QUERY` takes
//! queries and nothing else, and what it does not take is not run.
//!
//! **To the last digit.** The API writes a moment with three digits of a second, whatever it has. Columns that would lose digits so are
//! asked for in other words, around the seller's statement.

mod answers;
mod api;
mod catalog;
mod described;
mod errors;
mod jobs;
mod parameters;
mod pauses;
mod ping;
mod reading;
mod session;
mod settings;
mod statements;
mod token;
mod types;
mod values;

pub use session::Session;

souk_sdk::export_machine!(Session);
