//! Makes 300 HTTP requests before it is ready.

use crate::Behaviour;
use souk_sdk::{Error, Step};

const REQUESTS: u32 = 300;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn start(&mut self, step: &mut Step) -> Result<(), Error> {
        for number in 0..REQUESTS {
            step.request(super::http_request(number));
        }
        Ok(())
    }
}
