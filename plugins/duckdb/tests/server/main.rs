//! What a session asks of a server, in which order, and what it makes of refusals.

#[path = "../common/mod.rs"]
mod common;
mod connections;
mod refusals;
mod rows;
mod statements;
