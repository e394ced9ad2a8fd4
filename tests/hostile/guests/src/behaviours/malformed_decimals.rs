//! Answers `12,5 EUR` as an exact number.

use crate::Behaviour;
use souk_sdk::{Cell, ColumnType, Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        super::one_value(id, ColumnType::Decimal, Cell::Decimal("12,5 EUR"), step)
    }
}
