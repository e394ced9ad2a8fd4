//! Answers at once, and asks its source for something whenever it is told that nobody asks it for anything, as one that lets go of what it has there.

use souk_guests::Behaviour;
use souk_sdk::{
    Batch, Cell, ColumnBuilder, ColumnType, Error, Query, Settings, Step, column, http::Request,
};

/// What it is told so by: no request has this number.
const NOBODY: u32 = 0;

struct ToldIdle;

souk_guests::export!(ToldIdle);

impl Behaviour for ToldIdle {
    const NAME: &'static str = "told-idle";
    const ABILITIES: &'static [&'static str] = &["idle"];

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(ToldIdle)
    }

    fn query(&mut self, id: u32, _query: Query, step: &mut Step) -> Result<(), Error> {
        let mut numbers = ColumnBuilder::new(ColumnType::Int64);
        numbers.push(Cell::Int64(1))?;
        let chunks = vec![numbers.finish()];
        step.columns(id, 0, Some(vec![column("id", ColumnType::Int64, "int8")]));
        step.batch(id, Batch { rows: 1, chunks });
        step.done(id);
        Ok(())
    }

    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        if id == NOBODY {
            // A host gives it less.
            let request = Request::post("/left").timeout_ms(60_000);
            step.request(request.numbered(1));
        }
        Ok(())
    }
}
