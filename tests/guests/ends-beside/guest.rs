//! Answers at once, and asks its source for something beside that, as one that ends what it has there. A word of the statement says how long
//! that may take: `SELECT ms_900`.

use souk_guests::{Behaviour, words};
use souk_sdk::{
    Batch, Cell, ColumnBuilder, ColumnType, Error, Query, Settings, Step, column, http::Request,
};

struct EndsBeside;

souk_guests::export!(EndsBeside);

impl Behaviour for EndsBeside {
    const NAME: &'static str = "ends-beside";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(EndsBeside)
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        let mut told = words(&query).filter_map(|word| word.strip_prefix("ms_")?.parse().ok());
        let request = Request::post("/ended").timeout_ms(told.next().unwrap_or(900));
        step.request(request.numbered(id));
        let mut numbers = ColumnBuilder::new(ColumnType::Int64);
        numbers.push(Cell::Int64(1))?;
        let chunks = vec![numbers.finish()];
        step.columns(id, 0, Some(vec![column("id", ColumnType::Int64, "int8")]));
        step.batch(id, Batch { rows: 1, chunks });
        step.done(id);
        Ok(())
    }
}
