//! Reads the rows at the places that a sort hands on, and hands them on in its order.

use crate::errors;
use crate::pieces::Pieces;
use crate::tables::Footer;
use crate::watch::Watch;
use datafusion::arrow::array::{ArrayRef, AsArray, GenericByteViewArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{interleave_record_batch, take_record_batch};
use datafusion::arrow::datatypes::{ByteViewType, DataType, Int64Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result as Planned};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::parquet::arrow::arrow_reader::RowSelection;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

#[derive(Debug)]
pub struct LateRows {
    /// Its last two columns are a file's number and a row's in it.
    places: Arc<dyn ExecutionPlan>,
    rows: Arc<FileScanConfig>,
    properties: Arc<PlanProperties>,
    watch: Arc<Watch>,
}

impl LateRows {
    /// `properties` are those of the sort whose place it takes.
    pub fn new(
        places: Arc<dyn ExecutionPlan>,
        rows: FileScanConfig,
        properties: &Arc<PlanProperties>,
        watch: Arc<Watch>,
    ) -> LateRows {
        LateRows {
            places,
            rows: Arc::new(rows),
            properties: properties.clone(),
            watch,
        }
    }
}

impl DisplayAs for LateRows {
    fn fmt_as(&self, _kind: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LateRows")
    }
}

impl ExecutionPlan for LateRows {
    fn name(&self) -> &str {
        "LateRows"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.places]
    }

    fn apply_expressions(
        &self,
        _each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Planned<TreeNodeRecursion>,
    ) -> Planned<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(LateRows {
            places: children.pop().unwrap_or_else(|| self.places.clone()),
            rows: self.rows.clone(),
            properties: self.properties.clone(),
            watch: self.watch.clone(),
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Planned<SendableRecordBatchStream> {
        let places = self.places.execute(partition, context.clone())?;
        let (config, watch, schema) = (self.rows.clone(), self.watch.clone(), self.schema());
        let batch_rows = context.session_config().batch_size();
        let whole = async move {
            let places = Places::all(places).await?;
            let batch = whole(places, &config, watch, context).await?;
            let starts = (0..batch.num_rows()).step_by(batch_rows);
            let batches =
                starts.map(move |at| Ok(batch.slice(at, batch_rows.min(batch.num_rows() - at))));
            Ok::<_, DataFusionError>(stream::iter(batches))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            stream::once(whole).try_flatten().boxed(),
        )))
    }
}

/// Where the rows lie: the number of a file, and their own in it.
struct Places(Vec<(usize, usize)>);

impl Places {
    async fn all(mut batches: SendableRecordBatchStream) -> Planned<Places> {
        let mut all = Vec::new();
        while let Some(batch) = batches.try_next().await? {
            let [.., file, row] = batch.columns() else {
                return Err(lost());
            };
            let files = file.as_primitive::<Int64Type>().values().iter();
            let rows = row.as_primitive::<Int64Type>().values().iter();
            for (file, row) in files.zip(rows) {
                let place = usize::try_from(*file).ok().zip(usize::try_from(*row).ok());
                all.push(place.ok_or_else(lost)?);
            }
        }
        Ok(Places(all))
    }

    /// Of each file the rows, from the first to the last.
    fn by_file(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut by_file: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (file, row) in &self.0 {
            by_file.entry(*file).or_default().push(*row);
        }
        for rows in by_file.values_mut() {
            rows.sort_unstable();
        }
        by_file
    }

    /// As many numbers as there are rows: that which each has among all, as they lie.
    fn ranks(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.0.len()).collect();
        order.sort_unstable_by_key(|at| self.0[*at]);
        let mut ranks = vec![0; order.len()];
        for (rank, at) in order.into_iter().enumerate() {
            ranks[at] = rank;
        }
        ranks
    }
}

/// The rows at these places, in this order.
async fn whole(
    places: Places,
    config: &FileScanConfig,
    watch: Arc<Watch>,
    context: Arc<TaskContext>,
) -> Planned<RecordBatch> {
    let scan = DataSourceExec::from_data_source(
        FileScanConfigBuilder::from(config.clone())
            .with_file_groups(vec![selected(config, &places)?])
            .build(),
    );
    let schema = scan.schema();
    if places.0.is_empty() {
        return Ok(RecordBatch::new_empty(schema));
    }
    let pieces = CooperativeExec::new(Arc::new(Pieces::new(scan, watch)));
    let mut pieces = pieces.execute(0, context.clone())?;
    let held = MemoryConsumer::new("late rows").register(context.memory_pool());
    let mut batches = Vec::new();
    let mut lie = Vec::with_capacity(places.0.len());
    while let Some(batch) = pieces.try_next().await? {
        let batch = compact(&batch)?;
        held.try_grow(batch.get_array_memory_size())?;
        lie.extend((0..batch.num_rows()).map(|row| (batches.len(), row)));
        batches.push(batch);
    }
    let order = places
        .ranks()
        .into_iter()
        .map(|rank| lie.get(rank).copied());
    let order: Option<Vec<(usize, usize)>> = order.collect();
    match order.filter(|order| order.len() == lie.len()) {
        Some(order) => {
            let batches: Vec<&RecordBatch> = batches.iter().collect();
            Ok(interleave_record_batch(&batches, &order)?)
        }
        None => Err(lost()),
    }
}

/// The files that have some of the rows, and which of theirs.
fn selected(config: &FileScanConfig, places: &Places) -> Planned<FileGroup> {
    let files = config.file_groups.iter().flat_map(FileGroup::iter);
    let files: Vec<&PartitionedFile> = files.collect();
    let mut selected = Vec::new();
    for (number, rows) in places.by_file() {
        let file = *files.get(number).ok_or_else(lost)?;
        let Footer(footer) = file.extension::<Footer>().ok_or_else(lost)?;
        let total = usize::try_from(footer.file_metadata().num_rows()).map_err(|_| lost())?;
        let are_some = rows.last().is_none_or(|last| *last < total);
        let is_each_once = rows.windows(2).all(|pair| pair[0] < pair[1]);
        if !are_some || !is_each_once {
            return Err(lost());
        }
        let each = rows.into_iter().map(|row| row..row + 1);
        let rows = RowSelection::from_consecutive_ranges(each, total);
        selected.push(file.clone().with_extension(ParquetRowSelection::new(rows)));
    }
    Ok(FileGroup::new(selected))
}

/// The same rows and nothing beside them: who reads a row of a column makes room for a batch of them, and a text holds its page.
fn compact(batch: &RecordBatch) -> Planned<RecordBatch> {
    let rows = u32::try_from(batch.num_rows()).map_err(|_| lost())?;
    let all = UInt32Array::from_iter_values(0..rows);
    let copied = take_record_batch(batch, &all)?;
    let columns = copied
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Utf8View => compact_views(column, column.as_string_view()),
            DataType::BinaryView => compact_views(column, column.as_binary_view()),
            _ => column.clone(),
        });
    let columns: Vec<ArrayRef> = columns.collect();
    Ok(RecordBatch::try_new(copied.schema(), columns)?)
}

fn compact_views<T: ByteViewType>(column: &ArrayRef, views: &GenericByteViewArray<T>) -> ArrayRef {
    let held: usize = views.data_buffers().iter().map(|buffer| buffer.len()).sum();
    match views.total_buffer_bytes_used() < held {
        true => Arc::new(views.gc()),
        false => column.clone(),
    }
}

pub fn lost() -> DataFusionError {
    errors::through(errors::broken(
        "file_broken",
        "the file is damaged, or not what its name says",
    ))
}
