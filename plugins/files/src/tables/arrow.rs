//! Arrow files (Feather 2 is one): batches as they lie there. A batch is read as a whole, and of it the columns that are asked for are kept.

use super::blocks::{self, BLOCK_BYTES_MAX};
use super::streamed::{self, Batches, Streamed};
use super::{Known, same_schema};
use crate::clock::Clock;
use crate::errors;
use crate::slice::Slice;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::ipc::reader::FileDecoder;
use datafusion::arrow::ipc::{Block, MetadataVersion};
use souk_sdk::Error;
use std::sync::Arc;

#[derive(Debug)]
struct ArrowFiles {
    slices: Vec<Slice>,
    clock: Clock,
}

pub fn open(files: &[(String, Slice)], clock: &Clock) -> Result<Known, Error> {
    let mut schema: Option<SchemaRef> = None;
    for (name, slice) in files {
        clock.check()?;
        let found = Layout::of(slice)?.schema;
        schema = Some(match schema {
            None => found,
            Some(first) => same_schema(first, &found, name)?,
        });
    }
    let schema = schema.ok_or_else(|| errors::broken("no_files", "the table has no files"))?;
    let source = ArrowFiles {
        slices: files.iter().map(|(_, slice)| slice.clone()).collect(),
        clock: clock.clone(),
    };
    Ok(streamed::known(schema, Arc::new(source), None, 0))
}

/// What a file's footer says.
struct Layout {
    schema: SchemaRef,
    version: MetadataVersion,
    dictionaries: Vec<Block>,
    batches: Vec<Block>,
}

impl Layout {
    fn of(slice: &Slice) -> Result<Layout, Error> {
        let bytes = blocks::footer(slice)?;
        let (footer, schema) = blocks::parsed(&bytes)?;
        Ok(Layout {
            schema: Arc::new(schema),
            version: footer.version(),
            dictionaries: footer
                .dictionaries()
                .into_iter()
                .flatten()
                .copied()
                .collect(),
            batches: footer
                .recordBatches()
                .into_iter()
                .flatten()
                .copied()
                .collect(),
        })
    }
}

/// One reading of a file.
struct Reader {
    slice: Slice,
    schema: SchemaRef,
    batches: std::vec::IntoIter<Block>,
    decoder: FileDecoder,
}

impl Reader {
    fn new(slice: Slice, columns: Vec<usize>, clock: &Clock) -> Result<Reader, Error> {
        let layout = Layout::of(&slice)?;
        let decoder = FileDecoder::new(layout.schema.clone(), layout.version);
        let mut decoder = decoder.with_projection(columns);
        let mut left = BLOCK_BYTES_MAX;
        for block in &layout.dictionaries {
            clock.check()?;
            let bytes = blocks::block(&slice, block, &mut left)?;
            blocks::check_dictionary(&layout.schema, block, &bytes, &mut left)?;
            let read = decoder.read_dictionary(block, &bytes);
            read.map_err(|error| errors::of_file(&error))?;
        }
        Ok(Reader {
            slice,
            schema: layout.schema,
            batches: layout.batches.into_iter(),
            decoder,
        })
    }

    fn next(&mut self) -> Option<Result<RecordBatch, Error>> {
        let block = self.batches.next()?;
        self.batch(&block).transpose()
    }

    fn batch(&self, block: &Block) -> Result<Option<RecordBatch>, Error> {
        let mut left = BLOCK_BYTES_MAX;
        let bytes = blocks::block(&self.slice, block, &mut left)?;
        let schema: &Schema = &self.schema;
        blocks::check_rows(schema, block, &bytes, &mut left)?;
        let batch = self.decoder.read_record_batch(block, &bytes);
        batch.map_err(|error| errors::of_file(&error))
    }
}

impl Streamed for ArrowFiles {
    fn batches(&self, columns: &[usize]) -> Result<Batches, Error> {
        let (columns, clock) = (columns.to_vec(), self.clock.clone());
        let mut slices = self.slices.clone().into_iter();
        let mut reader_now: Option<Reader> = None;
        Ok(Box::new(std::iter::from_fn(move || {
            loop {
                if let Err(error) = clock.check() {
                    return Some(Err(error));
                }
                if let Some(batch) = reader_now.as_mut().and_then(Reader::next) {
                    return Some(batch);
                }
                match Reader::new(slices.next()?, columns.clone(), &clock) {
                    Ok(next) => reader_now = Some(next),
                    Err(error) => return Some(Err(error)),
                }
            }
        })))
    }
}
