//! Batches are computed some rows at a time: a few bytes of a file may be millions of rows, or a large text in each of them. Between two
//! pieces the time and the memory are looked at.

use crate::errors;
use crate::tables::{Kept, Reads};
use crate::watch::{ROWS, Watch};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RunArray};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::datatypes::{DataType, Int16Type, Int32Type, Int64Type, RunEndIndexType};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as Planned;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Rows of nothing, which are only counted.
const EMPTY_ROWS: usize = 1 << 20;
/// Texts of the rows of a piece rows, each as often as it is there.
const BYTES: u64 = 16 << 20;
/// Rows whose lengths are added up before it is asked whether that is too much.
const RUN: usize = 256;

/// A step of a plan whose batches are handed on in pieces.
#[derive(Debug)]
pub struct Pieces {
    input: Arc<dyn ExecutionPlan>,
    watch: Arc<Watch>,
}

impl Pieces {
    pub fn new(input: Arc<dyn ExecutionPlan>, watch: Arc<Watch>) -> Pieces {
        Pieces { input, watch }
    }
}

impl DisplayAs for Pieces {
    fn fmt_as(&self, _kind: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pieces")
    }
}

impl ExecutionPlan for Pieces {
    fn name(&self) -> &str {
        "Pieces"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        let input = children.pop().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(Pieces::new(input, self.watch.clone())))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Planned<SendableRecordBatchStream> {
        let batches = self.input.execute(partition, context.clone())?;
        let (schema, watch) = (batches.schema(), self.watch.clone());
        let reads = context.session_config().get_extension::<Reads>();
        let kept = context.session_config().get_extension::<Kept>();
        let look = move || {
            let counted = context.memory_pool().reserved();
            let read = reads.as_ref().map_or(0, |reads| reads.reserved());
            let kept = kept.as_ref().map_or(0, |kept| kept.bytes());
            watch.clock.check()?;
            watch.memory.check(counted + read + kept)
        };
        let look = Arc::new(look);
        let pieces = batches.map_ok(move |batch| {
            let look = look.clone();
            let pieces = Cut::new(batch).map(move |piece| {
                look().map_err(errors::through)?;
                Ok(piece)
            });
            stream::iter(pieces)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            pieces.try_flatten().boxed(),
        )))
    }
}

/// A batch, piece by piece.
struct Cut {
    batch: RecordBatch,
    /// Of columns in which each row has its own length.
    views: Vec<ScalarBuffer<u128>>,
    /// What all others may have in a row, at the most.
    width: u64,
    at: usize,
}

impl Cut {
    fn new(batch: RecordBatch) -> Cut {
        let (mut all_views, mut width) = (Vec::new(), 0);
        for column in batch.columns() {
            match views(column) {
                Some(views) => all_views.push(views),
                None => width += longest(column) as u64,
            }
        }
        Cut {
            views: all_views,
            width,
            batch,
            at: 0,
        }
    }

    fn rows(&self) -> usize {
        let left = self.batch.num_rows() - self.at;
        if self.batch.num_columns() == 0 {
            return left.min(EMPTY_ROWS);
        }
        let left = left.min(ROWS);
        let mut bytes = 0u64;
        for run in (0..left).step_by(RUN) {
            let rows = self.at + run..self.at + left.min(run + RUN);
            let others = self.width.saturating_mul(rows.len() as u64);
            let views = self.views.iter().map(|views| &views[rows.clone()]);
            let in_views: u64 = views
                .map(|views| views.iter().map(length).sum::<u64>())
                .sum();
            let behind = bytes.saturating_add(others).saturating_add(in_views);
            if behind > BYTES {
                return (run + self.fits(rows, bytes)).max(1);
            }
            bytes = behind;
        }
        left
    }

    /// How many of these rows have no more than is left beside so many bytes.
    fn fits(&self, rows: Range<usize>, mut bytes: u64) -> usize {
        let mut fits = 0;
        for row in rows {
            let views = self.views.iter();
            bytes += self.width + views.map(|views| length(&views[row])).sum::<u64>();
            if bytes > BYTES {
                break;
            }
            fits += 1;
        }
        fits
    }
}

impl Iterator for Cut {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.at == self.batch.num_rows() {
            return None;
        }
        let rows = self.rows();
        let piece = self.batch.slice(self.at, rows);
        self.at += rows;
        Some(piece)
    }
}

/// What each row has in a column of views.
fn views(column: &ArrayRef) -> Option<ScalarBuffer<u128>> {
    match column.data_type() {
        DataType::Utf8View => Some(column.as_string_view().views().clone()),
        DataType::BinaryView => Some(column.as_binary_view().views().clone()),
        _ => None,
    }
}

/// The length of a view is in its lowest 32 bits.
fn length(view: &u128) -> u64 {
    u64::from(*view as u32)
}

/// The longest text of those that a column has once for many rows.
fn longest(column: &ArrayRef) -> usize {
    fn of_runs<R: RunEndIndexType>(column: &ArrayRef) -> usize {
        let runs = column.as_any().downcast_ref::<RunArray<R>>();
        runs.map_or(0, |runs| longest_of(runs.values()))
    }
    match column.data_type() {
        DataType::Dictionary(..) => column
            .as_any_dictionary_opt()
            .map_or(0, |dictionary| longest_of(dictionary.values())),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => of_runs::<Int16Type>(column),
            DataType::Int32 => of_runs::<Int32Type>(column),
            _ => of_runs::<Int64Type>(column),
        },
        _ => 0,
    }
}

fn longest_of(values: &ArrayRef) -> usize {
    if let Some(views) = views(values) {
        return views
            .iter()
            .map(|view| length(view) as usize)
            .max()
            .unwrap_or(0);
    }
    match values.data_type() {
        DataType::Utf8 => widest(values.as_string::<i32>().value_offsets()),
        DataType::Binary => widest(values.as_binary::<i32>().value_offsets()),
        DataType::LargeUtf8 => widest(values.as_string::<i64>().value_offsets()),
        DataType::LargeBinary => widest(values.as_binary::<i64>().value_offsets()),
        DataType::FixedSizeBinary(size) => usize::try_from(*size).unwrap_or(0),
        // Of lists and structures all that they hold.
        _ => values.get_array_memory_size() / values.len().max(1),
    }
}

fn widest<O: Copy + Into<i64>>(offsets: &[O]) -> usize {
    let widths = offsets
        .windows(2)
        .map(|pair| pair[1].into() - pair[0].into());
    widths
        .max()
        .and_then(|width| usize::try_from(width).ok())
        .unwrap_or(0)
}
