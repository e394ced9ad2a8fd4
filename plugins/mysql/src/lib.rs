//! MySQL and MariaDB as a connector: a state machine over the client/server protocol, version 10.
//!
//! Start reading at `session` (the request at work and what arrives for it); `frames` cuts messages from packets, `startup` logs in
//! with the help of `secrets`, `identity` says which server it is, `statements` holds the prepared ones, `types` says what a column is, `values` turns binary values
//! into columns and `parameters` values into binary, `catalog` asks for the schema, `errors` says whose fault an error number is.
//!
//! **Read-only.** The session's default is READ ONLY, and every request is one explicit `START TRANSACTION READ ONLY`, the statement,
//! and `ROLLBACK`, sent together; or that has begun the next one's transaction (`AND CHAIN`), which is as read-only. The server refuses a write in it with error 1792 whatever the user may do, and nothing that a statement
//! sets makes a transaction writable that has begun. What would end the transaction instead (`COMMIT`, and to MariaDB `CREATE` or `DROP`)
//! is no query, hence refused before it is sent, and by the server in functions, the only other place where it could stand.
//!
//! **One request at a time.** What stops a statement at the server (`KILL QUERY`) strikes whatever a session is doing; with a second request
//! behind the first it could strike the wrong one. (Behind an answered one comes the end of its transaction: what strikes that is known, and harmless.)

mod catalog;
mod dates;
mod errors;
mod frames;
mod identity;
mod job;
mod parameters;
mod protocol;
#[cfg(target_arch = "wasm32")]
mod sealing;
mod secrets;
mod session;
mod settings;
mod startup;
mod statements;
mod types;
mod values;

pub use session::Session;

souk_sdk::export_machine!(Session);
