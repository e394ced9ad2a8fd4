//! Hands each statement to its source as a line, and answers with each line that comes back the first that has no answer: with how often the session was
//! told to give something up.

use souk_guests::Behaviour;
use souk_sdk::{
    Batch, Cell, ColumnBuilder, ColumnType, Error, Input, Need, Query, Settings, Step, column,
};
use std::collections::VecDeque;

#[derive(Default)]
struct Relays {
    asked: VecDeque<u32>,
    cancels: i64,
}

souk_guests::export!(Relays);

impl Behaviour for Relays {
    const NAME: &'static str = "relays";
    const NEED: Need = Need::Tcp;
    const ABILITIES: &'static [&'static str] = &["pipelining", "cancel"];

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(Relays::default())
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        self.asked.push_back(id);
        step.send(format!("{}\n", query.text).as_bytes());
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        let Input::Bytes(bytes) = input else {
            return Ok(());
        };
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        for id in self.asked.drain(..lines.min(self.asked.len())) {
            let mut cancels = ColumnBuilder::new(ColumnType::Int64);
            cancels.push(Cell::Int64(self.cancels))?;
            let chunks = vec![cancels.finish()];
            let columns = vec![column("cancels", ColumnType::Int64, "int8")];
            step.columns(id, 0, Some(columns));
            step.batch(id, Batch { rows: 1, chunks });
            step.done(id);
        }
        Ok(())
    }

    /// What is given up ends when its line comes.
    fn cancel(&mut self, _id: u32, _step: &mut Step) -> Result<(), Error> {
        self.cancels += 1;
        Ok(())
    }
}
