//! The rules of the marketplace as plain values and functions.
//!
//! Knows no clock, database, wire or JSON: callers pass `now`, and rows and bodies are made elsewhere.

pub mod keys;
pub mod prices;
pub mod roles;
