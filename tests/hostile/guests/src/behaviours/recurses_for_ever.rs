//! Runs out of stack.

use crate::Behaviour;
use souk_sdk::{Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let depth = deeper(u64::from(id));
        step.failed(id, Error::internal("bottom", depth.to_string()));
        Ok(())
    }
}

/// No tail call: the result is used.
#[allow(unconditional_recursion, reason = "it is what this guest is for")]
#[inline(never)]
fn deeper(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    deeper(depth + 1) + frame[(depth % 64) as usize]
}
