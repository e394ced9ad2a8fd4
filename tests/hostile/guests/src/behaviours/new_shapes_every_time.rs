//! Describes its result anew with every statement, in other words of 1 MiB, which a session remembers.

use crate::{Behaviour, batch};
use souk_sdk::{ColumnType, Error, Query, Step, column};

const TYPE_BYTES: usize = 1 << 20;

#[derive(Default)]
pub struct Guest {
    shape: u32,
}

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        self.shape += 1;
        let native = format!("{}{}", self.shape, "t".repeat(TYPE_BYTES));
        step.columns(
            id,
            self.shape,
            Some(vec![column("id", ColumnType::Int64, native)]),
        );
        step.batch(id, batch(1)?);
        step.done(id);
        Ok(())
    }
}
