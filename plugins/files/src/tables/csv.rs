//! CSV: read as a whole once, to find each column's type, and then batch by batch.
//!
//! The first line names the columns. An empty field is NULL. What separates fields is what the first line has most of.

use super::profile::Profile;
use super::streamed::{self, Batches, Streamed};
use super::text::{self, Opened, RECORD_BYTES_MAX, Text};
use super::{COLUMNS_MAX, Known, named};
use crate::clock::Clock;
use crate::errors;
use crate::slice::Slice;
use ::csv::{ErrorKind, ReaderBuilder, StringRecord};
use datafusion::arrow::csv::ReaderBuilder as Batched;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use souk_sdk::Error;
use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the reader takes of the text at a time.
const AHEAD_BYTES: usize = 64 * 1024;
/// What is read behind the end of a file: a record of its own, unless a quote is still open there.
const BEHIND: &str = "\nthe end";

#[derive(Debug)]
struct CsvFiles {
    text: Text,
    schema: SchemaRef,
    separators: Vec<u8>,
    longest: u64,
}

/// What was found in the files so far.
#[derive(Default)]
struct Found {
    names: Vec<String>,
    profiles: Vec<Profile>,
    separators: Vec<u8>,
    rows: u64,
    longest: u64,
    bytes: u64,
}

pub fn open(
    files: &[(String, Slice)],
    clock: &Clock,
    tabs: bool,
    packed: bool,
) -> Result<Known, Error> {
    let text = Text {
        files: files.to_vec(),
        packed,
        clock: clock.clone(),
    };
    let mut found = Found::default();
    for (name, slice) in &text.files {
        let opened = text.open(slice);
        opened
            .and_then(|opened| found.file(opened, tabs))
            .map_err(|error| named(error, name))?;
    }
    let fields = found.names.iter().zip(&found.profiles);
    let fields = fields.map(|(name, profile)| {
        Field::new(
            name,
            profile.data_type(),
            profile.has_null || found.rows == 0,
        )
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let source = CsvFiles {
        text,
        schema: schema.clone(),
        separators: found.separators,
        longest: found.longest,
    };
    let row_bytes = found.bytes / found.rows.max(1);
    let rows = Some(found.rows);
    Ok(streamed::known(schema, Arc::new(source), rows, row_bytes))
}

impl Found {
    /// Reads one file from front to back.
    fn file(&mut self, mut opened: Opened, tabs: bool) -> Result<(), Error> {
        let separator = if tabs {
            b'\t'
        } else {
            separator(opened.peek()?)
        };
        self.separators.push(separator);
        let begun = opened.begun();
        let reader = ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(AHEAD_BYTES)
            .from_reader(opened.chain(BEHIND.as_bytes()));
        let mut records = Records {
            reader,
            at: 0,
            begun,
        };
        let (mut record, mut next) = (StringRecord::new(), StringRecord::new());
        let mut bytes = records.read(&mut record)?.unwrap_or_default();
        let mut is_first = true;
        while let Some(bytes_of_next) = records.read(&mut next)? {
            match is_first {
                true => self.header(&record)?,
                false => self.record(&record)?,
            }
            self.longest = self.longest.max(bytes);
            self.bytes += bytes;
            is_first = false;
            bytes = bytes_of_next;
            std::mem::swap(&mut record, &mut next);
        }
        // All that follows on an open quote would be one field, and its rows be none.
        if record.iter().ne([BEHIND.trim_start()]) {
            return Err(quote_not_closed(&record));
        }
        match is_first {
            true => Err(errors::broken(
                "no_columns",
                "the file is empty: its first line has to name the columns",
            )),
            false => Ok(()),
        }
    }

    fn header(&mut self, record: &StringRecord) -> Result<(), Error> {
        if record.len() > COLUMNS_MAX {
            return Err(errors::broken(
                "too_many_columns",
                format!("the file has more than {COLUMNS_MAX} columns"),
            ));
        }
        let names = record.iter().enumerate().map(|(at, name)| match name {
            "" => format!("column_{}", at + 1),
            name => name.to_owned(),
        });
        let names: Vec<String> = names.collect();
        if self.profiles.is_empty() {
            self.profiles = vec![Profile::default(); names.len()];
            self.names = names;
        } else if self.names != names {
            return Err(errors::broken(
                "columns_differ",
                "the files of one table have other columns",
            ));
        }
        Ok(())
    }

    fn record(&mut self, record: &StringRecord) -> Result<(), Error> {
        if record.len() != self.profiles.len() {
            let (line, fields) = (
                record.position().map_or(0, ::csv::Position::line),
                record.len(),
            );
            return Err(errors::broken(
                "row_length",
                format!(
                    "line {line} has {fields} fields, and the first line names {}",
                    self.profiles.len()
                ),
            ));
        }
        for (profile, value) in self.profiles.iter_mut().zip(record) {
            match value {
                "" => profile.null(),
                value => profile.text(value),
            }
        }
        self.rows += 1;
        Ok(())
    }
}

/// The records of a file, and behind them what is read behind its end.
struct Records<R> {
    reader: ::csv::Reader<R>,
    /// Where the next one begins.
    at: u64,
    begun: Arc<AtomicU64>,
}

impl<R: Read> Records<R> {
    /// How many bytes the next one has; `None` where there is none.
    fn read(&mut self, record: &mut StringRecord) -> Result<Option<u64>, Error> {
        if !self.reader.read_record(record).map_err(failed)? {
            return Ok(None);
        }
        let end = self.reader.position().byte();
        let bytes = end - self.at;
        if bytes > RECORD_BYTES_MAX {
            return Err(text::record_too_long());
        }
        self.begun.store(end, Ordering::Relaxed);
        self.at = end;
        Ok(Some(bytes))
    }
}

fn quote_not_closed(record: &StringRecord) -> Error {
    let line = record.position().map_or(0, ::csv::Position::line);
    errors::broken(
        "quote_not_closed",
        format!(
            "a quote in the row that begins in line {line} is never closed: the file was cut there, or a text that begins with a quote is not in quotes"
        ),
    )
}

/// What stands most often in the first line, outside of quotes.
fn separator(first: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0), (b'|', 0)];
    let mut quoted = false;
    for byte in first {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if quoted => {}
            _ => counts
                .iter_mut()
                .filter(|(separator, _)| separator == byte)
                .for_each(|(_, count)| *count += 1),
        }
    }
    // Of as many, the first.
    let mut most = counts[0];
    for count in counts {
        if count.1 > most.1 {
            most = count;
        }
    }
    most.0
}

fn failed(error: ::csv::Error) -> Error {
    let line = error.position().map_or(0, ::csv::Position::line);
    match error.into_kind() {
        ErrorKind::Io(error) => errors::unreadable(error),
        ErrorKind::Utf8 { .. } => text::not_utf8(line),
        other => errors::broken("file_broken", "the file cannot be read as CSV")
            .detail(format!("{other:?}")),
    }
}

impl Streamed for CsvFiles {
    fn batches(&self, columns: &[usize]) -> Result<Batches, Error> {
        let files = self.text.files.iter().zip(&self.separators);
        let files: Vec<(Slice, u8)> = files
            .map(|((_, slice), separator)| (slice.clone(), *separator))
            .collect();
        let (text, schema, columns) = (self.text.clone(), self.schema.clone(), columns.to_vec());
        // The reader keeps all fields of its rows, and then those that are asked for.
        let rows = text::batch_rows(self.longest, schema.fields().len());
        let read = move |(slice, separator): (Slice, u8)| -> Batches {
            let opened = match text.open(&slice) {
                Ok(opened) => opened,
                Err(error) => return Box::new(std::iter::once(Err(error))),
            };
            // Each record was found to have its bound when the types were.
            opened.begun().store(u64::MAX / 2, Ordering::Relaxed);
            let reader = Batched::new(schema.clone())
                .with_header(true)
                .with_delimiter(separator)
                .with_batch_size(rows)
                .with_projection(columns.clone())
                .build_buffered(BufReader::with_capacity(AHEAD_BYTES, opened));
            match reader {
                Ok(reader) => Box::new(reader.map(|batch| batch.map_err(unread))),
                Err(error) => Box::new(std::iter::once(Err(unread(error)))),
            }
        };
        Ok(Box::new(files.into_iter().flat_map(read)))
    }
}

fn unread(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => errors::unreadable(error),
        error => errors::of_file(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_what_separates() {
        for (line, expected) in [
            ("a,b,c\n;;;;;", b','),
            ("\"a,b,c\";d\n", b';'),
            ("a\tb", b'\t'),
            ("a|b|c,d", b'|'),
            ("one", b','),
            ("", b','),
        ] {
            assert_eq!(separator(line.as_bytes()), expected, "{line:?}");
        }
    }
}
