//! Answers requests that come together all at once, when the last of them is there: each is told how many they were, and whether it was all that there
//! was to do.

use souk_guests::Behaviour;
use souk_sdk::{
    Batch, Cell, ColumnBuilder, ColumnType, Error, Need, Query, Settings, Step, column, is_alone,
    is_followed,
};

#[derive(Default)]
struct Grouped {
    held: Vec<u32>,
}

souk_guests::export!(Grouped);

impl Behaviour for Grouped {
    const NAME: &'static str = "grouped";
    const NEED: Need = Need::Tcp;
    const ABILITIES: &'static [&'static str] = &["pipelining", "groups", "alone"];

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(Grouped::default())
    }

    fn query(&mut self, id: u32, _query: Query, step: &mut Step) -> Result<(), Error> {
        self.held.push(id);
        if is_followed(id) {
            return Ok(());
        }
        let size = self.held.len() as i64;
        for id in self.held.drain(..) {
            let mut sizes = ColumnBuilder::new(ColumnType::Int64);
            sizes.push(Cell::Int64(size))?;
            let mut alone = ColumnBuilder::new(ColumnType::Boolean);
            alone.push(Cell::Boolean(is_alone(id)))?;
            let chunks = vec![sizes.finish(), alone.finish()];
            let columns = vec![
                column("size", ColumnType::Int64, "int8"),
                column("alone", ColumnType::Boolean, "bool"),
            ];
            step.columns(id, 0, Some(columns));
            step.batch(id, Batch { rows: 1, chunks });
            step.done(id);
        }
        Ok(())
    }
}
