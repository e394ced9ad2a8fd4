//! Fills 32 MiB some ten times, each in one instruction that nothing interrupts, and answers.

use crate::{Behaviour, one_row};
use souk_sdk::{Error, Query, Step};

/// Below what a session on a wire may have.
const FILLED_BYTES: usize = 32 << 20;
const TIMES: u8 = 10;

#[derive(Default)]
pub struct Guest {
    filled: Vec<u8>,
}

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        self.filled.resize(FILLED_BYTES, 0);
        for value in 1..=TIMES {
            // `memory.fill`, in a guest.
            self.filled.fill(value);
            std::hint::black_box(&self.filled);
        }
        one_row(id, step)
    }
}
