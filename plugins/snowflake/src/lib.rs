//! Snowflake as a connector: a state machine over its SQL API (`/api/v2/statements`).
//!
//! Start reading at `session` (what a statement goes through); `api` makes requests and `answers` reads responses (`rows` their rows,
//! `unpacking` what is compressed), `token` says who asks,
//! `statements` is the lock on statements, `parameters` writes bound values, `reading` turns partitions into batches, whose `types` and
//! `values` have a file each (`documents` mends what Snowflake writes beside JSON), `catalog` asks for the schema, `ping` tests a connection,
//! `pauses` says when something is asked again, `errors` says whose fault a refusal's code is.
//!
//! **Read-only.** Snowflake has no mode that only reads: the role that souk is given must not write. The second lock is `statements`: one
//! query, and no word in it by which a query is known to write, to run an anonymous procedure, or to stop what others run. A procedure or a
//! function of the seller's that is called by its name (`TABLE(p(1))`) looks like any other function: the role must not be granted it.
//!
//! **Asked at once, answered later.** A statement is sent to run by itself (`async=true`): the first answer has its name, by which it is asked
//! after and stopped.

mod answers;
mod api;
mod catalog;
mod documents;
mod errors;
mod parameters;
mod pauses;
mod ping;
mod reading;
mod rows;
mod session;
mod settings;
mod statements;
mod token;
mod types;
mod unpacking;
mod values;

pub use session::Session;

souk_sdk::export_machine!(Session);
