//! Columns of Parquet that a session keeps unpacked, since its statements ask for them again and again: to decompress and unpack them is most of what
//! many statements take, and a file does not change while it is open.
//!
//! Start reading at [`Kept`]; [`super::parquet`] asks it before it reads.

use super::bounds::{AllBounds, Bounds};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Statistics;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source::DataSource;
use datafusion::error::Result as Planned;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::DynamicFilterTracking;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, conjunction};
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, Partitioning};
use futures_util::stream;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Of all tables of a session together, as it is measured. A million rows of seven columns, two short texts among them, have 104 MiB.
const BYTES_MAX: usize = 128 << 20;
/// Statements that are remembered to need the room; further ones run out of memory first, each time, and are then answered without what is kept.
const HUNGRY_MAX: usize = 64;
/// Which part of it statements have less for what they sort, group and join: that may take four times what it is counted for (`engine`), and this does not.
const PART_OF_POOL: usize = 4;
/// How often columns are asked for until they are kept: sessions that are asked little, or for something else each time, unpack nothing for later.
const ASKED_MIN: u32 = 3;
/// Columns that are looked after, of one statement.
const COLUMNS_MAX: usize = 100;
/// What is unpacked in a millisecond at the least, where nothing else runs: what is likely to take longer than it may is not begun.
const BYTES_PER_MS: u64 = 100 << 10;
/// The part of a statement's time in which columns of all its tables are unpacked for those that come after it, or not at all.
const PART_OF_TIME: u32 = 8;
/// What an array has beside its values.
const ARRAY_BYTES: usize = 512;

/// What is kept of all tables of a session.
#[derive(Debug, Default)]
pub struct Kept(Mutex<All>);

/// A statement that is answered from the file, whatever is kept: it asks where rows lie there, computes what can fail of rows of which the file's reading leaves some out, or needs the memory.
#[derive(Debug)]
pub struct FromTheFile;

/// What was measured of columns that were unpacked.
#[derive(Debug)]
pub struct Unpacked {
    pub batches: Vec<RecordBatch>,
    bytes: usize,
    bytes_max: usize,
    begun: Instant,
    spare: Duration,
}

/// Why columns are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Another statement may have more time.
    Late,
    /// They are larger than they may be, or cannot be read: whoever reads what is damaged is told so.
    Never,
}

#[derive(Debug)]
struct All {
    /// By the name of their first file.
    tables: HashMap<Arc<str>, HashMap<usize, Column>>,
    bytes: usize,
    /// Of the memory that statements have.
    reserved: Option<MemoryReservation>,
    /// Statements that need the memory which this takes, by their texts.
    hungry: HashSet<u64>,
    /// How often columns have to be asked for.
    asked_min: u32,
    /// What the statement that is being answered may still spend on those behind it.
    spare: Duration,
}

impl Default for All {
    fn default() -> All {
        All {
            tables: HashMap::new(),
            bytes: 0,
            reserved: None,
            hungry: HashSet::new(),
            asked_min: ASKED_MIN,
            spare: Duration::ZERO,
        }
    }
}

#[derive(Debug)]
enum Column {
    /// So often, and what it would take.
    Asked(u32, u64),
    Kept(Vec<ArrayRef>, Option<Arc<Bounds>>),
    Never,
}

/// What there is of the columns that a statement asks for.
#[derive(Debug)]
pub enum Found {
    /// They are read from the file.
    Nothing,
    /// All but these, which are worth keeping, and what they take as far as that is known.
    AllBut(Vec<usize>, u64),
    All(KeptRows),
}

impl Kept {
    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that are held now, and are not reserved.
    pub fn bytes(&self) -> usize {
        let all = self.all();
        all.bytes - all.reserved.as_ref().map_or(0, MemoryReservation::size)
    }

    /// A statement asks for these columns of a table. `sizes` says what columns that were not asked for before would take; `None` of one that is never kept.
    pub fn find(
        &self,
        table: &Arc<str>,
        columns: &[usize],
        schema: &SchemaRef,
        sizes: impl FnOnce(&[usize]) -> Vec<Option<u64>>,
    ) -> Planned<Found> {
        let mut all = self.all();
        if columns.is_empty() || columns.len() > COLUMNS_MAX {
            return Ok(Found::Nothing);
        }
        let (held, asked_min) = (all.bytes as u64, all.asked_min);
        let known = all.tables.entry(table.clone()).or_default();
        let new = columns.iter().filter(|at| !known.contains_key(at));
        let new: Vec<usize> = new.copied().collect();
        if !new.is_empty() {
            let columns = sizes(&new).into_iter().map(|size| match size {
                Some(bytes) => Column::Asked(0, bytes),
                None => Column::Never,
            });
            known.extend(new.into_iter().zip(columns));
        }
        let (mut missing, mut taken, mut are_asked) = (Vec::new(), 0u64, true);
        for at in columns {
            match known.get_mut(at) {
                Some(Column::Asked(times, bytes)) => {
                    *times = times.saturating_add(1);
                    are_asked &= *times >= asked_min;
                    taken = taken.saturating_add(*bytes);
                    missing.push(*at);
                }
                Some(Column::Kept(..)) => {}
                Some(Column::Never) | None => are_asked = false,
            }
        }
        if !are_asked || held.saturating_add(taken) > BYTES_MAX as u64 {
            return Ok(Found::Nothing);
        }
        if !missing.is_empty() {
            return Ok(Found::AllBut(missing, taken));
        }
        let kept = columns.iter().map(|at| match known.get(at) {
            Some(Column::Kept(arrays, bounds)) => Some((arrays, bounds.clone())),
            _ => None,
        });
        match kept.collect::<Option<Vec<_>>>() {
            Some(kept) => Ok(Found::All(KeptRows::new(
                Arc::new(schema.project(columns)?),
                kept,
            )?)),
            None => Ok(Found::Nothing),
        }
    }

    /// Keeps these columns. Where they are cut otherwise than others of their table, or there is no memory for them, they never are.
    pub fn keep(
        &self,
        table: &Arc<str>,
        columns: &[usize],
        unpacked: Result<Unpacked, Refused>,
        pool: &Arc<dyn MemoryPool>,
        took: Duration,
    ) {
        let mut all = self.all();
        all.spare = all.spare.saturating_sub(took);
        let known = all.tables.entry(table.clone()).or_default();
        let unpacked = unpacked.and_then(|unpacked| {
            let rows = || unpacked.batches.iter().map(RecordBatch::num_rows);
            let is_alike = known.values().all(|column| match column {
                Column::Kept(arrays, _) => arrays.iter().map(|array| array.len()).eq(rows()),
                Column::Asked(..) | Column::Never => true,
            });
            let is_new = columns
                .iter()
                .all(|at| matches!(known.get(at), Some(Column::Asked(..))));
            match is_alike && is_new {
                true => Ok(unpacked),
                false => Err(Refused::Never),
            }
        });
        let unpacked = match unpacked {
            Ok(unpacked) => unpacked,
            Err(refused) => {
                for at in columns {
                    match (known.get_mut(at), refused) {
                        (Some(Column::Asked(times, _)), Refused::Late) => *times = 0,
                        (Some(Column::Asked(..)), Refused::Never) => {
                            known.insert(*at, Column::Never);
                        }
                        _ => {}
                    }
                }
                return;
            }
        };
        for (place, at) in columns.iter().enumerate() {
            let arrays = unpacked
                .batches
                .iter()
                .map(|batch| batch.column(place).clone());
            let arrays: Vec<ArrayRef> = arrays.collect();
            let bounds = Bounds::of(&arrays);
            known.insert(*at, Column::Kept(arrays, bounds));
        }
        all.bytes += unpacked.bytes;
        let part = all.bytes / PART_OF_POOL;
        let reserved = all
            .reserved
            .get_or_insert_with(|| MemoryConsumer::new("kept").register(pool));
        if reserved.try_resize(part).is_err() {
            all.let_go();
        }
    }

    /// A statement begins that has so much time, and gets the room that it needs, if it is one of those. Whether it is.
    pub fn begin(&self, text: &str, time: Duration) -> bool {
        let mut all = self.all();
        all.spare = time / PART_OF_TIME;
        let is_hungry = !all.hungry.is_empty() && all.hungry.contains(&hashed(text));
        if is_hungry {
            all.let_go();
        }
        is_hungry
    }

    /// Lets go of everything. Whether there was something.
    pub fn let_go(&self) -> bool {
        let mut all = self.all();
        let had = all.bytes > 0;
        all.let_go();
        had
    }

    /// A statement was answered only without what was kept.
    pub fn is_hungry(&self, text: &str) {
        let mut all = self.all();
        if all.hungry.len() < HUNGRY_MAX && all.hungry.insert(hashed(text)) {
            // Where such statements come again and again there is less to be gained.
            all.asked_min = all.asked_min.saturating_mul(2);
        }
    }

    /// Nothing is unpacked yet, of as much as there is room for; `None` where it would take too long, as there is so much to unpack.
    pub fn unpack(&self, unpacked: u64) -> Option<Unpacked> {
        let all = self.all();
        let takes = Duration::from_millis(unpacked / BYTES_PER_MS);
        (takes < all.spare).then(|| Unpacked {
            batches: Vec::new(),
            bytes: 0,
            bytes_max: BYTES_MAX - all.bytes,
            begun: Instant::now(),
            spare: all.spare,
        })
    }
}

impl All {
    fn let_go(&mut self) {
        self.tables.clear();
        self.bytes = 0;
        self.reserved = None;
    }
}

fn hashed(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// What a column is likely to take that has so many rows and is so large in its file when it is decompressed; `None` of one that is not kept: lists and
/// structures may be anything, and what a dictionary is of is in each of its batches.
pub fn size(kind: &DataType, rows: u64, unpacked: u64) -> Option<u64> {
    const VIEW_BYTES: u64 = 16;
    let values = match kind {
        DataType::Boolean => rows / 8,
        DataType::Utf8View | DataType::BinaryView => {
            rows.saturating_mul(VIEW_BYTES).saturating_add(unpacked)
        }
        kind => rows.saturating_mul(kind.primitive_width()? as u64),
    };
    Some(values)
}

/// Whether there is memory for so much: a component whose memory may not grow any more ends where somebody asks for some.
pub fn has_room(bytes: u64) -> bool {
    let mut room: Vec<u8> = Vec::new();
    let is_there = usize::try_from(bytes).is_ok_and(|bytes| room.try_reserve_exact(bytes).is_ok());
    black_box(room);
    is_there
}

impl Unpacked {
    /// One batch more.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), Refused> {
        let batch = exact(batch).map_err(|_| Refused::Never)?;
        self.bytes += batch.get_array_memory_size() + batch.num_columns() * ARRAY_BYTES;
        self.batches.push(batch);
        if self.bytes > self.bytes_max {
            return Err(Refused::Never);
        }
        match self.begun.elapsed() > self.spare {
            true => Err(Refused::Late),
            false => Ok(()),
        }
    }
}

/// The same values in buffers of their own: who reads a row group has made room for a batch, and a text lies in its page or its dictionary.
fn exact(batch: &RecordBatch) -> Planned<RecordBatch> {
    let rows = u32::try_from(batch.num_rows()).unwrap_or(u32::MAX);
    let copied = take_record_batch(batch, &UInt32Array::from_iter_values(0..rows))?;
    let columns = copied.columns().iter();
    let columns = columns.map(|column| match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()),
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()) as ArrayRef,
        _ => column.clone(),
    });
    Ok(RecordBatch::try_new(copied.schema(), columns.collect())?)
}

/// Reads what is kept.
#[derive(Clone, Debug)]
pub struct KeptRows {
    schema: SchemaRef,
    batches: Arc<Vec<RecordBatch>>,
    bounds: Arc<AllBounds>,
    /// What is filtered by above: batches without such a row are passed over.
    filter: Option<Arc<dyn PhysicalExpr>>,
    rows: usize,
}

impl KeptRows {
    fn new(
        schema: SchemaRef,
        columns: Vec<(&Vec<ArrayRef>, Option<Arc<Bounds>>)>,
    ) -> Planned<KeptRows> {
        let count = columns.first().map_or(0, |(arrays, _)| arrays.len());
        let batches = (0..count).map(|at| {
            let columns = columns.iter().map(|(arrays, _)| arrays[at].clone());
            Ok(RecordBatch::try_new(schema.clone(), columns.collect())?)
        });
        let batches = batches.collect::<Planned<Vec<_>>>()?;
        let rows: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
        Ok(KeptRows {
            rows: rows.iter().sum(),
            bounds: Arc::new(AllBounds {
                schema: schema.clone(),
                columns: columns.into_iter().map(|(_, bounds)| bounds).collect(),
                rows,
            }),
            schema,
            batches: Arc::new(batches),
            filter: None,
        })
    }
}

impl DataSource for KeptRows {
    fn open(
        &self,
        _partition: usize,
        _context: Arc<TaskContext>,
    ) -> Planned<SendableRecordBatchStream> {
        let some = self.filter.as_ref();
        let some = some.map(|filter| self.bounds.with_some(filter));
        let (batches, mut left, mut at) = (self.batches.clone(), self.rows, 0);
        let rows = std::iter::from_fn(move || {
            let passed = |at: usize| some.as_ref().is_some_and(|some| !some[at]);
            while at < batches.len() && passed(at) {
                at += 1;
            }
            let batch = batches.get(at).filter(|_| left > 0)?;
            let rows = batch.num_rows().min(left);
            (at, left) = (at + 1, left - rows);
            Some(Ok(batch.slice(0, rows)))
        });
        let rows = stream::iter(rows);
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema.clone(),
            rows,
        )))
    }

    /// They are looked at above, too. One that a step changes while it computes is not waited for.
    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Planned<FilterPushdownPropagation<Arc<dyn DataSource>>> {
        let none = vec![PushedDown::No; filters.len()];
        let none = FilterPushdownPropagation::with_parent_pushdown_result(none);
        let steady = filters
            .into_iter()
            .filter(|filter| !DynamicFilterTracking::classify(filter).contains_dynamic_filter());
        let known = self.filter.iter().cloned();
        let all: Vec<_> = known.chain(steady).collect();
        if all.len() == self.filter.iter().len() {
            return Ok(none);
        }
        Ok(none.with_updated_node(Arc::new(KeptRows {
            filter: Some(conjunction(all)),
            ..self.clone()
        })))
    }

    fn fmt_as(&self, _kind: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("kept")
    }

    fn output_partitioning(&self) -> Partitioning {
        Partitioning::UnknownPartitioning(1)
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        EquivalenceProperties::new(self.schema.clone())
    }

    /// As a reading of the file has them, so that a statement is planned as it was before.
    fn partition_statistics(&self, _partition: Option<usize>) -> Planned<Arc<Statistics>> {
        let mut statistics = Statistics {
            num_rows: Precision::Exact(self.rows),
            ..Statistics::new_unknown(&self.schema)
        };
        statistics.calculate_total_byte_size(&self.schema);
        Ok(Arc::new(statistics))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        let rows = limit.map_or(self.rows, |limit| limit.min(self.rows));
        Some(Arc::new(KeptRows {
            rows,
            ..self.clone()
        }))
    }

    fn fetch(&self) -> Option<usize> {
        let all: usize = self.batches.iter().map(RecordBatch::num_rows).sum();
        (self.rows < all).then_some(self.rows)
    }

    fn try_swapping_with_projection(
        &self,
        _projection: &ProjectionExprs,
    ) -> Planned<Option<Arc<dyn DataSource>>> {
        Ok(None)
    }

    fn apply_expressions(
        &self,
        _each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Planned<TreeNodeRecursion>,
    ) -> Planned<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}
