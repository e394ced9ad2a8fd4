//! BigQuery as a connector: a state machine over its REST API (v2).
//!
//! Start reading at `session` (what is asked, and what comes back); `api` makes requests and `answers` reads responses, `token` says who
//! asks, `parameters` writes bound values, `reading` reads pages of rows, whose `types` and `values` have a file each, `catalog` asks for
//! the schema, `errors` says whose fault a refusal's reason is.
//!
//! **Read-only.** BigQuery has no mode that only reads. A statement is run dry before it is run the first time, and is sent only where
//! BigQuery itself says that it is a `SELECT`: what it says of several statements is `SCRIPT`, unless all but the last make temporary functions.
//!
//! **What it costs.** A statement reads at most `maximum_bytes_billed`; BigQuery refuses one that would read more before it runs.

mod answers;
mod api;
mod catalog;
mod errors;
mod parameters;
mod reading;
mod session;
mod settings;
mod token;
mod types;
mod values;

pub use session::Session;

souk_sdk::export_machine!(Session);
