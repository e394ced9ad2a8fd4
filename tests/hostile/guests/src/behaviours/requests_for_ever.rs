//! Answers every HTTP response with another request.

use crate::Behaviour;
use souk_sdk::{Error, Input, Query, Step};

#[derive(Default)]
pub struct Guest {
    asked: u32,
}

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        step.request(super::http_request(id));
        Ok(())
    }

    fn receive(&mut self, _input: Input, step: &mut Step) -> Result<(), Error> {
        self.asked += 1;
        step.request(super::http_request(1_000 + self.asked));
        Ok(())
    }
}
