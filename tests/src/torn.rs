//! Wires that are torn in the middle of an answer. Within TLS nobody says goodbye then (`close_notify`): what has arrived is all that there is, and
//! whoever reads it has to know that it is not the whole.
//!
//! [`TornWire`] carries bytes, whatever they are, to a server that has TLS itself. [`TornFront`] ends TLS before an HTTP server that has none, as a
//! load balancer does, and says where a body ends in each of the ways that HTTP has.

mod front;
mod wire;

pub use front::{Ends, TornFront};
pub use wire::TornWire;
