//! Fails with 8 MiB of text in every member of its error.

use crate::Behaviour;
use souk_sdk::{Error, ErrorClass, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let text = || "words, ".repeat(1 << 18);
        let mut error = Error::new(ErrorClass::Source, text(), text());
        error.detail = Some(text());
        error.source_code = Some(text());
        step.failed(id, error);
        Ok(())
    }
}
