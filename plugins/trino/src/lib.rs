//! Trino as a connector: a state machine over the client protocol of its coordinator (`/v1/statement`).
//!
//! Start reading at `session` (which statements a request becomes, and how each is followed to its end); `api` makes requests and `answers`
//! reads responses, `address` says where a coordinator may lead, `statements` makes the host's text Trino's, `parameters` writes bound
//! values, `reading` turns pages into batches, `types` reads the names of types, `values` the cells, `catalog` asks for the schema, `ping` tests a connection, `pauses` says when something is asked again, `errors`
//! says whose fault an error's name is.
//!
//! **Read-only.** Each statement of a seller's runs in a transaction of its own that was begun `READ ONLY`, but for a minute after one has let its text
//! pass (`souk_sdk::texts::Proof`): the coordinator refuses whatever writes to a catalog. What it does not refuse there (a session's properties, procedures, other statements than queries) is not sent: a
//! statement is one query.
//!
//! **Page by page.** An answer is told as it comes; only a page of it is held. What is not wanted any more is stopped at the coordinator.

mod address;
mod answers;
mod api;
mod catalog;
mod errors;
mod parameters;
mod pauses;
mod ping;
mod reading;
mod session;
mod settings;
mod statements;
mod types;
mod values;

pub use session::Session;

souk_sdk::export_machine!(Session);
