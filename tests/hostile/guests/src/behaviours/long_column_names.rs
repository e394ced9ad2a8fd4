//! One column whose name has 16 MiB.

use crate::{Behaviour, batch};
use souk_sdk::{ColumnType, Error, Query, Step, column};

const NAME_BYTES: usize = 16 << 20;

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let name = "n".repeat(NAME_BYTES);
        step.columns(id, 0, Some(vec![column(name, ColumnType::Int64, "int8")]));
        step.batch(id, batch(1)?);
        step.done(id);
        Ok(())
    }
}
