//! Answers a JSON document that is nested a million times.

use crate::Behaviour;
use souk_sdk::{Cell, ColumnType, Error, Query, Step};

const DEPTH: usize = 1_000_000;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let text = format!("{}1{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
        super::one_value(id, ColumnType::Json, Cell::Json(&text), step)
    }
}
