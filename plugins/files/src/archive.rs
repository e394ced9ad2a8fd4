//! A tar archive: several files that are uploaded, and replaced, as one. Its files lie in it as they are, so that they are read in place.

mod headers;
mod notes;

use crate::clock::Clock;
use crate::slice::Slice;
use headers::{Headers, Kind};
use souk_sdk::Error;
use std::collections::BTreeMap;

/// Files, folders and whatever else it lists.
const ENTRIES_MAX: usize = 10_000;

/// A file of an archive.
pub struct Member {
    /// Its folders and its name.
    pub path: String,
    pub slice: Slice,
}

/// The files of an archive by their paths. Of a path that it has twice the last counts: so `tar -r` replaces a file.
pub fn members(archive: &Slice, clock: &Clock) -> Result<Vec<Member>, Error> {
    let mut headers = Headers::new(archive, clock);
    let mut members: BTreeMap<String, Slice> = BTreeMap::new();
    let mut count = 0;
    while let Some(entry) = headers.next()? {
        count += 1;
        if count > ENTRIES_MAX {
            return Err(too_many_files());
        }
        if entry.kind == Kind::File {
            let slice = archive.part(entry.bytes).map_err(|_| truncated())?;
            members.insert(entry.path, slice);
        }
    }
    let members = members.into_iter();
    Ok(members
        .map(|(path, slice)| Member { path, slice })
        .collect())
}

fn too_many_files() -> Error {
    Error::configuration(
        "too_many_files",
        format!("the archive lists more than {ENTRIES_MAX} files and folders"),
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
        let error = members(&archive, &clock).err().unwrap();
        assert_eq!(error.class, ErrorClass::Timeout);
        assert_eq!(error.code, "open_timeout");
    }
}
