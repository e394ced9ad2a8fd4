//! Answers each statement after a pause of as many milliseconds as it says; or breaks then, or ends a request that nobody has made, if it says so. A
//! function's parameters say the same.

use souk_guests::{Behaviour, words_of};
use souk_sdk::{
    Batch, Call, Cell, ColumnBuilder, ColumnType, Error, Input, Query, Settings, Step, column,
};
use std::collections::BTreeMap;

#[derive(Default)]
struct Dozes {
    /// What waits for the end of its pause, and what becomes of it then.
    dozing: BTreeMap<u32, Wakes>,
}

enum Wakes {
    Well,
    Broken,
    Confused,
}

souk_guests::export!(Dozes);

impl Behaviour for Dozes {
    const NAME: &'static str = "dozes";
    const ABILITIES: &'static [&'static str] = &["pipelining", "cancel", "functions"];

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(Dozes::default())
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        self.doze(id, &query.text, step);
        Ok(())
    }

    fn call(&mut self, id: u32, call: Call, step: &mut Step) -> Result<(), Error> {
        self.doze(id, &call.parameters, step);
        Ok(())
    }

    fn receive(&mut self, input: Input, step: &mut Step) -> Result<(), Error> {
        let Input::Woken(id) = input else {
            return Ok(());
        };
        // What was given up has ended.
        match self.dozing.remove(&id) {
            None => return Ok(()),
            Some(Wakes::Well) => {}
            Some(Wakes::Broken) => panic!("it breaks, as it was asked to"),
            Some(Wakes::Confused) => {
                step.done(id.wrapping_add(1_000));
                return Ok(());
            }
        }
        let mut awake = ColumnBuilder::new(ColumnType::Boolean);
        awake.push(Cell::Boolean(true))?;
        let chunks = vec![awake.finish()];
        step.columns(
            id,
            0,
            Some(vec![column("awake", ColumnType::Boolean, "bool")]),
        );
        step.batch(id, Batch { rows: 1, chunks });
        step.done(id);
        Ok(())
    }

    fn cancel(&mut self, id: u32, step: &mut Step) -> Result<(), Error> {
        self.dozing.remove(&id);
        step.failed(id, Error::timeout("cancelled", "the request was cancelled"));
        Ok(())
    }
}

impl Dozes {
    fn doze(&mut self, id: u32, asked: &str, step: &mut Step) {
        let ms = words_of(asked).find_map(|word| word.parse().ok());
        let has = |name| words_of(asked).any(|word| word == name);
        let wakes = if has("breaks") {
            Wakes::Broken
        } else if has("confuses") {
            Wakes::Confused
        } else {
            Wakes::Well
        };
        self.dozing.insert(id, wakes);
        step.wake(id, ms.unwrap_or(0));
    }
}
