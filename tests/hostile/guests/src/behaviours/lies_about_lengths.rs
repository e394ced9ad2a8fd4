//! Passes a list that is longer than its memory.

use crate::{Behaviour, id_column};
use souk_sdk::{Batch, Chunk, ColumnData, Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let lie = super::lying_list(16, 1 << 28);
        step.columns(id, 0, Some(id_column()));
        let chunks = vec![Chunk {
            validity: None,
            data: ColumnData::I64s(lie),
        }];
        step.batch(
            id,
            Batch {
                rows: 1 << 28,
                chunks,
            },
        );
        step.done(id);
        Ok(())
    }
}
