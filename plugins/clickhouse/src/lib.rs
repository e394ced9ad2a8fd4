//! ClickHouse as a connector: a state machine over its HTTP interface.
//!
//! Start reading at `session` (what is asked, and what comes back); `api` makes requests and reads responses, `statements` puts typed
//! parameters where the host wrote `?`, `parameters` writes their values, `head` reads what describes an answer's columns, `types` the names
//! of types, `values` turns RowBinary into columns, `catalog` asks for the schema, `errors` says whose fault an error's code is.
//!
//! **Read-only.** Every statement of a seller's goes with `readonly=1`, which the server holds itself: nothing is written, no setting is
//! changed, and no table function reads what needs a temporary table. A user whose profile is read-only already is not told what it may
//! not change: `readonly=2` stays 2, and with 1 no setting is sent at all, not even the time limit.
//!
//! **Whole answers.** `wait_end_of_query=1`: the server sends nothing before it knows that there is no error. What tells of one behind the
//! rows nevertheless (a proxy may have dropped the wish) is looked for in every answer.

mod api;
mod catalog;
mod errors;
mod head;
mod parameters;
mod session;
mod settings;
mod statements;
mod types;
mod values;

pub use session::Session;

souk_sdk::export_machine!(Session);
