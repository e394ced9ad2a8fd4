//! Keeps another 2 MiB with every statement, and answers it.

use crate::{Behaviour, one_row};
use souk_sdk::{Error, Query, Step};

const PIECE_BYTES: usize = 2 << 20;

#[derive(Default)]
pub struct Guest {
    kept: Vec<Vec<u8>>,
}

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        self.kept
            .push(std::hint::black_box(vec![0xa5; PIECE_BYTES]));
        one_row(id, step)
    }
}
