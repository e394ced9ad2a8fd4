//! The places of rows from somewhere on in an order: what all rows are sorted by is kept and sorted once. To keep the first hundred thousand rows of a
//! million in a heap takes several times as long, and each of them whole more room than there is.

use super::rows::lost;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::{SortColumn, concat, lexsort_to_indices, take};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as Planned;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::fmt;
use std::sync::Arc;

/// What is kept of all rows, at the most: with as much again for a moment it is half of what a statement has.
const BYTES_MAX: u64 = 40 << 20;
/// What a row's place takes of that: the number of its file, and its own.
const PLACE_BYTES: u64 = 16;

#[derive(Debug)]
pub struct SortedPlaces {
    /// Its last two columns are a file's number and a row's in it.
    places: Arc<dyn ExecutionPlan>,
    by: LexOrdering,
    skip: usize,
    rows: usize,
    properties: Arc<PlanProperties>,
}

impl SortedPlaces {
    /// Of rows in this order the places of so many, from that one on. `None` where what they are sorted by is not of one length, or there may be too
    /// much of it.
    pub fn new(
        places: &Arc<dyn ExecutionPlan>,
        by: &LexOrdering,
        skip: usize,
        rows: usize,
        of: u64,
    ) -> Planned<Option<SortedPlaces>> {
        let schema = places.schema();
        let mut bytes = PLACE_BYTES;
        for key in by {
            match key.expr.data_type(&schema)?.primitive_width() {
                Some(width) => bytes += u64::try_from(width).unwrap_or(u64::MAX),
                None => return Ok(None),
            }
        }
        let [.., file, row] = &schema.fields()[..] else {
            return Ok(None);
        };
        if of.saturating_mul(bytes) > BYTES_MAX {
            return Ok(None);
        }
        let schema = Arc::new(Schema::new([file.clone(), row.clone()]));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(Some(SortedPlaces {
            places: places.clone(),
            by: by.clone(),
            skip,
            rows,
            properties: Arc::new(properties),
        }))
    }
}

impl DisplayAs for SortedPlaces {
    fn fmt_as(&self, _kind: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SortedPlaces")
    }
}

impl ExecutionPlan for SortedPlaces {
    fn name(&self) -> &str {
        "SortedPlaces"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.places]
    }

    fn apply_expressions(
        &self,
        each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Planned<TreeNodeRecursion>,
    ) -> Planned<TreeNodeRecursion> {
        let mut goes_on = TreeNodeRecursion::Continue;
        for key in &self.by {
            goes_on = goes_on.visit_sibling(|| each(&key.expr))?;
        }
        Ok(goes_on)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(SortedPlaces {
            places: children.pop().unwrap_or_else(|| self.places.clone()),
            by: self.by.clone(),
            skip: self.skip,
            rows: self.rows,
            properties: self.properties.clone(),
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Planned<SendableRecordBatchStream> {
        let mut batches = self.places.execute(partition, context.clone())?;
        let (by, schema) = (self.by.clone(), self.schema());
        let (skip, rows) = (self.skip, self.rows);
        let of = schema.clone();
        let sorted = async move {
            let held = MemoryConsumer::new("sorted places").register(context.memory_pool());
            let mut kept: Vec<Vec<ArrayRef>> = vec![Vec::new(); by.len() + 2];
            while let Some(batch) = batches.try_next().await? {
                let [.., file, row] = batch.columns() else {
                    return Err(lost());
                };
                let mut pieces = Vec::with_capacity(kept.len());
                for key in &by {
                    pieces.push(key.expr.evaluate(&batch)?.into_array(batch.num_rows())?);
                }
                pieces.extend([file.clone(), row.clone()]);
                for (column, piece) in kept.iter_mut().zip(pieces) {
                    held.try_grow(piece.get_array_memory_size())?;
                    column.push(piece);
                }
            }
            sorted(kept, &by, skip, rows, of)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            stream::once(sorted).boxed(),
        )))
    }
}

/// The last two of these columns, in the order of the others.
fn sorted(
    kept: Vec<Vec<ArrayRef>>,
    by: &LexOrdering,
    skip: usize,
    rows: usize,
    schema: SchemaRef,
) -> Planned<RecordBatch> {
    let mut whole = Vec::with_capacity(kept.len());
    // One after another: what it was made of goes before the next one is made.
    for pieces in kept {
        let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
        if pieces.is_empty() {
            return Ok(RecordBatch::new_empty(schema));
        }
        whole.push(concat(&pieces)?);
    }
    let keys = whole.iter().zip(by);
    let keys = keys.map(|(values, key)| SortColumn {
        values: values.clone(),
        options: Some(key.options),
    });
    let order = lexsort_to_indices(&keys.collect::<Vec<_>>(), Some(skip.saturating_add(rows)))?;
    let skip = skip.min(order.len());
    let order = order.slice(skip, rows.min(order.len() - skip));
    let places = whole.iter().skip(by.len());
    let places = places.map(|column| take(column, &order, None));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(order.len()));
    Ok(RecordBatch::try_new_with_options(schema, places, &options)?)
}
