//! Parquet: the footer is read once, then of each row group what a statement needs ([`super::row_groups`]).

use super::footers;
use super::kept::{self, Found, FromTheFile, Kept, KeptRows, Refused, Unpacked};
use super::kinds::check_kind;
use super::pages::{Together, check_lists, check_schema};
use super::places::{check_footer, check_indexes, indexes};
use super::row_groups::{Part, Readers, Reads};
use super::{Known, batch_rows, named, same_schema};
use crate::clock::Clock;
use crate::errors;
use crate::slice::Slice;
use crate::types;
use bytes::Bytes;
use datafusion::arrow::datatypes::{Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{Int96Coercer, transform_schema_to_view};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::error::Result as Planned;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::Expr;
use datafusion::parquet::DecodeResult;
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder,
};
use datafusion::physical_plan::ExecutionPlan;
use futures_util::StreamExt;
use souk_sdk::Error;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// Of row groups that unpack to no more what a filter leaves is read alone: a batch of that may have a row of each page.
pub const FILTERED_BYTES_MAX: u64 = 64 << 20;
/// Footers and indexes of pages of all files of a table: in memory they are ten times as large and more. A footer of 1,000 columns and
/// 100 row groups has less.
const METADATA_BYTES_MAX: u64 = 16 << 20;
/// The shortest file that is one: two marks and the length of nothing.
const FILE_BYTES_MIN: u64 = 12;

/// Whether a statement's filters are applied while Parquet is read. Of rows that are answered only those that are left are unpacked then; where they are
/// added up, grouped or joined, few columns are read, and to look for those rows in each takes longer than to unpack all (of TPC-H's questions most took
/// 1.2 to 1.9 times as long, and two, of which joins leave very little, 0.7 to 0.8).
#[derive(Debug)]
pub struct FiltersWhileRead(pub bool);

/// What a file says of itself, for whoever plans what is read of it.
#[derive(Debug)]
pub struct Footer(pub Arc<ParquetMetaData>);

#[derive(Debug)]
struct ParquetTable {
    schema: SchemaRef,
    parts: Arc<Vec<Part>>,
    rows: u64,
    clock: Clock,
}

pub fn open(files: &[(String, Slice)], clock: &Clock) -> Result<Known, Error> {
    let mut schema: Option<SchemaRef> = None;
    let mut parts = Vec::with_capacity(files.len());
    let mut rows = 0u64;
    let mut left = METADATA_BYTES_MAX;
    for (name, slice) in files {
        clock.check()?;
        let opened = said(slice, &mut left).map_err(|error| named(error, name))?;
        let (metadata, found, of_part) = opened;
        schema = Some(match schema {
            None => found,
            Some(first) => same_schema(first, &found, name)?,
        });
        rows = rows.saturating_add(of_part);
        parts.push(Part::new(name, slice, metadata, clock));
    }
    let schema = schema.ok_or_else(|| errors::broken("no_files", "the table has no files"))?;
    let table = ParquetTable {
        schema,
        parts: Arc::new(parts),
        rows,
        clock: clock.clone(),
    };
    Ok(Known {
        rows: Some(rows),
        batch_rows: batch_rows(table.row_bytes()),
        provider: Arc::new(table),
    })
}

/// What a file's footer says, and of it the columns and how many rows there are.
fn said(slice: &Slice, left: &mut u64) -> Result<(ParquetMetaData, SchemaRef, u64), Error> {
    let (metadata, json) = metadata(slice, left)?;
    check_footer(&metadata, slice.len())?;
    let schema = schema_of(&metadata, &json)?;
    let rows = rows_of(&metadata)?;
    Ok((metadata, schema, rows))
}

/// What the footer says, and the names of columns that it says are JSON.
fn metadata(slice: &Slice, left: &mut u64) -> Result<(ParquetMetaData, HashSet<String>), Error> {
    if slice.len() < FILE_BYTES_MIN {
        return Err(errors::unreadable(std::io::ErrorKind::UnexpectedEof.into()));
    }
    check_tail(slice, *left)?;
    let failed = |error: ParquetError| errors::of_file(&error);
    let footer = ParquetMetaDataPushDecoder::try_new(slice.len())
        .map_err(failed)?
        .with_page_index_policy(PageIndexPolicy::Skip);
    let footer = decoded(footer, slice, left, &[])?;
    let indexes = indexes(&footer);
    let whole = ParquetMetaDataPushDecoder::try_new_with_metadata(slice.len(), footer)
        .map_err(failed)?
        .with_page_index_policy(PageIndexPolicy::Optional);
    let metadata = decoded(whole, slice, left, &indexes)?;
    let json = footers::json(metadata.file_metadata());
    Ok((footers::plain(metadata).map_err(failed)?, json))
}

/// What a decoder makes of the bytes that it asks for, among which are those of these indexes.
fn decoded(
    mut decoder: ParquetMetaDataPushDecoder,
    slice: &Slice,
    left: &mut u64,
    indexes: &[Range<u64>],
) -> Result<ParquetMetaData, Error> {
    let failed = |error: ParquetError| errors::of_file(&error);
    loop {
        match decoder.try_decode().map_err(failed)? {
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::NeedsData(ranges) => {
                let buffers = read(slice, &ranges, left)?;
                for (range, buffer) in ranges.iter().zip(&buffers) {
                    check_indexes(indexes, range, buffer)?;
                }
                decoder.push_ranges(ranges, buffers).map_err(failed)?;
            }
            DecodeResult::Finished => {
                return Err(errors::broken("file_broken", "the file has no footer"));
            }
        }
    }
}

/// As many rows as the row groups have, which is what the footer has to say of them all.
fn rows_of(metadata: &ParquetMetaData) -> Result<u64, Error> {
    let mut groups = metadata.row_groups().iter();
    let rows = groups.try_fold(0i64, |rows, group| rows.checked_add(group.num_rows()));
    match rows {
        Some(rows) if rows >= 0 && rows == metadata.file_metadata().num_rows() => {
            Ok(rows.unsigned_abs())
        }
        _ => Err(errors::broken(
            "file_broken",
            "the file is damaged, or not what its name says",
        )
        .detail("its footer has another number of rows than its row groups")),
    }
}

/// The length of the footer is that of something in the file, which begins as a footer does.
fn check_tail(slice: &Slice, left: u64) -> Result<(), Error> {
    let tail = slice
        .bytes(slice.len() - 8..slice.len())
        .map_err(errors::unreadable)?;
    let footer = tail
        .first_chunk::<4>()
        .map_or(0, |length| u32::from_le_bytes(*length));
    let footer = u64::from(footer);
    if footer + FILE_BYTES_MIN > slice.len() {
        return Err(errors::broken(
            "file_broken",
            "the file is damaged, or not what its name says",
        ));
    }
    if footer > left {
        return Err(metadata_too_large());
    }
    let end = slice.len() - 8;
    let footer = slice.bytes(end - footer..end);
    // One that is encrypted ends otherwise, which its reader says.
    match tail.ends_with(b"PAR1") {
        true => {
            let footer = footer.map_err(errors::unreadable)?;
            check_schema(&footer)?;
            check_lists(&footer, "footer")
        }
        false => Ok(()),
    }
}

fn metadata_too_large() -> Error {
    errors::broken(
        "footer_too_large",
        "the file's footer and its indexes have more than 16 MiB: write fewer columns or larger row groups",
    )
}

/// The bytes of `ranges`, as long as they are no more than `left`.
fn read(slice: &Slice, ranges: &[Range<u64>], left: &mut u64) -> Result<Vec<Bytes>, Error> {
    let mut buffers = Vec::with_capacity(ranges.len());
    for range in ranges {
        let len = range.end.saturating_sub(range.start);
        *left = left.checked_sub(len).ok_or_else(metadata_too_large)?;
        buffers.push(slice.bytes(range.clone()).map_err(errors::unreadable)?);
    }
    Ok(buffers)
}

/// Texts are read as views: what is only compared or grouped by is not copied. Days of the year 9999 are in no 64 bits of nanoseconds,
/// so that times of Spark's old kind are read in microseconds.
fn schema_of(metadata: &ParquetMetaData, json: &HashSet<String>) -> Result<SchemaRef, Error> {
    let file = metadata.file_metadata();
    let schema = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())
        .map_err(|error| errors::of_file(&error))?;
    let schema = Int96Coercer::new(file.schema_descr(), &schema, &TimeUnit::Microsecond)
        .coerce()
        .unwrap_or(schema);
    let schema = transform_schema_to_view(&schema);
    let fields = schema.fields().iter();
    let fields = fields.map(|field| match json.contains(field.name()) {
        true => Arc::new(types::as_json(field.as_ref().clone())),
        false => field.clone(),
    });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

impl ParquetTable {
    /// Calls `each` with the rows of each row group, and what these columns of it unpack to, as the footers say.
    fn groups(&self, columns: Option<&Vec<usize>>, mut each: impl FnMut(u64, u64)) {
        // Ten thousand columns are not looked for in a list of as many.
        let columns: Option<HashSet<usize>> =
            columns.map(|columns| columns.iter().copied().collect());
        for part in self.parts.iter() {
            let schema = part.metadata.file_metadata().schema_descr();
            let is_read = |leaf: usize| {
                let columns = columns.as_ref();
                columns.is_none_or(|columns| columns.contains(&schema.get_column_root_idx(leaf)))
            };
            for group in part.metadata.row_groups() {
                let sizes = group.columns().iter().enumerate();
                let sizes = sizes.filter(|(leaf, _)| is_read(*leaf));
                let bytes = sizes
                    .map(|(_, column)| u64::try_from(column.uncompressed_size()).unwrap_or(0))
                    .fold(0, u64::saturating_add);
                each(u64::try_from(group.num_rows()).unwrap_or(0), bytes);
            }
        }
    }

    /// What a row has, on an average, in the row group of the largest ones.
    fn row_bytes(&self) -> u64 {
        let mut most = 0;
        self.groups(None, |rows, bytes| most = most.max(bytes / rows.max(1)));
        most
    }

    fn largest_group(&self, columns: Option<&Vec<usize>>) -> u64 {
        let mut most = 0;
        self.groups(columns, |_, bytes| most = most.max(bytes));
        most
    }
}

#[async_trait::async_trait]
impl TableProvider for ParquetTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.schema.fields().len()).collect();
        let columns: Vec<usize> = projection.cloned().unwrap_or_else(all);
        for column in &columns {
            check_kind(self.schema.field(*column))?;
        }
        // The first rows of a table are soon read.
        let kept = match limit {
            Some(_) => None,
            None => self.kept(&columns, state).await?,
        };
        if let Some(kept) = kept {
            return Ok(DataSourceExec::from_data_source(kept));
        }
        let while_read = state.config().get_extension::<FiltersWhileRead>();
        let is_filtered = while_read.is_none_or(|while_read| while_read.0)
            && self.largest_group(projection) <= FILTERED_BYTES_MAX;
        let batch_rows = state.config().batch_size();
        let files = self.files(projection, is_filtered, batch_rows, state)?;
        Ok(DataSourceExec::from_data_source(
            files.with_limit(limit).build(),
        ))
    }
}

impl ParquetTable {
    /// What is kept of these columns, if all of them are, or are worth it now.
    async fn kept(&self, columns: &[usize], state: &dyn Session) -> Planned<Option<KeptRows>> {
        let config = state.config();
        let (Some(kept), Some(first)) = (config.get_extension::<Kept>(), self.parts.first()) else {
            return Ok(None);
        };
        if config.get_extension::<FromTheFile>().is_some() {
            return Ok(None);
        }
        let find = || {
            kept.find(&first.name, columns, &self.schema, |new| {
                let unpacked = self.unpacked(new);
                let sizes = new.iter().zip(unpacked).map(|(column, unpacked)| {
                    let kind = self.schema.field(*column).data_type();
                    kept::size(kind, self.rows, unpacked)
                });
                sizes.collect()
            })
        };
        let (missing, bytes) = match find()? {
            Found::Nothing => return Ok(None),
            Found::All(kept) => return Ok(Some(kept)),
            Found::AllBut(missing, bytes) => (missing, bytes),
        };
        let left = self.clock.left();
        let unpacked = match kept::has_room(bytes) {
            true => self.all(&missing, &kept, state).await,
            false => Err(Refused::Never),
        };
        let took = left.saturating_sub(self.clock.left());
        let pool = &state.runtime_env().memory_pool;
        kept.keep(&first.name, &missing, unpacked, pool, took);
        match find()? {
            Found::All(kept) => Ok(Some(kept)),
            Found::Nothing | Found::AllBut(..) => Ok(None),
        }
    }

    /// All rows of these columns, in batches that are the same for each of them.
    async fn all(
        &self,
        columns: &Vec<usize>,
        kept: &Kept,
        state: &dyn Session,
    ) -> Result<Unpacked, Refused> {
        let unpacked = self.unpacked(columns).into_iter();
        let unpacked = unpacked.fold(0, u64::saturating_add);
        let mut all = kept.unpack(unpacked).ok_or(Refused::Late)?;
        let rows = batch_rows(self.row_bytes());
        let failed = |_| match self.clock.check() {
            Ok(()) => Refused::Never,
            Err(_) => Refused::Late,
        };
        let files = self.files(Some(columns), false, rows, state);
        let files = files.map_err(failed)?.with_batch_size(Some(rows)).build();
        // Not as a step of a plan, which would cut batches as the statement's other tables are.
        let mut read = files.open(0, state.task_ctx()).map_err(failed)?;
        while let Some(batch) = read.next().await {
            all.push(&batch.map_err(failed)?)?;
        }
        Ok(all)
    }

    /// What each of these columns has when it is decompressed, as the footers say.
    fn unpacked(&self, columns: &[usize]) -> Vec<u64> {
        let places: HashMap<usize, usize> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| (*column, at))
            .collect();
        let mut unpacked = vec![0u64; columns.len()];
        for part in self.parts.iter() {
            let schema = part.metadata.file_metadata().schema_descr();
            let groups = part.metadata.row_groups().iter();
            let leaves = groups.flat_map(|group| group.columns().iter().enumerate());
            for (leaf, column) in leaves {
                if let Some(at) = places.get(&schema.get_column_root_idx(leaf)) {
                    let bytes = u64::try_from(column.uncompressed_size()).unwrap_or(0);
                    unpacked[*at] = unpacked[*at].saturating_add(bytes);
                }
            }
        }
        unpacked
    }

    /// Of all files these columns.
    fn files(
        &self,
        projection: Option<&Vec<usize>>,
        is_filtered: bool,
        batch_rows: usize,
        state: &dyn Session,
    ) -> Planned<FileScanConfigBuilder> {
        let reads = state.config().get_extension::<Reads>().unwrap_or_default();
        let mut options = state.default_table_options().parquet;
        options.global.pushdown_filters = is_filtered;
        // Their reader trusts what the file says of their place and length.
        options.global.bloom_filter_on_read = false;
        options.global.coerce_int96 = Some("us".to_owned());
        let source = ParquetSource::new(self.schema.clone())
            .with_table_parquet_options(options)
            .with_enable_page_index(true)
            .with_parquet_file_reader_factory(Arc::new(Readers {
                parts: self.parts.clone(),
                reads,
                together: match is_filtered {
                    true => Together::All,
                    false => Together::Rows(batch_rows as u64),
                },
            }));
        let files = self.parts.iter().enumerate();
        let files = files.map(|(at, part)| {
            PartitionedFile::new(at.to_string(), part.slice.len())
                .with_extension(Footer(part.metadata.clone()))
        });
        let statistics = Statistics {
            num_rows: usize::try_from(self.rows).map_or(Precision::Absent, Precision::Exact),
            ..Statistics::new_unknown(&self.schema)
        };
        FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_group(FileGroup::new(files.collect()))
            .with_statistics(statistics)
            .with_projection_indices(projection.cloned())
    }
}
