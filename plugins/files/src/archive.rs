//! A tar archive: several files that are uploaded, and replaced, as one. Its files lie in it as they are, so that they are read in place.

use crate::slice::Slice;
use souk_sdk::Error;
use std::collections::BTreeMap;
use std::path::Component;

/// Files, folders and whatever else it lists.
const ENTRIES_MAX: usize = 10_000;
/// A long name, and what else an archive says of a file.
const NAME_BYTES_MAX: u64 = 64 << 10;
/// Each file may have a long name, a long link and notes before it.
const NAMES_MAX: usize = 4 * ENTRIES_MAX;

/// A file of an archive.
pub struct Member {
    /// Its folders and its name.
    pub path: Vec<String>,
    pub slice: Slice,
}

/// The files of an archive by their paths. Of a path that it has twice the last counts: so `tar -r` replaces a file.
pub fn members(archive: &Slice) -> Result<Vec<Member>, Error> {
    check_names(archive)?;
    let mut reader = tar::Archive::new(archive.reader());
    let entries = reader.entries_with_seek().map_err(broken)?;
    let mut members: BTreeMap<Vec<String>, Slice> = BTreeMap::new();
    for (count, entry) in entries.enumerate() {
        if count == ENTRIES_MAX {
            return Err(Error::configuration(
                "too_many_files",
                format!("the archive lists more than {ENTRIES_MAX} files and folders"),
            ));
        }
        let entry = entry.map_err(broken)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let start = entry.raw_file_position();
        let end = start.checked_add(entry.size()).ok_or_else(truncated)?;
        let path = path_of(&entry)?;
        let slice = archive.part(start..end).map_err(|_| truncated())?;
        members.insert(path, slice);
    }
    let members = members.into_iter();
    Ok(members
        .map(|(path, slice)| Member { path, slice })
        .collect())
}

/// Long names and what else is said of a file stand before it, as files of their own, which the reader takes into memory.
fn check_names(archive: &Slice) -> Result<(), Error> {
    let mut reader = tar::Archive::new(archive.reader());
    let entries = reader.entries_with_seek().map_err(broken)?;
    for (count, entry) in entries.raw(true).enumerate() {
        let entry = entry.map_err(broken)?;
        let kind = entry.header().entry_type();
        let is_name = kind.is_gnu_longname() || kind.is_gnu_longlink();
        let is_note = kind.is_pax_local_extensions() || kind.is_pax_global_extensions();
        if (is_name || is_note) && entry.size() > NAME_BYTES_MAX || count > NAMES_MAX {
            return Err(Error::source_failed(
                "archive_broken",
                "what the archive says of one of its files is too long: upload it anew",
            ));
        }
    }
    Ok(())
}

fn path_of(entry: &tar::Entry<'_, impl std::io::Read>) -> Result<Vec<String>, Error> {
    let path = entry.path().map_err(broken)?;
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            // Nothing is written anywhere, and its files are told apart by their last names.
            _ => continue,
        }
    }
    Ok(parts)
}

fn truncated() -> Error {
    Error::source_failed(
        "archive_broken",
        "the archive ends in the middle of a file: upload it anew",
    )
}

fn broken(error: std::io::Error) -> Error {
    Error::source_failed(
        "archive_broken",
        "the file is no tar archive, or a damaged one: upload it anew, uncompressed",
    )
    .detail(error.to_string())
}
