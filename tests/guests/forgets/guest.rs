//! Asks its source once for each statement, and answers with the status of the answer. It counts nothing: what is given up it forgets, also where the source
//! has not answered it yet.

use souk_guests::Behaviour;
use souk_sdk::{
    Batch, Cell, ColumnBuilder, ColumnType, Error, Input, Query, Settings, Step, column,
    http::Request,
};
use std::collections::BTreeSet;

#[derive(Default)]
struct Forgets {
    waiting: BTreeSet<u32>,
}

souk_guests::export!(Forgets);

impl Behaviour for Forgets {
    const NAME: &'static str = "forgets";
    const ABILITIES: &'static [&'static str] = &["pipelining", "cancel"];

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(Forgets::default())
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        let request = Request::get("/").timeout_ms(query.limits.timeout_ms);
        step.request(request.numbered(id));
        self.waiting.insert(id);
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        let (id, outcome) = match input {
            Input::Response(response) => (response.id, Ok(response.status)),
            Input::RequestFailed(failure) => (failure.id, Err(Error::from(failure))),
            _ => return Ok(()),
        };
        if !self.waiting.remove(&id) {
            return Ok(());
        }
        match outcome {
            Ok(status) => answer(id, status, step),
            Err(error) => {
                step.failed(id, error);
                Ok(())
            }
        }
    }

    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        self.waiting.remove(&id);
        step.failed(id, Error::timeout("cancelled", "the request was cancelled"));
        Ok(())
    }
}

fn answer(id: u32, status: u16, step: &mut Step) -> Result<(), Error> {
    let mut statuses = ColumnBuilder::new(ColumnType::Int64);
    statuses.push(Cell::Int64(status.into()))?;
    let chunks = vec![statuses.finish()];
    step.columns(
        id,
        0,
        Some(vec![column("status", ColumnType::Int64, "int8")]),
    );
    step.batch(id, Batch { rows: 1, chunks });
    step.done(id);
    Ok(())
}
