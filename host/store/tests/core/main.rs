//! The store's ground: migrations, locks, transactions, keys and companies.

#[path = "../support/mod.rs"]
mod support;

mod companies;
mod ground;
mod keys;
mod server;
