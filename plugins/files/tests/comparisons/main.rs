//! What a statement compares, sorts and groups by is what it is: a file for each kind of value.

#[path = "../common/mod.rs"]
mod common;

mod casts;
mod columns;
mod floats;
mod groups;
mod spans;
