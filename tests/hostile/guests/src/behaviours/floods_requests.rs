//! Makes 300 HTTP requests at once for one statement.

use crate::Behaviour;
use souk_sdk::{Error, Query, Step};

const REQUESTS: u32 = 300;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        for number in 0..REQUESTS {
            step.request(super::http_request(number));
        }
        Ok(())
    }
}
