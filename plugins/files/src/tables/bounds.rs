//! The least and the greatest value of each batch of a column that is kept, by which a filter passes over batches as it does over pages of a file.

use datafusion::arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result as Planned;
use datafusion::functions_aggregate::min_max::{MaxAccumulator, MinAccumulator};
use datafusion::logical_expr::Accumulator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use std::collections::HashSet;
use std::sync::Arc;

/// Of one column, a value for each batch.
#[derive(Clone, Debug)]
pub struct Bounds {
    least: ArrayRef,
    greatest: ArrayRef,
    nulls: ArrayRef,
}

impl Bounds {
    /// `None` of types that have no order of which everybody thinks alike, and of texts, which may be long.
    pub fn of(batches: &[ArrayRef]) -> Option<Arc<Bounds>> {
        let kind = batches.first()?.data_type();
        let is_ordered = match kind {
            DataType::Date32 | DataType::Timestamp(..) | DataType::Time64(_) => true,
            DataType::Decimal128(..) => true,
            kind => kind.is_integer(),
        };
        if !is_ordered {
            return None;
        }
        let least = |batch: &ArrayRef| {
            let mut least = MinAccumulator::try_new(kind)?;
            least.update_batch(std::slice::from_ref(batch))?;
            least.evaluate()
        };
        let greatest = |batch: &ArrayRef| {
            let mut greatest = MaxAccumulator::try_new(kind)?;
            greatest.update_batch(std::slice::from_ref(batch))?;
            greatest.evaluate()
        };
        let least = batches.iter().map(least).collect::<Planned<Vec<_>>>();
        let greatest = batches.iter().map(greatest).collect::<Planned<Vec<_>>>();
        let nulls = batches.iter().map(|batch| batch.null_count() as u64);
        Some(Arc::new(Bounds {
            least: ScalarValue::iter_to_array(least.ok()?).ok()?,
            greatest: ScalarValue::iter_to_array(greatest.ok()?).ok()?,
            nulls: Arc::new(UInt64Array::from_iter_values(nulls)),
        }))
    }
}

/// Of all columns of a scan, by their names.
#[derive(Debug)]
pub struct AllBounds {
    pub schema: SchemaRef,
    pub columns: Vec<Option<Arc<Bounds>>>,
    pub rows: Vec<usize>,
}

impl AllBounds {
    /// Which batches may have rows for which this holds.
    pub fn with_some(&self, filter: &Arc<dyn PhysicalExpr>) -> Vec<bool> {
        let predicate = PruningPredicateBuilder::new()
            .with_file_schema(self.schema.clone())
            .try_build(filter.clone());
        let some = predicate.and_then(|predicate| predicate.prune(self));
        some.unwrap_or_else(|_| vec![true; self.rows.len()])
    }

    fn of(&self, column: &Column) -> Option<&Arc<Bounds>> {
        let at = self.schema.index_of(&column.name).ok()?;
        self.columns.get(at)?.as_ref()
    }
}

impl PruningStatistics for AllBounds {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        Some(self.of(column)?.least.clone())
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        Some(self.of(column)?.greatest.clone())
    }

    fn num_containers(&self) -> usize {
        self.rows.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        Some(self.of(column)?.nulls.clone())
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let rows = self.rows.iter().map(|rows| *rows as u64);
        Some(Arc::new(UInt64Array::from_iter_values(rows)))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
