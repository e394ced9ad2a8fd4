//! Asks its source for the path that a statement is, and answers with the status of the answer. What it has asked for it cannot give up.

use souk_guests::Behaviour;
use souk_sdk::{
    Batch, Cell, ColumnBuilder, ColumnType, Error, Input, Query, Settings, Step, column,
    http::Request,
};

struct HoldsOn;

souk_guests::export!(HoldsOn);

impl Behaviour for HoldsOn {
    const NAME: &'static str = "holds-on";
    const DIALECT: &'static str = "opaque";
    const ABILITIES: &'static [&'static str] = &["pipelining"];

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(HoldsOn)
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        let request = Request::get(query.text).timeout_ms(query.limits.timeout_ms);
        step.request(request.numbered(id));
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        let response = match input {
            Input::Response(response) => response,
            Input::RequestFailed(failure) => {
                step.failed(failure.id, Error::from(failure));
                return Ok(());
            }
            _ => return Ok(()),
        };
        let mut statuses = ColumnBuilder::new(ColumnType::Int64);
        statuses.push(Cell::Int64(response.status.into()))?;
        let chunks = vec![statuses.finish()];
        step.columns(
            response.id,
            0,
            Some(vec![column("status", ColumnType::Int64, "int8")]),
        );
        step.batch(response.id, Batch { rows: 1, chunks });
        step.done(response.id);
        Ok(())
    }
}
