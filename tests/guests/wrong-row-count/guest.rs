//! Says that a batch has five rows and sends three.

use souk_guests::Behaviour;
use souk_sdk::{Batch, ColumnBuilder, ColumnType, Error, Query, Settings, Step, column};

struct WrongRowCount;

souk_guests::export!(WrongRowCount);

impl Behaviour for WrongRowCount {
    const NAME: &'static str = "wrong-row-count";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(WrongRowCount)
    }

    fn query(&mut self, id: u32, _query: Query, step: &mut Step) -> Result<(), Error> {
        let mut numbers = ColumnBuilder::new(ColumnType::Int64);
        (1..=3).try_for_each(|number| numbers.i64(number))?;
        step.columns(id, 0, Some(vec![column("id", ColumnType::Int64, "int8")]));
        step.batch(
            id,
            Batch {
                rows: 5,
                chunks: vec![numbers.finish()],
            },
        );
        step.done(id);
        Ok(())
    }
}
