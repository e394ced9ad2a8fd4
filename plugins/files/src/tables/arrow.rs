//! Arrow files (Feather 2 is one): batches as they lie there, only those columns that are asked for.

use super::streamed::{self, Batches, Streamed};
use super::{Known, same_schema};
use crate::clock::Clock;
use crate::errors;
use crate::slice::{Front, Slice};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::FileReader;
use souk_sdk::Error;
use std::io::BufReader;
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
        let found = reader(slice, None)?.schema();
        match &schema {
            None => schema = Some(found),
            Some(first) => same_schema(first, &found, name)?,
        }
    }
    let schema = schema.ok_or_else(|| errors::broken("no_files", "the table has no files"))?;
    let source = ArrowFiles {
        slices: files.iter().map(|(_, slice)| slice.clone()).collect(),
        clock: clock.clone(),
    };
    Ok(streamed::known(schema, Arc::new(source), None))
}

fn reader(
    slice: &Slice,
    columns: Option<Vec<usize>>,
) -> Result<FileReader<BufReader<Front>>, Error> {
    FileReader::try_new(slice.reader(), columns).map_err(failed)
}

fn failed(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => errors::unreadable(error),
        error => errors::of_file(&error),
    }
}

impl Streamed for ArrowFiles {
    fn batches(&self, columns: &[usize]) -> Result<Batches, Error> {
        let (columns, clock) = (columns.to_vec(), self.clock.clone());
        let mut slices = self.slices.clone().into_iter();
        let mut reader_now: Option<FileReader<BufReader<Front>>> = None;
        Ok(Box::new(std::iter::from_fn(move || {
            loop {
                if let Err(error) = clock.check() {
                    return Some(Err(error));
                }
                if let Some(batch) = reader_now.as_mut().and_then(Iterator::next) {
                    return Some(batch.map_err(failed));
                }
                match reader(&slices.next()?, Some(columns.clone())) {
                    Ok(next) => reader_now = Some(next),
                    Err(error) => return Some(Err(error)),
                }
            }
        })))
    }
}
