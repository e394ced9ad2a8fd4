//! What a statement computes has all of its digits, or is refused.

#[path = "../common/mod.rs"]
mod common;

mod digits;
mod sums;
