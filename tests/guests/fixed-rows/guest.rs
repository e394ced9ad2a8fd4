//! Answers without any source: rows `1..=n` of the columns `id`, `label` and `amount` (1.5 times the id) that
//! the statement names, or all of them; `statement`, if it is named, is the label and the statement as it came. `n` is the statement's smallest LIMIT, else the setting `rows`, else 3.

#[path = "rows.rs"]
mod rows;

use rows::Fixed;
use souk_guests::Behaviour;
use souk_sdk::{Error, Query, Settings, Step};

struct FixedRows(Fixed);

souk_guests::export!(FixedRows);

impl Behaviour for FixedRows {
    const NAME: &'static str = "fixed-rows";
    const ENGINE: &'static str = "fixed";

    fn open(settings: &Settings) -> Result<Self, Error> {
        Ok(FixedRows(Fixed::from_settings(settings)?))
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        self.0.answer(id, &query, "row", step)
    }
}
