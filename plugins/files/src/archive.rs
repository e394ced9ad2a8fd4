//! A tar archive: several files that are uploaded, and replaced, as one. Its files lie in it as they are, so that they are read in place.
//!
//! It is read to its end before anything of it is shown: one that was cut, or joined to another one, would lack rows without a word.

mod headers;
mod notes;

use crate::clock::Clock;
use crate::errors;
use crate::slice::Slice;
use headers::{Entry, Headers, Kind};
use souk_sdk::Error;
use std::collections::BTreeMap;

/// Files, folders and whatever else it lists.
const ENTRIES_MAX: usize = 10_000;
/// What is looked at at a time of the zeros behind the last file.
const ZEROS_BYTES: u64 = 256 << 10;

/// A file of an archive, or what stands in its place.
pub struct Member {
    /// Its folders and its name.
    pub path: String,
    pub held: Held,
}

#[derive(Clone)]
pub enum Held {
    File(Slice),
    /// A second name of a file, whose bytes stand elsewhere.
    Link,
    /// The name of another file, or of a folder, which may be in no archive.
    Symlink,
    /// A file without its zeros.
    Sparse,
    /// A device, or a file's end.
    Other,
}

/// The files of an archive by their paths. Of a path that it has twice the last counts: so `tar -r` replaces a file.
pub fn members(archive: &Slice, clock: &Clock) -> Result<Vec<Member>, Error> {
    let mut headers = Headers::new(archive, clock);
    let mut members: BTreeMap<String, Held> = BTreeMap::new();
    let mut count = 0;
    while archive.len() > 0 {
        let Some(entry) = headers.next()? else {
            break;
        };
        count += 1;
        if count > ENTRIES_MAX {
            return Err(too_many_files());
        }
        // A file that was written twice is a link to itself the second time.
        if entry.kind == Kind::Link && entry.link == entry.path && members.contains_key(&entry.path)
        {
            continue;
        }
        if let Some(held) = held(&entry, archive)? {
            members.insert(entry.path, held);
        }
    }
    only_zeros(archive, headers.at(), clock)?;
    if count == 0 {
        return Err(empty());
    }
    let members = members.into_iter();
    Ok(members.map(|(path, held)| Member { path, held }).collect())
}

/// `None` of what has no rows whatever it is called.
fn held(entry: &Entry, archive: &Slice) -> Result<Option<Held>, Error> {
    Ok(Some(match entry.kind {
        Kind::File => {
            let slice = archive.part(entry.bytes.clone());
            Held::File(slice.map_err(|_| truncated())?)
        }
        Kind::Folder => return Ok(None),
        Kind::Link => Held::Link,
        Kind::Symlink => Held::Symlink,
        Kind::Sparse => Held::Sparse,
        Kind::Other => Held::Other,
    }))
}

impl Held {
    /// The file of a table that is called so.
    pub fn file(self, path: &str) -> Result<Slice, Error> {
        let message = match self {
            Held::File(slice) => return Ok(slice),
            Held::Link | Held::Symlink => {
                "the archive has a link in place of a table's file: write it with tar -h --hard-dereference, or of copies of the files"
            }
            Held::Sparse => {
                "the archive has a table's file without its zeros: write it with tar without -S, or bsdtar with --no-read-sparse"
            }
            Held::Other => {
                "the archive has what is no file, or only the end of one, in place of a table's file: write it of files alone"
            }
        };
        Err(Error::source_failed("archive_broken", message).detail(path))
    }
}

/// Archives that were joined go on behind the first one's end, which most programs do not notice.
fn only_zeros(archive: &Slice, mut at: u64, clock: &Clock) -> Result<(), Error> {
    while at < archive.len() {
        clock.check().map_err(late)?;
        let end = archive.len().min(at + ZEROS_BYTES);
        let bytes = archive.bytes(at..end).map_err(errors::unreadable)?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Err(Error::source_failed(
                "archive_broken",
                "the archive goes on behind its end: join archives with tar -A, or write one of all files",
            ));
        }
        at = end;
    }
    Ok(())
}

fn too_many_files() -> Error {
    Error::configuration(
        "too_many_files",
        format!("the archive lists more than {ENTRIES_MAX} files and folders"),
    )
}

fn empty() -> Error {
    Error::configuration(
        "archive_empty",
        "the archive is empty: write files into it, and upload it anew",
    )
}

fn truncated() -> Error {
    Error::source_failed(
        "archive_broken",
        "the archive ends in the middle: upload it anew, whole",
    )
}

fn broken(error: std::io::Error) -> Error {
    damaged(&error.to_string())
}

fn damaged(detail: &str) -> Error {
    Error::source_failed(
        "archive_broken",
        "the file is no tar archive, or a damaged one: upload it anew, uncompressed",
    )
    .detail(detail)
}

/// Whatever the file is: the connector is not to blame.
fn late(_: Error) -> Error {
    Error::timeout(
        "open_timeout",
        "the file takes too long to open: write fewer files into the archive",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use souk_sdk::ErrorClass;
    use std::io::Write;

    fn slice(bytes: &[u8]) -> Slice {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Slice::whole(file, Default::default()).unwrap()
    }

    #[test]
    fn an_archive_that_takes_too_long_is_the_sources() {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        archive
            .append_data(&mut header, "a.csv", &b"n"[..])
            .unwrap();
        let archive = slice(&archive.into_inner().unwrap());
        let clock = Clock::default();
        assert_eq!(members(&archive, &clock).unwrap().len(), 1);
        clock.allow(0);
        for late in [
            members(&archive, &clock).map(drop),
            only_zeros(&archive, 0, &clock),
        ] {
            let error = late.unwrap_err();
            assert_eq!(error.class, ErrorClass::Timeout);
            assert_eq!(error.code, "open_timeout");
        }
    }
}
