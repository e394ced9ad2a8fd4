//! Ignores the limits: twice the rows that it may answer (plus one), a thousand in a batch.

use souk_guests::Behaviour;
use souk_sdk::{Batch, ColumnBuilder, ColumnType, Error, Query, Settings, Step, column};

struct TooManyRows;

souk_guests::export!(TooManyRows);

impl Behaviour for TooManyRows {
    const NAME: &'static str = "too-many-rows";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(TooManyRows)
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        let mut left = u64::from(query.limits.rows_max) * 2 + 1;
        step.columns(id, 0, Some(vec![column("id", ColumnType::Int64, "int8")]));
        while left > 0 {
            let rows = left.min(BATCH_ROWS);
            let mut numbers = ColumnBuilder::new(ColumnType::Int64);
            (0..rows as i64).try_for_each(|number| numbers.i64(number))?;
            step.batch(
                id,
                Batch {
                    rows: rows as u32,
                    chunks: vec![numbers.finish()],
                },
            );
            left -= rows;
        }
        step.done(id);
        Ok(())
    }
}

const BATCH_ROWS: u64 = 1_000;
