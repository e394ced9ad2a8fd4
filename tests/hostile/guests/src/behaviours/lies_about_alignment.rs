//! Passes a list of 64-bit numbers at an odd address.

use crate::{Behaviour, id_column};
use souk_sdk::{Batch, Chunk, ColumnData, Error, Query, Step};

#[derive(Default)]
pub struct Guest;

impl Behaviour for Guest {
    fn query(&mut self, id: u32, _query: &Query, step: &mut Step) -> Result<(), Error> {
        let lie = super::lying_list(1025, 1);
        step.columns(id, 0, Some(id_column()));
        let chunks = vec![Chunk {
            validity: None,
            data: ColumnData::I64s(lie),
        }];
        step.batch(id, Batch { rows: 1, chunks });
        step.done(id);
        Ok(())
    }
}
