//! Of rows of which only the first ones are answered (`ORDER BY … LIMIT`) only these are read whole: by what they are sorted and filtered is read
//! of all, with the place of each, and everything else at the places of those that are left.
//!
//! Start reading at [`ReadLate`].

mod rows;
mod sorted;

use crate::guards::scans::{anew, parquet, placed};
use crate::tables::{FILTERED_BYTES_MAX, Footer};
use crate::watch::Watch;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{ScalarValue, Statistics, internal_datafusion_err};
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result as Planned;
use datafusion::parquet::arrow::RowNumber;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use rows::LateRows;
use sorted::SortedPlaces;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The rule that this one stands before: what sorts is above what reads by then, and has told it nothing yet.
pub const BEFORE: &str = "PushdownSort";
/// Rows that are read late: as many as an answer has.
const ROWS_MAX: usize = 10_000;
/// Of how many rows one is answered, at the least. Where it is more, most pages are read whole anyway.
const ONE_OF: usize = 8;

/// A sort of which the first rows are taken hands on their places, by which the rows are read.
#[derive(Debug)]
pub struct ReadLate(pub Arc<Watch>);

impl PhysicalOptimizerRule for ReadLate {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let late = match taken(&node) {
                Some(taken) => late(&taken, &self.0)?,
                None => None,
            };
            Ok(match late {
                Some(late) => Transformed::yes(late),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "read_late"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Rows of a sort that are taken.
struct Taken<'a> {
    sort: &'a SortExec,
    /// How many are left out before them.
    skip: usize,
    rows: usize,
}

/// Of a sort its first rows, or of one that ends with them those from somewhere on (`LIMIT … OFFSET`).
fn taken(node: &Arc<dyn ExecutionPlan>) -> Option<Taken<'_>> {
    let taken = match node.downcast_ref::<GlobalLimitExec>() {
        Some(limit) => {
            let (skip, rows) = (limit.skip(), limit.fetch()?);
            let sort = limit.input().downcast_ref::<SortExec>()?;
            let ends = sort.fetch() == skip.checked_add(rows);
            ends.then_some(Taken { sort, skip, rows })?
        }
        None => {
            let sort = node.downcast_ref::<SortExec>()?;
            let rows = sort.fetch()?;
            Taken {
                sort,
                skip: 0,
                rows,
            }
        }
    };
    (taken.rows <= ROWS_MAX).then_some(taken)
}

/// The same rows, of which most columns are read late; `None` where that would not be less.
fn late(taken: &Taken<'_>, watch: &Arc<Watch>) -> Planned<Option<Arc<dyn ExecutionPlan>>> {
    let Taken { sort, skip, rows } = *taken;
    let filter = sort.input().downcast_ref::<FilterExec>();
    let scan = parquet(filter.map_or(sort.input(), FilterExec::input));
    let Some((config, source)) = scan else {
        return Ok(None);
    };
    let [files] = config.file_groups.as_slice() else {
        return Ok(None);
    };
    let Some(read) = source.projection().filter(|_| config.limit.is_none()) else {
        return Ok(None);
    };
    let partitioning = sort.properties().output_partitioning();
    let schema = source.table_schema();
    // Somebody else asks for a row's number, too (`file_row_index()`).
    let has_others = schema.table_schema().fields().len() != schema.file_schema().fields().len();
    if partitioning.partition_count() != 1 || has_others {
        return Ok(None);
    }

    let read: Vec<ProjectionExpr> = read.iter().cloned().collect();
    // What the sort has of what is read.
    let whole: Vec<usize> = match filter.and_then(|filter| filter.projection().as_ref()) {
        Some(columns) => columns.to_vec(),
        None => (0..read.len()).collect(),
    };
    let asked = filter.map(|filter| collect_columns(filter.predicate()));
    let asked = asked.iter().flatten().map(Column::index);
    let sorted = sort.expr().iter().map(|by| collect_columns(&by.expr));
    let sorted = sorted.flatten().map(|column| whole[column.index()]);
    let first: BTreeSet<usize> = asked.chain(sorted).collect();
    let first: Vec<usize> = first.into_iter().collect();

    let first_read: Vec<ProjectionExpr> = first.iter().map(|at| read[*at].clone()).collect();
    let whole_read: Vec<ProjectionExpr> = whole.iter().map(|at| read[*at].clone()).collect();
    let is_sure = !first_read.iter().any(|column| is_volatile(&column.expr));
    if !is_sure || !is_less(source, files, &first_read, &whole_read, rows) {
        return Ok(None);
    }

    let places = places(config, source, files, first_read)?;
    let places = match filter {
        Some(filter) => filtered(filter, &first, places)?,
        None => places,
    };
    let by = sort.expr().iter().map(|by| {
        let expr = placed(&by.expr, |at| {
            first.iter().position(|read| *read == whole[at])
        })?;
        Ok(PhysicalSortExpr::new(expr, by.options))
    });
    let Some(by) = LexOrdering::new(by.collect::<Planned<Vec<_>>>()?) else {
        return Ok(None);
    };
    let places = first_places(places, by, skip, rows, rows_of(files))?;
    let read = with_columns(config, source, whole_read)?;
    let late = LateRows::new(places, read, sort.properties(), watch.clone());
    Ok(Some(Arc::new(late)))
}

/// Of places, which lie in no order, those of so many rows from somewhere on.
fn first_places(
    places: Arc<dyn ExecutionPlan>,
    by: LexOrdering,
    skip: usize,
    rows: usize,
    of: u64,
) -> Planned<Arc<dyn ExecutionPlan>> {
    let fetch = skip.saturating_add(rows);
    // A few are kept in a heap, which lets most rows go at once.
    if fetch > ROWS_MAX
        && let Some(sorted) = SortedPlaces::new(&places, &by, skip, rows, of)?
    {
        return Ok(Arc::new(sorted));
    }
    let places = Arc::new(SortExec::new(by, places).with_fetch(Some(fetch)));
    Ok(match skip {
        0 => places,
        skip => Arc::new(GlobalLimitExec::new(places, skip, Some(rows))),
    })
}

/// Rows of all files; more than there can be where a file does not say.
fn rows_of(files: &FileGroup) -> u64 {
    let rows = files.iter().map(|file| {
        let rows = file.extension::<Footer>()?.0.file_metadata().num_rows();
        u64::try_from(rows).ok()
    });
    let rows: Option<u64> = rows.sum();
    rows.unwrap_or(u64::MAX)
}

/// Whether few of many rows are answered, and what is read late is more than half of what is read before.
fn is_less(
    source: &ParquetSource,
    files: &FileGroup,
    first: &[ProjectionExpr],
    whole: &[ProjectionExpr],
    fetch: usize,
) -> bool {
    let columns = |read: &[ProjectionExpr]| {
        let columns = read.iter().flat_map(|column| collect_columns(&column.expr));
        columns
            .map(|column| column.index())
            .collect::<BTreeSet<_>>()
    };
    let mut first = columns(first);
    first.extend(
        source
            .filter()
            .iter()
            .flat_map(collect_columns)
            .map(|column| column.index()),
    );
    let whole = columns(whole);
    let (mut rows, mut before, mut late) = (0u64, 0u64, 0u64);
    for file in files.iter() {
        let Some(Footer(footer)) = file.extension::<Footer>() else {
            return false;
        };
        let schema = footer.file_metadata().schema_descr();
        for group in footer.row_groups() {
            let mut of_group = 0;
            for (leaf, column) in group.columns().iter().enumerate() {
                let bytes = u64::try_from(column.uncompressed_size()).unwrap_or(0);
                let root = schema.get_column_root_idx(leaf);
                if first.contains(&root) {
                    before = before.saturating_add(bytes);
                } else if whole.contains(&root) {
                    late = late.saturating_add(bytes);
                }
                if whole.contains(&root) {
                    of_group = bytes.saturating_add(of_group);
                }
            }
            // Its rows may be one of each page, all of which are held then.
            if of_group > FILTERED_BYTES_MAX {
                return false;
            }
            rows = rows.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0));
        }
        // Rows of a file are numbered in 32 bits here.
        if u32::try_from(footer.file_metadata().num_rows()).is_err() {
            return false;
        }
    }
    rows / ONE_OF as u64 >= fetch as u64 && late > before / 2
}

/// What reads these columns of all rows, and behind them where each row lies: the number of its file, and its own in that.
fn places(
    config: &FileScanConfig,
    source: &ParquetSource,
    files: &FileGroup,
    mut columns: Vec<ProjectionExpr>,
) -> Planned<Arc<dyn ExecutionPlan>> {
    let file_schema = source.table_schema().file_schema();
    let unused = |name: &str| {
        let mut name = name.to_owned();
        while file_schema.field_with_name(&name).is_ok() {
            name.push('_');
        }
        name
    };
    let (file, row) = (unused("file"), unused("row"));
    let row_field = Field::new(&row, DataType::Int64, false).with_extension_type(RowNumber);
    let schema = TableSchema::builder(file_schema.clone())
        .with_table_partition_cols(vec![Arc::new(Field::new(&file, DataType::Int64, false))])
        .with_virtual_columns(vec![Arc::new(row_field)])
        .build();
    let mut plain = anew(source, schema);
    if let Some(predicate) = source.filter() {
        plain = plain.with_predicate(predicate);
    }
    let behind = file_schema.fields().len();
    for (name, at) in [(file, behind), (row, behind + 1)] {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(&name, at));
        columns.push(ProjectionExpr::new(column, name));
    }
    let files = files.iter().enumerate().map(|(number, file)| {
        let number = ScalarValue::Int64(i64::try_from(number).ok());
        file.clone().with_partition_values(vec![number])
    });
    let statistics = Statistics {
        num_rows: config.statistics().num_rows,
        ..Statistics::new_unknown(plain.table_schema().table_schema())
    };
    let config = FileScanConfigBuilder::from(config.clone())
        .with_source(projected(&plain, columns)?)
        .with_file_groups(vec![FileGroup::new(files.collect())])
        .with_statistics(statistics)
        .build();
    Ok(DataSourceExec::from_data_source(config))
}

/// The same filter, of what is read before.
fn filtered(
    filter: &FilterExec,
    first: &[usize],
    places: Arc<dyn ExecutionPlan>,
) -> Planned<Arc<dyn ExecutionPlan>> {
    let place = |at| first.iter().position(|read| *read == at);
    let predicate = placed(filter.predicate(), place)?;
    let filter = FilterExecBuilder::new(predicate, places)
        .with_default_selectivity(filter.default_selectivity())
        .with_batch_size(filter.batch_size())
        .with_fetch(filter.fetch())
        .build()?;
    Ok(Arc::new(filter))
}

/// What reads these columns of whatever rows are then asked for, in the order in which they lie.
fn with_columns(
    config: &FileScanConfig,
    source: &ParquetSource,
    columns: Vec<ProjectionExpr>,
) -> Planned<FileScanConfig> {
    let plain = anew(source, source.table_schema().clone());
    let config = FileScanConfigBuilder::from(config.clone())
        .with_source(projected(&plain, columns)?)
        .with_preserve_order(true)
        .build();
    Ok(config)
}

fn projected(source: &ParquetSource, columns: Vec<ProjectionExpr>) -> Planned<Arc<dyn FileSource>> {
    let projected = source.try_pushdown_projection(&ProjectionExprs::new(columns))?;
    projected.ok_or_else(|| internal_datafusion_err!("Parquet is read without a projection"))
}
