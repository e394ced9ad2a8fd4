//! Answers an exact number of four million digits.

use crate::Behaviour;
use souk_sdk::{Cell, ColumnType, Error, Query, Step};

const DIGITS: usize = 4_000_000;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let digits = "9".repeat(DIGITS);
        super::one_value(id, ColumnType::Decimal, Cell::Decimal(&digits), step)
    }
}
