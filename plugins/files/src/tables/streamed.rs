//! Tables that are read from front to back, a batch at a time: texts and Arrow files.

use super::{Known, batch_rows};
use crate::errors;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result as Planned;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use souk_sdk::Error;
use std::fmt::Debug;
use std::sync::Arc;

pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch, Error>> + Send>;

/// Files that are read from front to back.
pub trait Streamed: Debug + Send + Sync + 'static {
    /// The columns of these numbers, in this order.
    fn batches(&self, columns: &[usize]) -> Result<Batches, Error>;
}

/// `row_bytes`: what a row has of the file, on an average.
pub fn known(
    schema: SchemaRef,
    source: Arc<dyn Streamed>,
    rows: Option<u64>,
    row_bytes: u64,
) -> Known {
    Known {
        provider: Arc::new(StreamedTable { schema, source }),
        rows,
        batch_rows: batch_rows(row_bytes),
    }
}

#[derive(Debug)]
struct StreamedTable {
    schema: SchemaRef,
    source: Arc<dyn Streamed>,
}

#[async_trait::async_trait]
impl TableProvider for StreamedTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.schema.fields().len()).collect();
        let columns: Vec<usize> = projection.cloned().unwrap_or_else(all);
        let schema = Arc::new(self.schema.project(&columns)?);
        let pass: Arc<dyn PartitionStream> = Arc::new(Pass {
            schema: schema.clone(),
            columns,
            source: self.source.clone(),
        });
        let plan = StreamingTableExec::try_new(schema, vec![pass], None, [], false, limit)?;
        Ok(Arc::new(plan))
    }
}

/// One reading of some of the columns.
#[derive(Debug)]
struct Pass {
    schema: SchemaRef,
    columns: Vec<usize>,
    source: Arc<dyn Streamed>,
}

impl PartitionStream for Pass {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = match self.source.batches(&self.columns) {
            Ok(batches) => batches,
            Err(error) => Box::new(std::iter::once(Err(error))),
        };
        let batches = batches.map(|batch| batch.map_err(errors::through));
        let stream = futures_util::stream::iter(batches);
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), stream))
    }
}
