//! Money in the store: nothing is lost, doubled or overspent, on both backends, whatever is interleaved or crashes.

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod books;
mod charges;
mod crashes;
mod faults;
mod full_disk;
mod holds;
mod model;
mod payments;
mod records;
mod retries;
mod speed;
mod statements;
