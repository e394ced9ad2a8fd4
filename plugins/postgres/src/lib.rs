//! PostgreSQL as a connector: a state machine over the frontend/backend protocol, version 3.
//!
//! Start reading at `session` (requests in flight and what arrives for them); `startup` logs in, `statements`
//! holds the prepared ones, `types` turns binary values into columns and `parameters` values into binary,
//! `typing` says as which types they are prepared, `catalog` asks for the schema, `errors` says whose fault an SQLSTATE is.
//!
//! **Read-only.** The session starts with `default_transaction_read_only=on`, and every request is one transaction
//! that is rolled back: the statement, then `BEGIN`, `ROLLBACK` and Sync (`session/own`). A transaction that began
//! read-only cannot be made read-write after its first snapshot. What the statement did all the same goes with it,
//! as what functions write into large objects before version 16, and so does what it set for the session: the next
//! transaction begins read-only too, also when it was already on the wire. Statements that could end a transaction
//! themselves (`CALL`, `DO`, `COMMIT`) are refused before they are sent.

mod arrays;
mod catalog;
mod errors;
mod job;
mod numeric;
mod parameters;
mod protocol;
mod session;
mod settings;
mod startup;
mod statements;
mod types;
mod typing;

pub use session::Session;

souk_sdk::export_machine!(Session);
