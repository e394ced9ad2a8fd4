//! Sends more than anybody reads: 256 MiB for one statement, 1 MiB a step.

use crate::Behaviour;
use souk_sdk::{Error, Input, Query, Step};

/// As much as its memory holds at once.
const PIECES: usize = 20;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        for _ in 0..PIECES {
            step.send(&[0x5a; 1 << 20]);
        }
        Ok(())
    }

    fn receive(&mut self, _input: Input, step: &mut Step) -> Result<(), Error> {
        for _ in 0..PIECES {
            step.send(&[0x5a; 1 << 20]);
        }
        Ok(())
    }
}
