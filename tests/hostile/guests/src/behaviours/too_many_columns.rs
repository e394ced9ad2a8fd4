//! Describes twenty thousand columns.

use crate::Behaviour;
use souk_sdk::{ColumnType, Error, Query, Step, column};

const COLUMNS: usize = 20_000;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let columns =
            (0..COLUMNS).map(|number| column(format!("c{number}"), ColumnType::Int64, "int8"));
        step.columns(id, 0, Some(columns.collect()));
        step.done(id);
        Ok(())
    }
}
