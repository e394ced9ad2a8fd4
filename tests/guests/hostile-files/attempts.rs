//! What a connector may try with a directory, by the standard library alone: the sandbox's tests make the same
//! attempts where nothing refuses them, which shows that it is the grant that refuses.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

/// What was tried, and what came of it.
pub type Attempt = (String, io::Result<String>);

/// Every way of changing something in a directory that has a file `rows.txt`. In this order each of them
/// succeeds where writing is allowed.
pub fn writes(directory: &Path) -> Vec<Attempt> {
    let at = |name: &str| directory.join(name);
    let write = |options: &mut OpenOptions, name: &str| {
        options
            .open(at(name))
            .and_then(|mut file| file.write_all(b"changed"))
    };
    let tried = [
        (
            "create",
            write(OpenOptions::new().write(true).create_new(true), "new.txt"),
        ),
        (
            "overwrite",
            write(OpenOptions::new().write(true), "rows.txt"),
        ),
        ("append", write(OpenOptions::new().append(true), "rows.txt")),
        (
            "read and write",
            write(OpenOptions::new().read(true).write(true), "rows.txt"),
        ),
        ("truncate", File::create(at("rows.txt")).map(drop)),
        (
            "set the time",
            File::open(at("rows.txt")).and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH)),
        ),
        ("link", fs::hard_link(at("rows.txt"), at("link.txt"))),
        ("make a directory", fs::create_dir(at("folder"))),
        ("rename", fs::rename(at("rows.txt"), at("folder/rows.txt"))),
        ("delete", fs::remove_file(at("folder/rows.txt"))),
        ("delete a directory", fs::remove_dir(at("folder"))),
        // A file that is there whatever became of the others.
        ("delete what is kept", fs::remove_file(at("kept.txt"))),
    ];
    tried
        .map(|(what, result)| (what.to_owned(), result.map(|()| "done".to_owned())))
        .into()
}

/// Reads each path, relative to the directory or not, as a file or, if it is one, as a directory.
pub fn reads<'a>(directory: &Path, paths: impl Iterator<Item = &'a str>) -> Vec<Attempt> {
    paths
        .map(|path| (path.to_owned(), read(&directory.join(path))))
        .collect()
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).or_else(|error| list(path).or(Err(error)))
}

/// The names in a directory, sorted.
fn list(directory: &Path) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names.join(" "))
}

/// An attempt as people read it: what came of it, or the kind of its error.
pub fn told((_, result): &Attempt) -> String {
    match result {
        Ok(text) => text.clone(),
        Err(error) => format!("{:?}", error.kind()),
    }
}
