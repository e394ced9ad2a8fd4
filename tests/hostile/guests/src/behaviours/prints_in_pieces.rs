//! Prints a letter at a time, in turn to standard output and to standard error, without an end of line.

use std::io::Write as _;

use crate::Behaviour;
use souk_sdk::{Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, _id: u32, _query: &Query, _step: &mut Step) -> Result<(), Error> {
        loop {
            // Each is a call of the host, whatever that says to it.
            let _ = std::io::stdout()
                .write_all(b"o")
                .and_then(|()| std::io::stdout().flush());
            let _ = std::io::stderr().write_all(b"e");
        }
    }
}
