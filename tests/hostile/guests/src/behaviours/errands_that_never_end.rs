//! Sends an errand for each statement that takes memory and never answers, and answers itself when the host has cut that.

use super::conferred;
use crate::Behaviour;
use souk_sdk::{Errand, Error, Input, Query, Step};

/// Which the host has to free.
const BYTES: usize = 32 << 20;

#[derive(Default)]
pub struct Guest {
    kept: Vec<u8>,
}

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        step.confer(id, b"stop, please".to_vec());
        Ok(())
    }

    fn errand(&mut self, _id: u32, _errand: &Errand, _step: &mut Step) -> Result<(), Error> {
        self.kept = std::hint::black_box(vec![0xa5; BYTES]);
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        conferred(input, "", step)
    }

    fn cancel(&mut self, _id: u32, _step: &mut Step) -> Result<(), Error> {
        Ok(())
    }
}
