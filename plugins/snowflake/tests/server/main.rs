//! What the connector says to Snowflake, and what it makes of what Snowflake says.

#[path = "../common/mod.rs"]
mod common;
mod errors;
mod rows;
mod statements;
