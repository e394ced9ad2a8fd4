//! Answers text that is no UTF-8.

use crate::Behaviour;
use souk_sdk::{Batch, ColumnBuilder, ColumnType, Error, Query, Step, column};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let mut texts = ColumnBuilder::new(ColumnType::Text);
        texts.var(b"\xf0\x28\x8c\x28")?;
        step.columns(id, 0, Some(vec![column("id", ColumnType::Text, "text")]));
        let chunks = vec![texts.finish()];
        step.batch(id, Batch { rows: 1, chunks });
        step.done(id);
        Ok(())
    }
}
