//! Ends its session with 8 MiB of text.

use crate::Behaviour;
use souk_sdk::{Error, ErrorClass, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, _step: &mut Step) -> Result<(), Error> {
        let text = "words, ".repeat(1 << 20);
        let mut error = Error::new(ErrorClass::Internal, "broken", text.clone());
        error.detail = Some(text);
        Err(error)
    }
}
