//! Which files there are, and which table each of them is.
//!
//! A file is a table, named by what stands before its extension. In an archive a folder whose name ends as a file's does
//! (`orders.parquet/`, as Spark writes them) is one table, made of the files in it; other folders say nothing.

use crate::archive::{self, Member};
use crate::settings::FileName;
use crate::slice::Slice;
use souk_sdk::Error;
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

pub fn open(directory: &Path, name: &FileName) -> Result<Opened, Error> {
    let read = Arc::new(AtomicU64::new(0));
    let file = File::open(directory.join(name.as_str())).map_err(not_found)?;
    let slice = Slice::whole(file, read.clone()).map_err(not_found)?;
    let name = name.as_str().to_owned();
    let members = match ends_with(&name, ".tar") {
        true => archive::members(&slice)?,
        false => vec![Member {
            path: vec![name.clone()],
            slice,
        }],
    };
    let tables = tables(members)?;
    if tables.is_empty() {
        return Err(Error::configuration(
            "unknown_format",
            "the file's name says no format that is known here: .parquet, .csv, .tsv, .jsonl, .ndjson, .json or .arrow, \
             .csv.gz, .tsv.gz or .jsonl.gz, or a .tar of such files",
        ));
    }
    Ok(Opened { tables, read })
}

/// The tables that files are, by name.
fn tables(members: Vec<Member>) -> Result<Vec<Files>, Error> {
    let mut tables: BTreeMap<String, Files> = BTreeMap::new();
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    for Member { path, slice } in members {
        let Some((place, name, format)) = table_of(&path) else {
            continue;
        };
        let first = places.entry(name.clone()).or_insert_with(|| place.clone());
        if *first != place {
            return Err(twice(&name, first, &place));
        }
        let table = tables.entry(name.clone()).or_insert_with(|| Files {
            name,
            format,
            parts: Vec::new(),
        });
        if table.parts.len() == PARTS_MAX {
            return Err(Error::configuration(
                "too_many_files",
                format!(
                    "the table \"{}\" is made of more than {PARTS_MAX} files",
                    table.name
                ),
            ));
        }
        table.parts.push((path.join("/"), slice));
    }
    if tables.len() > TABLES_MAX {
        return Err(Error::configuration(
            "too_many_files",
            format!("the archive holds more than {TABLES_MAX} tables"),
        ));
    }
    Ok(tables.into_values().collect())
}

/// What makes two files parts of one table, the table's name, and its format. `None` of what is no table: `README`, `._orders.csv`.
fn table_of(path: &[String]) -> Option<(String, String, Format)> {
    let (name, folders) = path.split_last()?;
    // What Spark and systems leave beside files.
    if name.starts_with(['.', '_']) {
        return None;
    }
    let whole = |at: usize| path[..=at].join("/");
    for (at, folder) in folders.iter().enumerate() {
        if let Some((stem, format)) = split(folder) {
            let format = split(name).map_or(format, |(_, of_part)| of_part);
            return Some((whole(at), stem.to_owned(), format));
        }
    }
    let (stem, format) = split(name)?;
    Some((whole(path.len() - 1), stem.to_owned(), format))
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
        let parts: Vec<String> = path.split('/').map(str::to_owned).collect();
        table_of(&parts)
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
            ".csv",
            "orders",
            "a.tar.gz",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
