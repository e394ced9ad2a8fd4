//! The hostile guests: three components that can do everything, and the behaviours that a connection chooses from.

include!(concat!(env!("OUT_DIR"), "/guests.rs"));
include!(concat!(env!("OUT_DIR"), "/behaviours.rs"));
