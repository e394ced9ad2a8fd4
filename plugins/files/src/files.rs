//! Which files there are, and which table each of them is.
//!
//! A file is a table, named by what stands before its extension. In an archive a folder whose name ends as a file's does
//! (`orders.parquet/`, as Spark writes them) is one table, made of the files in it; other folders say nothing.

use crate::archive::{self, Held, Member};
use crate::clock::Clock;
use crate::slice::Slice;
use souk_sdk::{Error, FileName};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// More than a seller names, few enough to list.
const TABLES_MAX: usize = 1_000;
/// Files of one table.
const PARTS_MAX: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Parquet,
    Arrow,
    Csv { tabs: bool, packed: bool },
    Lines { packed: bool },
}

const FORMATS: &[(&str, Format)] = &[
    (".parquet", Format::Parquet),
    (".arrow", Format::Arrow),
    (".feather", Format::Arrow),
    (
        ".csv",
        Format::Csv {
            tabs: false,
            packed: false,
        },
    ),
    (
        ".csv.gz",
        Format::Csv {
            tabs: false,
            packed: true,
        },
    ),
    (
        ".tsv",
        Format::Csv {
            tabs: true,
            packed: false,
        },
    ),
    (
        ".tsv.gz",
        Format::Csv {
            tabs: true,
            packed: true,
        },
    ),
    (".jsonl", Format::Lines { packed: false }),
    (".jsonl.gz", Format::Lines { packed: true }),
    (".ndjson", Format::Lines { packed: false }),
    (".ndjson.gz", Format::Lines { packed: true }),
    (".json", Format::Lines { packed: false }),
];

/// The files of one table.
#[derive(Debug)]
pub struct Files {
    pub name: String,
    pub format: Format,
    /// What it is called where it lies, and where that is.
    pub parts: Vec<(String, Slice)>,
}

/// All that the granted file holds, and the counter of what is read of it.
pub struct Opened {
    pub tables: Vec<Files>,
    pub read: Arc<AtomicU64>,
}

pub fn open(directory: &Path, name: &FileName, clock: &Clock) -> Result<Opened, Error> {
    let read = Arc::new(AtomicU64::new(0));
    let file = File::open(directory.join(name.as_str())).map_err(not_found)?;
    let slice = Slice::whole(file, read.clone()).map_err(not_found)?;
    let name = name.as_str();
    let is_archive = ends_with(name, ".tar");
    let members = match is_archive {
        true => archive::members(&slice, clock)?,
        false => vec![Member {
            path: name.to_owned(),
            held: Held::File(slice),
        }],
    };
    let tables = tables(members)?;
    match (tables.is_empty(), is_archive) {
        (false, _) => Ok(Opened { tables, read }),
        (true, true) => Err(unknown_format(
            "no name of the archive's files says a format",
        )),
        (true, false) => Err(unknown_format("the file's name says no format")),
    }
}

/// The tables that files are, by name.
fn tables(members: Vec<Member>) -> Result<Vec<Files>, Error> {
    let mut tables: BTreeMap<String, Files> = BTreeMap::new();
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    for Member { path, held } in members {
        let parts: Vec<&str> = path.split('/').collect();
        let Some((place, name, format)) = table_of(&parts)? else {
            if matches!(held, Held::Symlink) && is_in_a_table(&parts) {
                held.file(&path)?;
            }
            continue;
        };
        let slice = held.file(&path)?;
        let first = places.entry(name.clone()).or_insert_with(|| place.clone());
        if *first != place {
            return Err(twice(&name, first, &place));
        }
        let table = tables.entry(name.clone()).or_insert_with(|| Files {
            name,
            format,
            parts: Vec::new(),
        });
        if table.format != format {
            return Err(formats_differ(&path));
        }
        if table.parts.len() == PARTS_MAX {
            return Err(Error::configuration(
                "too_many_files",
                format!(
                    "the table \"{}\" is made of more than {PARTS_MAX} files",
                    table.name
                ),
            ));
        }
        table.parts.push((path, slice));
    }
    if tables.len() > TABLES_MAX {
        return Err(Error::configuration(
            "too_many_files",
            format!("the archive holds more than {TABLES_MAX} tables"),
        ));
    }
    Ok(tables.into_values().collect())
}

/// What makes two files parts of one table, the table's name, and the file's format.
type Place = (String, String, Format);

/// `None` of what is no table: `README`, `._orders.csv`, `_temporary/orders.csv`.
fn table_of(path: &[&str]) -> Result<Option<Place>, Error> {
    let Some((name, folders)) = path.split_last() else {
        return Ok(None);
    };
    if is_left_beside(path) {
        return Ok(None);
    }
    let Some((own, format)) = split(name) else {
        return Ok(None);
    };
    let tables = folders.iter().enumerate();
    let mut tables = tables.filter_map(|(at, folder)| split(folder).map(|(stem, _)| (at, stem)));
    let (at, stem) = tables.next().unwrap_or((folders.len(), own));
    if folders.iter().skip(at).any(|folder| folder.contains('=')) {
        return Err(folder_is_a_column(path));
    }
    Ok(Some((path[..=at].join("/"), stem.to_owned(), format)))
}

/// Whether a link that is called so may lead to a folder of a table's files.
fn is_in_a_table(path: &[&str]) -> bool {
    !is_left_beside(path) && path.iter().any(|part| split(part).is_some())
}

/// What Spark, notebooks and systems leave beside files.
fn is_left_beside(path: &[&str]) -> bool {
    path.iter().any(|part| part.starts_with(['.', '_']))
}

/// A name before its extension, and the format that the extension says.
fn split(name: &str) -> Option<(&str, Format)> {
    FORMATS.iter().find_map(|(extension, format)| {
        let stem = ends_with(name, extension).then(|| &name[..name.len() - extension.len()])?;
        (!stem.is_empty()).then_some((stem, *format))
    })
}

fn ends_with(name: &str, extension: &str) -> bool {
    let at = name.len().checked_sub(extension.len());
    at.and_then(|at| name.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case(extension))
}

/// `what`: whose names were looked at, and that none is one of a format.
fn unknown_format(what: &str) -> Error {
    Error::configuration(
        "unknown_format",
        format!(
            "{what} that is known here: .parquet, .csv, .tsv, .jsonl, .ndjson, .json or .arrow, .csv.gz, .tsv.gz or .jsonl.gz, or a .tar of \
             such files"
        ),
    )
}

fn formats_differ(path: &str) -> Error {
    Error::configuration(
        "formats_differ",
        "the files of one table are of several formats: leave one format in its folder",
    )
    .detail(path)
}

/// Hive's way: what the folders say is in none of the files.
fn folder_is_a_column(path: &[&str]) -> Error {
    Error::configuration(
        "folder_is_a_column",
        "a table's folder is divided by the values of a column, which its files do not have: write them with the column, and without the folders",
    )
    .detail(path.join("/"))
}

fn twice(name: &str, first: &str, second: &str) -> Error {
    Error::configuration(
        "table_twice",
        format!("two files would both be the table \"{name}\": rename one of them"),
    )
    .detail(format!("{first} and {second}"))
}

fn not_found(error: std::io::Error) -> Error {
    Error::configuration(
        "database_not_found",
        "there is no such file in the company's directory",
    )
    .detail(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<(String, String, Format)> {
        let parts: Vec<&str> = path.split('/').collect();
        table_of(&parts).unwrap()
    }

    #[test]
    fn a_table_is_named_by_what_stands_before_the_extension() {
        let packed = Format::Csv {
            tabs: false,
            packed: true,
        };
        for (path, place, name, format) in [
            (
                "orders.parquet",
                "orders.parquet",
                "orders",
                Format::Parquet,
            ),
            (
                "a/Orders 2024.v1.CSV.gz",
                "a/Orders 2024.v1.CSV.gz",
                "Orders 2024.v1",
                packed,
            ),
            (
                "x/orders.parquet/part-0.snappy.parquet",
                "x/orders.parquet",
                "orders",
                Format::Parquet,
            ),
            ("o.arrow", "o.arrow", "o", Format::Arrow),
        ] {
            assert_eq!(
                of(path),
                Some((place.into(), name.into(), format)),
                "{path}"
            );
        }
        for path in [
            "README.md",
            "._orders.csv",
            "orders.parquet/_SUCCESS",
            "orders.parquet/_temporary/0/part-0.parquet",
            ".ipynb_checkpoints/orders.csv",
            "orders.parquet/README.md",
            ".csv",
            "orders",
            "a.tar.gz",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
