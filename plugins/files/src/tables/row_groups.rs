//! Of each row group only the columns are read, and where the file has an index of its pages only the pages, that a statement needs; they are looked at
//! before their reader sees them, and what they take of memory is counted.

use super::delta;
use super::named;
use super::pages::{PageSize, Together, broken, check_pages, held_at_once, unfold};
use super::places::{are_as_said, are_behind_dictionary, place};
use crate::clock::Clock;
use crate::errors;
use crate::slice::Slice;
use bytes::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::error::Result as Planned;
use datafusion::execution::memory_pool::{
    GreedyMemoryPool, MemoryConsumer, MemoryPool, MemoryReservation,
};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::errors::{ParquetError, Result as Read};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use souk_sdk::Error;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// What the row groups may take of memory that statements of a session read at a time: as they lie in the file, and the pages of them that
/// are unpacked.
const READ_BYTES_MAX: usize = 160 << 20;
/// A file of a table.
#[derive(Clone, Debug)]
pub struct Part {
    pub name: Arc<str>,
    pub slice: Slice,
    pub metadata: Arc<ParquetMetaData>,
    chunks: Arc<Chunks>,
    clock: Clock,
}

impl Part {
    pub fn new(name: &str, slice: &Slice, metadata: ParquetMetaData, clock: &Clock) -> Part {
        Part {
            name: name.into(),
            slice: slice.clone(),
            chunks: Arc::new(Chunks::of(&metadata)),
            metadata: Arc::new(metadata),
            clock: clock.clone(),
        }
    }
}

/// What row groups are read at a time, of all tables of a session.
#[derive(Debug)]
pub struct Reads(Arc<dyn MemoryPool>);

impl Reads {
    /// Bytes that are held now.
    pub fn reserved(&self) -> usize {
        self.0.reserved()
    }
}

impl Default for Reads {
    fn default() -> Reads {
        Reads(Arc::new(GreedyMemoryPool::new(READ_BYTES_MAX)))
    }
}

/// Where the columns of the row groups lie, in the order of the file.
#[derive(Debug)]
struct Chunks(Vec<Chunk>);

#[derive(Debug)]
struct Chunk {
    start: u64,
    group: usize,
    column: usize,
    is_in_list: bool,
}

impl Chunks {
    fn of(metadata: &ParquetMetaData) -> Chunks {
        let mut chunks = Vec::new();
        for (group, columns) in metadata.row_groups().iter().enumerate() {
            for (number, column) in columns.columns().iter().enumerate() {
                // One without bytes has no page, and may lie anywhere.
                let Some(place) = place(column).filter(|place| place.start < place.end) else {
                    continue;
                };
                chunks.push(Chunk {
                    start: place.start,
                    group,
                    column: number,
                    is_in_list: column.column_descr().max_rep_level() > 0,
                });
            }
        }
        chunks.sort_by_key(|chunk| chunk.start);
        Chunks(chunks)
    }

    /// The number of that in which something begins, and it.
    fn at(&self, start: u64) -> Option<(usize, &Chunk)> {
        let at = self.0.partition_point(|chunk| chunk.start <= start);
        let at = at.checked_sub(1)?;
        Some((at, self.0.get(at)?))
    }
}

/// One reading of a part, and what it holds of memory.
struct Reading {
    part: Part,
    together: Together,
    group: Option<usize>,
    /// Columns of row groups whose dictionary was read.
    dictionaries: HashSet<usize>,
    held: MemoryReservation,
}

/// Reads the parts of a table, which are named by their numbers.
#[derive(Debug)]
pub struct Readers {
    pub parts: Arc<Vec<Part>>,
    pub reads: Arc<Reads>,
    pub together: Together,
}

impl ParquetFileReaderFactory for Readers {
    fn create_reader(
        &self,
        _partition: usize,
        file: PartitionedFile,
        _hint: Option<usize>,
        _metrics: &ExecutionPlanMetricsSet,
    ) -> Planned<Box<dyn AsyncFileReader + Send>> {
        let at: Option<usize> = file.path().as_ref().parse().ok();
        match at.and_then(|at| self.parts.get(at)) {
            Some(part) => Ok(Box::new(Reading {
                part: part.clone(),
                together: match file.extension::<ParquetRowSelection>() {
                    // A row of each page, perhaps.
                    Some(_) => Together::All,
                    None => self.together,
                },
                group: None,
                dictionaries: HashSet::new(),
                held: MemoryConsumer::new("row groups").register(&self.reads.0),
            })),
            None => Err(errors::through(Error::internal(
                "part_lost",
                "the connector lost a file of the table",
            ))),
        }
    }
}

impl Reading {
    fn ranges(&mut self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Error> {
        self.part.clock.check()?;
        let group = ranges
            .first()
            .and_then(|range| self.part.chunks.at(range.start));
        let group = group.map(|(_, chunk)| chunk.group);
        if group != self.group {
            self.held.free();
            self.group = group;
        }
        let mut buffers = Vec::with_capacity(ranges.len());
        for range in ranges {
            self.hold(range.end.saturating_sub(range.start))?;
            let read = self.part.slice.bytes(range.clone());
            buffers.push(read.map_err(errors::unreadable)?);
        }
        Ok(buffers)
    }

    /// As [`Reading::ranges`], of pages, which are looked at.
    fn pages(&mut self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Error> {
        let buffers = self.ranges(ranges)?;
        let mut columns: BTreeMap<usize, (bool, Vec<PageSize>)> = BTreeMap::new();
        for (range, buffer) in ranges.iter().zip(&buffers) {
            let Some((at, chunk)) = self.part.chunks.at(range.start) else {
                continue;
            };
            let mut pages = check_pages(buffer, chunk.is_in_list)?;
            let indexes = self.part.metadata.offset_index();
            let index = indexes.and_then(|groups| groups.get(chunk.group)?.get(chunk.column));
            let rows = self.part.metadata.row_group(chunk.group).num_rows();
            let (start, is_in_list) = (range.start, chunk.is_in_list);
            if let Some(index) = index
                && !are_as_said(&pages, start, &index.page_locations, rows, is_in_list)
            {
                return Err(broken(
                    "a page of it lies elsewhere, or has other rows, than its index says",
                ));
            }
            let mut has_one = self.dictionaries.contains(&at);
            if !are_behind_dictionary(&pages, start, chunk.start, &mut has_one) {
                return Err(broken("a page of it has no dictionary before it"));
            }
            if has_one {
                self.dictionaries.insert(at);
            }
            if pages.iter().any(|page| page.is_delta) {
                let group = self.part.metadata.row_group(chunk.group);
                let texts = delta::texts(buffer, group.column(chunk.column));
                unfold(&mut pages, &texts.map_err(|error| errors::of_file(&error))?)?;
            }
            let (_, of_column) = columns.entry(at).or_insert((chunk.is_in_list, Vec::new()));
            of_column.append(&mut pages);
        }
        let held = columns
            .values()
            .map(|(is_in_list, pages)| match is_in_list {
                // Nobody knows how many values a row has.
                true => held_at_once(pages, Together::All),
                false => held_at_once(pages, self.together),
            });
        self.hold(held.sum())?;
        Ok(buffers)
    }

    fn hold(&self, bytes: u64) -> Result<(), Error> {
        let bytes = usize::try_from(bytes).map_err(|_| row_group_too_large())?;
        self.held.try_grow(bytes).map_err(|_| row_group_too_large())
    }
}

/// An error through Parquet's reader, which says which file it is about.
fn outside(error: Error, part: &Part) -> ParquetError {
    ParquetError::External(errors::boxed(named(error, &part.name)))
}

impl AsyncFileReader for Reading {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Read<Bytes>> {
        let read = self.ranges(std::slice::from_ref(&range));
        let read = read.map(|mut buffers| buffers.pop().unwrap_or_default());
        std::future::ready(read.map_err(|error| outside(error, &self.part))).boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Read<Vec<Bytes>>> {
        // Only pages are asked for so; indexes come one by one.
        let read = self.pages(&ranges);
        std::future::ready(read.map_err(|error| outside(error, &self.part))).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Read<Arc<ParquetMetaData>>> {
        std::future::ready(Ok(self.part.metadata.clone())).boxed()
    }
}

fn row_group_too_large() -> Error {
    Error::source_failed(
        "row_group_too_large",
        "the columns that are read at a time of row groups have more than 160 MiB: write smaller row groups, or select fewer columns",
    )
}
