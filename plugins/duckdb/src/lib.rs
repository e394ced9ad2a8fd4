//! DuckDB as a connector: a state machine over Quack, the protocol of DuckDB's own server (version 1: DuckDB 1.5).
//!
//! Start reading at `session` (which messages a request becomes, and in what order); `outgoing` sends them, `opening` has what stands before a statement, `idle` the connections between two of them, `protocol` makes and reads them, `wire` knows DuckDB's
//! binary serialization, `types` its logical types, `vectors` the columns of a chunk, `values` and `nested` what becomes of their cells, `notation` how
//! times and the like are written. `statements` makes the host's text DuckDB's, and has what a session knows of it, `parsed` judges what DuckDB's own parser says of it, `functions` knows which of what it calls only computes,
//! `parameters` writes bound values, `reading` turns chunks into batches, `catalog` asks for the schema, `errors` says whose fault a refusal is.
//!
//! **Read-only.** A statement is one query to the connector's lexer, one `SELECT` to DuckDB's parser, which names no function that reads
//! files, and runs in a transaction that was begun `READ ONLY`, in which DuckDB writes to no database, or alone when such a transaction has let the same
//! text pass within the last minute, and nothing in it but tables and views can have become another thing.
//!
//! **Bounded.** A chunk is decoded where it lies, one at a time; what it says of itself is believed only as far as its bytes go.

mod catalog;
mod errors;
mod functions;
mod idle;
mod nested;
mod notation;
mod opening;
mod outgoing;
mod parameters;
mod parsed;
mod protocol;
mod reading;
mod session;
mod settings;
mod statements;
mod types;
mod values;
mod vectors;
mod wire;

pub use session::Session;

souk_sdk::export_machine!(Session);
