//! The tables of a session: each is opened when it is first asked for, and then known.

mod arrow;
mod blocks;
mod bounds;
mod csv;
mod delta;
mod footers;
mod json;
mod kept;
mod kinds;
mod lines;
mod moment;
mod numbers;
mod pages;
mod parquet;
mod places;
mod profile;
mod row_groups;
mod streamed;
mod text;

pub use kept::{FromTheFile, Kept};
pub use parquet::{FILTERED_BYTES_MAX, FiltersWhileRead, Footer};
pub use row_groups::Reads;

use crate::clock::Clock;
use crate::errors;
use crate::files::{Files, Format};
use crate::watch::{ROWS, Watch};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::error::Result as Planned;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::object_store::ObjectStore;
use datafusion::object_store::memory::InMemory;
use souk_sdk::{Error, ErrorClass};
use std::sync::{Arc, OnceLock};
use url::Url;

/// Columns of one table: a file of more is a mistake, or meant to be one.
pub const COLUMNS_MAX: usize = 10_000;

/// DataFusion asks for a store of objects before it reads Parquet, and then reads through the connector: there is nothing in this one.
#[derive(Debug, Default)]
pub struct NoStores(Arc<InMemory>);

impl ObjectStoreRegistry for NoStores {
    fn register_store(
        &self,
        _url: &Url,
        _store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, _url: &Url) -> Planned<Arc<dyn ObjectStore>> {
        Ok(self.0.clone())
    }
}

/// Rows that are computed at a time are so much, on an average.
const BATCH_BYTES: u64 = 16 << 20;

/// How many rows that is, if a row has so many bytes.
fn batch_rows(row_bytes: u64) -> usize {
    let rows = BATCH_BYTES / row_bytes.max(1);
    usize::try_from(rows).map_or(ROWS, |rows| rows.clamp(1, ROWS))
}

#[derive(Debug)]
pub struct Table {
    pub files: Files,
    opened: OnceLock<Result<Known, Error>>,
}

/// What is known of a table that was opened.
#[derive(Clone, Debug)]
pub struct Known {
    pub provider: Arc<dyn TableProvider>,
    /// `None` where counting would be reading all of it.
    pub rows: Option<u64>,
    /// How many rows are computed at a time, so that they are not too much.
    pub batch_rows: usize,
}

impl Table {
    pub fn new(files: Files) -> Table {
        Table {
            files,
            opened: OnceLock::new(),
        }
    }

    /// What it holds. What is wrong with the file is found once; what ran out of time, or could not be read just now, is tried again.
    pub fn opened(&self, watch: &Watch) -> Result<Known, Error> {
        if let Some(known) = self.opened.get() {
            return known.clone();
        }
        let found = watch.memory.table(|| self.open(&watch.clock));
        let is_passing =
            |error: &Error| matches!(error.class, ErrorClass::Timeout | ErrorClass::Unavailable);
        if found.as_ref().is_err_and(is_passing) {
            return found;
        }
        self.opened.get_or_init(|| found).clone()
    }

    fn open(&self, clock: &Clock) -> Result<Known, Error> {
        let parts = &self.files.parts;
        let known = match self.files.format {
            Format::Parquet => parquet::open(parts, clock),
            Format::Arrow => arrow::open(parts, clock),
            Format::Csv { tabs, packed } => csv::open(parts, clock, tabs, packed),
            Format::Lines { packed } => json::open(parts, clock, packed),
        }?;
        let checked = check_columns(&known.provider.schema());
        match parts.first() {
            // All of them have the same columns.
            Some((name, _)) => checked.map_err(|error| named(error, name))?,
            None => checked?,
        }
        Ok(known)
    }
}

fn check_columns(schema: &Schema) -> Result<(), Error> {
    if schema.fields().is_empty() {
        return Err(errors::broken("no_columns", "the file has no columns"));
    }
    if schema.fields().len() > COLUMNS_MAX {
        return Err(errors::broken(
            "too_many_columns",
            format!("the file has more than {COLUMNS_MAX} columns"),
        ));
    }
    let mut names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(errors::broken(
            "column_twice",
            format!("two columns of the file have the name \"{}\"", pair[0]),
        )),
        None => Ok(()),
    }
}

/// An error that says which file it is about: a table may be made of several, and an archive has more. Only the owner is told what they are called.
/// How long it takes is not about a file.
fn named(error: Error, name: &str) -> Error {
    if error.class == ErrorClass::Timeout {
        return error;
    }
    let detail = match &error.detail {
        Some(detail) => format!("{name}: {detail}"),
        None => name.to_owned(),
    };
    error.detail(detail)
}

/// All files of a table hold the same columns, in the same order. A column in which one of them may have NULLs may have some in the table.
fn same_schema(first: SchemaRef, other: &Schema, name: &str) -> Result<SchemaRef, Error> {
    let pairs = || first.fields().iter().zip(other.fields());
    let alike = first.fields().len() == other.fields().len()
        && pairs().all(|(left, right)| {
            left.name() == right.name() && left.data_type() == right.data_type()
        });
    if !alike {
        return Err(errors::broken(
            "columns_differ",
            "the files of one table have other columns, or columns of other types",
        )
        .detail(name.to_owned()));
    }
    if pairs().all(|(left, right)| left.is_nullable() || !right.is_nullable()) {
        return Ok(first);
    }
    let fields = pairs().map(|(left, right)| {
        let is_nullable = left.is_nullable() || right.is_nullable();
        left.as_ref().clone().with_nullable(is_nullable)
    });
    let fields: Vec<Field> = fields.collect();
    let metadata = first.metadata().clone();
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
}
