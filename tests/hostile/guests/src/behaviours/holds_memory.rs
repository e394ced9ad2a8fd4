//! Takes 48 MiB with its first statement, keeps them for its life, and answers.

use crate::{Behaviour, one_row};
use souk_sdk::{Error, Query, Step};

/// Below what a session on a wire may have.
const HELD_BYTES: usize = 48 << 20;

#[derive(Default)]
pub struct Guest {
    kept: Vec<u8>,
}

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        if self.kept.is_empty() {
            self.kept = std::hint::black_box(vec![0xa5; HELD_BYTES]);
        }
        one_row(id, step)
    }
}
