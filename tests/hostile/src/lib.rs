//! Proof that no company can hurt another: guests, servers and files that try, and what must be seen while they do.
//!
//! The guests are components ([`guests`], [`components`]), the servers are the conformance kit's and run in this process ([`servers`]), the files are made here
//! ([`files`], and [`bombs`] for the connector that has to be built). [`scenarios`] says which answers are right, [`stage`] sets a scenario up over REST, [`watch`] reads what the host takes from
//! its machine, [`flood`] keeps requests in flight. `tests/` runs every scenario once; the command `tests/hostile/run` measures what a
//! neighbour notices.

pub mod bombs;
pub mod components;
pub mod files;
pub mod flood;
pub mod guests;
pub mod scenarios;
pub mod stage;
pub mod watch;

pub use souk_conformance::servers;
