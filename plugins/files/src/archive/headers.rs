//! An archive's headers, from front to back: each file has one before it, and before that maybe others with what does not fit into it, as its
//! name. What lies between headers is not read.
//!
//! Start reading at [`Headers::next`].

use super::notes::Notes;
use super::{broken, damaged, late, truncated};
use crate::clock::Clock;
use crate::errors;
use crate::slice::Slice;
use bytes::Bytes;
use souk_sdk::Error;
use std::ops::Range;
use tar::{EntryType, GnuHeader, Header};

/// Of what an archive is made.
pub const BLOCK_BYTES: u64 = 512;
/// A header, a name before it, and the header of that are read at once; more would be read in vain where files are large.
const AHEAD_BYTES: u64 = 4 << 10;
/// A long name, and what else an archive says of a file.
const NOTE_BYTES_MAX: u64 = 64 << 10;
/// All of these together: names are kept, and reading them takes time.
const NOTES_BYTES_MAX: u64 = 16 << 20;
/// Each file may have a long name, a long link and notes before it.
const HEADERS_MAX: usize = 4 * super::ENTRIES_MAX;
/// Where a block of a sparse file's list says that another one follows.
const EXTENDED_AT: usize = 504;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    /// A folder, or what else has no rows whatever it is called.
    Folder,
    /// A second name of a file.
    Link,
    /// Another file's name, or that of a folder.
    Symlink,
    /// A file without its zeros, and where they would be.
    Sparse,
    /// A device, or a file's end in another archive.
    Other,
}

pub struct Entry {
    /// Its folders and its name.
    pub path: String,
    pub kind: Kind,
    /// Where a link leads.
    pub link: String,
    /// Where in the archive it is.
    pub bytes: Range<u64>,
}

pub struct Headers<'a> {
    archive: &'a Slice,
    clock: &'a Clock,
    /// Where the next header is.
    at: u64,
    /// What was read last, and where that began.
    ahead: (u64, Bytes),
    count: usize,
    notes_bytes: u64,
}

impl<'a> Headers<'a> {
    pub fn new(archive: &'a Slice, clock: &'a Clock) -> Headers<'a> {
        Headers {
            archive,
            clock,
            at: 0,
            ahead: (0, Bytes::new()),
            count: 0,
            notes_bytes: 0,
        }
    }

    /// The next entry; `None` at the zeros that end an archive.
    pub fn next(&mut self) -> Result<Option<Entry>, Error> {
        let mut notes = Notes::default();
        while let Some(header) = self.header()? {
            match header.entry_type().as_byte() {
                b'L' => notes.path_is(self.note(&header)?),
                b'K' => notes.link_is(self.note(&header)?),
                b'x' | b'X' => notes.read(&self.note(&header)?)?,
                // Of all files: nothing that is asked here.
                b'g' => drop(self.note(&header)?),
                _ => return self.entry(&header, notes).map(Some),
            }
        }
        match notes.any {
            true => Err(truncated()),
            false => Ok(None),
        }
    }

    /// Where the archive goes on behind what was read of it.
    pub fn at(&self) -> u64 {
        self.at
    }

    fn header(&mut self) -> Result<Option<Header>, Error> {
        self.counted()?;
        let block = self.block()?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let header = Header::from_byte_slice(&block).clone();
        let mut again = header.clone();
        again.set_cksum();
        match header.cksum().map_err(broken)? == again.cksum().map_err(broken)? {
            true => Ok(Some(header)),
            false => Err(damaged("a header's checksum is another one")),
        }
    }

    fn entry(&mut self, header: &Header, notes: Notes) -> Result<Entry, Error> {
        let kind = header.entry_type();
        let mut extended = header.as_gnu().is_some_and(GnuHeader::is_extended);
        while extended && kind.is_gnu_sparse() {
            self.counted()?;
            extended = self.block()?[EXTENDED_AT] == 1;
        }
        let len = match (kind.as_byte(), notes.size) {
            // Whatever some write there: nothing follows on links, devices, folders and labels.
            (b'1'..=b'6' | b'V', _) => 0,
            (_, Some(size)) => size,
            (_, None) => header.entry_size().map_err(broken)?,
        };
        let bytes = self.passed(len)?;
        let link = header.link_name_bytes().unwrap_or_default().into_owned();
        let link = notes.link.unwrap_or(link);
        let path = notes
            .path
            .unwrap_or_else(|| header.path_bytes().into_owned());
        let path = text(path)?;
        Ok(Entry {
            kind: match kind_of(kind) {
                Kind::File if notes.is_sparse => Kind::Sparse,
                // As the oldest archives write folders.
                Kind::File if path.ends_with('/') => Kind::Folder,
                kind => kind,
            },
            path: plain(&path),
            link: plain(&String::from_utf8_lossy(&link)),
            bytes,
        })
    }

    /// What such a header is before.
    fn note(&mut self, header: &Header) -> Result<Vec<u8>, Error> {
        let len = header.entry_size().map_err(broken)?;
        if len > NOTE_BYTES_MAX {
            return Err(too_much_said());
        }
        self.notes_bytes += len;
        if self.notes_bytes > NOTES_BYTES_MAX {
            return Err(Error::configuration(
                "too_many_files",
                "the names of the archive's files, and what else it says of them, take more than 16 MiB: write fewer files into it, or shorter names",
            ));
        }
        let mut note = Vec::new();
        for _ in 0..len.div_ceil(BLOCK_BYTES) {
            note.extend_from_slice(&self.block()?);
        }
        note.truncate(usize::try_from(len).unwrap_or(note.len()));
        Ok(note)
    }

    fn counted(&mut self) -> Result<(), Error> {
        self.count += 1;
        match self.count > HEADERS_MAX {
            true => Err(too_much_said()),
            false => Ok(()),
        }
    }

    /// Passes over so many bytes, and what fills the last block of them up.
    fn passed(&mut self, len: u64) -> Result<Range<u64>, Error> {
        let start = self.at;
        let end = start.checked_add(len).ok_or_else(truncated)?;
        if end > self.archive.len() {
            return Err(truncated());
        }
        self.at = end.next_multiple_of(BLOCK_BYTES);
        Ok(start..end)
    }

    fn block(&mut self) -> Result<Bytes, Error> {
        let end = self.at + BLOCK_BYTES;
        if end > self.archive.len() {
            return Err(match self.at {
                0 => damaged("it is shorter than a header"),
                _ => truncated(),
            });
        }
        let (start, bytes) = &self.ahead;
        if self.at < *start || end > start + bytes.len() as u64 {
            self.clock.check().map_err(late)?;
            let until = self.archive.len().min(self.at + AHEAD_BYTES);
            let bytes = self.archive.bytes(self.at..until);
            self.ahead = (self.at, bytes.map_err(errors::unreadable)?);
        }
        let (start, bytes) = &self.ahead;
        let from = (self.at - start) as usize;
        self.at = end;
        Ok(bytes.slice(from..from + BLOCK_BYTES as usize))
    }
}

fn kind_of(kind: EntryType) -> Kind {
    match kind.as_byte() {
        b'0' | b'7' => Kind::File,
        // A label of the whole archive, and a list of a folder's files.
        b'5' | b'V' | b'D' => Kind::Folder,
        b'1' => Kind::Link,
        b'2' => Kind::Symlink,
        b'S' => Kind::Sparse,
        _ => Kind::Other,
    }
}

/// Without folders that say nothing: nothing is written anywhere, and files are told apart by their last names.
fn plain(path: &str) -> String {
    let parts = path.split('/');
    let parts = parts.filter(|part| !["", ".", ".."].contains(part));
    parts.collect::<Vec<_>>().join("/")
}

/// Names that are no text would become one where they differ.
fn text(name: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(name).map_err(|error| {
        Error::source_failed(
            "archive_broken",
            "the name of one of the archive's files is not in UTF-8: rename the file, and write the archive anew",
        )
        .detail(String::from_utf8_lossy(error.as_bytes()))
    })
}

fn too_much_said() -> Error {
    Error::source_failed(
        "archive_broken",
        "what the archive says of one of its files is too long: upload it anew",
    )
}
