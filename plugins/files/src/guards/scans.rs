//! What is computed where a file of Parquet is read is taken out of there, if a filter stands above it.
//!
//! DataFusion moves what is selected below a filter, and from there into what reads the file. Where the row groups are too large to be filtered
//! while they are read (`tables::parquet`), that would compute it of all rows.

use super::first::is_read;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result as Planned;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExpr;
use std::sync::Arc;

/// What is computed, and the step that hands on the rows of which it is.
type Computed = (Vec<ProjectionExpr>, Arc<dyn ExecutionPlan>);

/// What is computed while a file is read, and what reads the columns for that; `None` where nothing is.
pub fn apart(scan: &Arc<dyn ExecutionPlan>) -> Planned<Option<Computed>> {
    let scan = scan.downcast_ref::<DataSourceExec>();
    let data = scan.map(DataSourceExec::data_source);
    let Some(config) = data.and_then(|data| data.downcast_ref::<FileScanConfig>()) else {
        return Ok(None);
    };
    let Some(source) = config.file_source().downcast_ref::<ParquetSource>() else {
        return Ok(None);
    };
    let projection = config.file_source().projection();
    let Some(projection) = projection.filter(|all| !all.iter().all(is_read_there)) else {
        return Ok(None);
    };
    let columns = projection.column_indices();
    let mut computed = Vec::new();
    for column in projection.iter() {
        let of_columns = among(&column.expr, &columns)?;
        computed.push(ProjectionExpr::new(of_columns, column.alias.clone()));
    }
    let mut plain = ParquetSource::new(config.file_source().table_schema().clone())
        .with_table_parquet_options(source.table_parquet_options().clone());
    if let Some(factory) = source.parquet_file_reader_factory() {
        plain = plain.with_parquet_file_reader_factory(factory.clone());
    }
    if let Some(predicate) = source.filter() {
        plain = plain.with_predicate(predicate);
    }
    let config = FileScanConfigBuilder::from(config.clone())
        .with_source(Arc::new(plain))
        .with_projection_indices(Some(columns))?
        .build();
    let plain: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(config);
    Ok(Some((computed, plain)))
}

/// Of a structure a field is read alone.
fn is_read_there(column: &ProjectionExpr) -> bool {
    let call = column.expr.downcast_ref::<ScalarFunctionExpr>();
    is_read(column) || call.is_some_and(|call| call.name() == "get_field")
}

/// The same, of rows that have only these columns of the table.
fn among(expr: &Arc<dyn PhysicalExpr>, columns: &[usize]) -> Planned<Arc<dyn PhysicalExpr>> {
    let placed = expr.clone().transform_up(|part| {
        let Some(column) = part.downcast_ref::<Column>() else {
            return Ok(Transformed::no(part));
        };
        // All columns that it has are among them.
        let at = columns.iter().position(|at| *at == column.index());
        let column = Column::new(column.name(), at.unwrap_or_default());
        let column: Arc<dyn PhysicalExpr> = Arc::new(column);
        Ok(Transformed::yes(column))
    });
    placed.data()
}
