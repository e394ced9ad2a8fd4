//! Arrow files (Feather 2 is one): batches as they lie there. A batch is read as a whole, and of it the columns that are asked for are kept.
//!
//! A column of moments may say in which zone it is to be shown; the moments are the same in UTC. It is read as one in UTC, as a column of Parquet
//! is, so that what a statement computes of it does not depend on who wrote the file.

use super::blocks::{self, BLOCK_BYTES_MAX};
use super::streamed::{self, Batches, Streamed};
use super::{Known, named, same_schema};
use crate::clock::Clock;
use crate::errors;
use crate::slice::Slice;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::arrow::ipc::reader::FileDecoder;
use datafusion::arrow::ipc::{Block, MetadataVersion};
use souk_sdk::Error;
use std::sync::Arc;

#[derive(Debug)]
struct ArrowFiles {
    files: Vec<(String, Slice)>,
    clock: Clock,
}

pub fn open(files: &[(String, Slice)], clock: &Clock) -> Result<Known, Error> {
    let mut schema: Option<SchemaRef> = None;
    for (name, slice) in files {
        clock.check()?;
        let layout = Layout::of(slice).map_err(|error| named(error, name))?;
        let found = layout.schema;
        schema = Some(match schema {
            None => found,
            Some(first) => same_schema(first, &found, name)?,
        });
    }
    let schema = schema.ok_or_else(|| errors::broken("no_files", "the table has no files"))?;
    let source = ArrowFiles {
        files: files.to_vec(),
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
            schema: Arc::new(in_utc(&schema)),
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

fn in_utc(schema: &Schema) -> Schema {
    let columns = schema.fields().iter().map(field_in_utc);
    let columns: Vec<FieldRef> = columns.collect();
    Schema::new_with_metadata(columns, schema.metadata().clone())
}

fn field_in_utc(field: &FieldRef) -> FieldRef {
    let kind = kind_in_utc(field.data_type());
    match kind == *field.data_type() {
        true => field.clone(),
        false => Arc::new(field.as_ref().clone().with_data_type(kind)),
    }
}

/// The same type with its moments, those in lists, structures and maps, too, in UTC.
fn kind_in_utc(kind: &DataType) -> DataType {
    match kind {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some("UTC".into())),
        DataType::List(of) => DataType::List(field_in_utc(of)),
        DataType::LargeList(of) => DataType::LargeList(field_in_utc(of)),
        DataType::ListView(of) => DataType::ListView(field_in_utc(of)),
        DataType::LargeListView(of) => DataType::LargeListView(field_in_utc(of)),
        DataType::FixedSizeList(of, length) => DataType::FixedSizeList(field_in_utc(of), *length),
        DataType::Map(of, is_sorted) => DataType::Map(field_in_utc(of), *is_sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field_in_utc).collect()),
        DataType::Dictionary(keys, of) => {
            DataType::Dictionary(keys.clone(), Box::new(kind_in_utc(of)))
        }
        DataType::RunEndEncoded(ends, of) => {
            DataType::RunEndEncoded(ends.clone(), field_in_utc(of))
        }
        _ => kind.clone(),
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
        let mut files = self.files.clone().into_iter();
        let mut reader_now: Option<(String, Reader)> = None;
        Ok(Box::new(std::iter::from_fn(move || {
            loop {
                if let Err(error) = clock.check() {
                    return Some(Err(error));
                }
                if let Some((name, reader)) = &mut reader_now
                    && let Some(batch) = reader.next()
                {
                    return Some(batch.map_err(|error| named(error, name)));
                }
                let (name, slice) = files.next()?;
                match Reader::new(slice, columns.clone(), &clock) {
                    Ok(next) => reader_now = Some((name, next)),
                    Err(error) => return Some(Err(named(error, &name))),
                }
            }
        })))
    }
}
