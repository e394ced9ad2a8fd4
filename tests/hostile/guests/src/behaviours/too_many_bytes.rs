//! Answers 32 MiB in one value.

use crate::Behaviour;
use souk_sdk::{Cell, ColumnType, Error, Query, Step};

const VALUE_BYTES: usize = 32 << 20;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let text = "b".repeat(VALUE_BYTES);
        super::one_value(id, ColumnType::Text, Cell::Text(&text), step)
    }
}
