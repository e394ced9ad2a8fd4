//! Answers one text of 3 MiB, again and again.

use crate::Behaviour;
use souk_sdk::{Cell, ColumnType, Error, Query, Step};

const VALUE_BYTES: usize = 3 << 20;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let text = "v".repeat(VALUE_BYTES);
        super::one_value(id, ColumnType::Text, Cell::Text(&text), step)
    }
}
