//! Texts, packed or not, in UTF-8: how they are opened, and the bounds of what is read of them at once.

use crate::clock::Clock;
use crate::errors;
use crate::slice::Slice;
use flate2::read::MultiGzDecoder;
use souk_sdk::Error;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One record: a line, or what quotes make of several.
pub const RECORD_BYTES_MAX: u64 = 8 << 20;
/// What is unpacked ahead.
const AHEAD_BYTES: usize = 128 * 1024;
/// Of rows that are computed at a time, as they stand in the file.
const BATCH_BYTES: u64 = 8 << 20;
const BATCH_ROWS: u64 = 8_192;
/// What the widest number takes.
const VALUE_BYTES: u64 = 16;

/// A text file, or several that are one table.
#[derive(Clone, Debug)]
pub struct Text {
    pub files: Vec<(String, Slice)>,
    pub packed: bool,
    pub clock: Clock,
}

impl Text {
    pub fn open(&self, slice: &Slice) -> Result<Opened, Error> {
        let bytes: Box<dyn BufRead + Send> = match self.packed {
            true => Box::new(BufReader::with_capacity(
                AHEAD_BYTES,
                MultiGzDecoder::new(Timed {
                    bytes: slice.reader(),
                    clock: self.clock.clone(),
                }),
            )),
            false => Box::new(slice.reader()),
        };
        let begun = Arc::new(AtomicU64::new(0));
        let mut opened = Opened {
            bytes,
            clock: self.clock.clone(),
            begun,
            read: 0,
        };
        opened.skip_mark()?;
        Ok(opened)
    }
}

/// What is packed: of little there may be much that is nothing, which is unpacked in one go.
struct Timed<R> {
    bytes: R,
    clock: Clock,
}

impl<R: Read> Read for Timed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        in_time(&self.clock)?;
        self.bytes.read(into)
    }
}

fn in_time(clock: &Clock) -> io::Result<()> {
    let checked = clock.check();
    checked.map_err(|error| io::Error::other(errors::boxed(error)))
}

/// How many rows are read at a time, if the longest is so long; a value that is not there takes its place too.
pub fn batch_rows(longest: u64, columns: usize) -> usize {
    let row = longest.max(columns as u64 * VALUE_BYTES).max(1);
    (BATCH_BYTES / row).clamp(1, BATCH_ROWS) as usize
}

/// A text from front to back. Whoever reads it says where a record has begun, and it refuses one that does not end.
pub struct Opened {
    bytes: Box<dyn BufRead + Send>,
    clock: Clock,
    begun: Arc<AtomicU64>,
    read: u64,
}

impl Opened {
    /// Where the record that is being read has begun, to be kept up to date.
    pub fn begun(&self) -> Arc<AtomicU64> {
        self.begun.clone()
    }

    /// Leaves out the mark that says UTF-8; refuses those of other encodings.
    fn skip_mark(&mut self) -> Result<(), Error> {
        let first = self.bytes.fill_buf().map_err(errors::unreadable)?;
        match first {
            [0xef, 0xbb, 0xbf, ..] => self.bytes.consume(3),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Err(not_utf8(1)),
            _ => {}
        }
        Ok(())
    }

    /// What is there without reading on: the first lines.
    pub fn peek(&mut self) -> Result<&[u8], Error> {
        self.bytes.fill_buf().map_err(errors::unreadable)
    }
}

impl Read for Opened {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        in_time(&self.clock)?;
        let beyond = self.begun.load(Ordering::Relaxed) + RECORD_BYTES_MAX + into.len() as u64;
        if self.read > beyond {
            return Err(io::Error::other(errors::boxed(record_too_long())));
        }
        let count = self.bytes.read(into)?;
        self.read += count as u64;
        Ok(count)
    }
}

pub fn record_too_long() -> Error {
    errors::broken(
        "record_too_long",
        "a line of the file has more than 8 MiB, or a quote is never closed",
    )
}

pub fn not_utf8(line: u64) -> Error {
    errors::broken(
        "not_utf8",
        format!("line {line} of the file is not UTF-8: save it in that encoding"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_small_whatever_their_lines_are() {
        assert_eq!(batch_rows(12, 3), 8_192);
        assert_eq!(batch_rows(8 << 20, 3), 1);
        assert_eq!(batch_rows(12, 10_000), 52);
        assert_eq!(batch_rows(0, 0), 8_192);
    }
}
