//! Money in the store: nothing is lost, doubled or overspent, on both backends, whatever is interleaved or crashes.

#[path = "../support/mod.rs"]
mod support;

mod books;
mod charges;
mod faults;
mod holds;
mod model;
mod payments;
mod retries;
mod speed;
