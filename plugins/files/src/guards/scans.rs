//! What is computed where a file of Parquet is read is taken out of there, if a filter stands above it.
//!
//! DataFusion moves what is selected below a filter, and from there into what reads the file. Where the row groups are too large to be filtered
//! while they are read (`tables::parquet`), that would compute it of all rows.

use super::first::is_read;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
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
    let Some((config, source)) = parquet(scan) else {
        return Ok(None);
    };
    let projection = config.file_source().projection();
    let Some(projection) = projection.filter(|all| !all.iter().all(is_read_there)) else {
        return Ok(None);
    };
    let columns = projection.column_indices();
    let mut computed = Vec::new();
    for column in projection.iter() {
        let place = |at| columns.iter().position(|column| *column == at);
        let of_columns = placed(&column.expr, place)?;
        computed.push(ProjectionExpr::new(of_columns, column.alias.clone()));
    }
    let mut plain = anew(source, source.table_schema().clone());
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

/// What is read of which files, if this reads Parquet.
pub fn parquet(scan: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &ParquetSource)> {
    let scan = scan.downcast_ref::<DataSourceExec>()?;
    let config = scan.data_source().downcast_ref::<FileScanConfig>()?;
    let source = config.file_source().downcast_ref::<ParquetSource>()?;
    Some((config, source))
}

/// What reads the same files in the same way: all columns, and all rows.
pub fn anew(source: &ParquetSource, schema: TableSchema) -> ParquetSource {
    let plain = ParquetSource::new(schema)
        .with_table_parquet_options(source.table_parquet_options().clone());
    match source.parquet_file_reader_factory() {
        Some(factory) => plain.with_parquet_file_reader_factory(factory.clone()),
        None => plain,
    }
}

/// Of a structure a field is read alone.
fn is_read_there(column: &ProjectionExpr) -> bool {
    let call = column.expr.downcast_ref::<ScalarFunctionExpr>();
    is_read(column) || call.is_some_and(|call| call.name() == "get_field")
}

/// The same of rows in which the columns have these places.
pub fn placed(
    expr: &Arc<dyn PhysicalExpr>,
    place: impl Fn(usize) -> Option<usize>,
) -> Planned<Arc<dyn PhysicalExpr>> {
    let placed = expr.clone().transform_up(|part| {
        let Some(column) = part.downcast_ref::<Column>() else {
            return Ok(Transformed::no(part));
        };
        let Some(at) = place(column.index()) else {
            return internal_err!("{column} is not read");
        };
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(column.name(), at));
        Ok(Transformed::yes(column))
    });
    placed.data()
}
