//! Moments are what they are, in each zone and of any year.

#[path = "../common/mod.rs"]
mod common;

mod years;
mod zones;
