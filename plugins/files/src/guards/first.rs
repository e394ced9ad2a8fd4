//! What is selected is computed above a filter, of the rows that it leaves.
//!
//! Start reading at [`FilterFirst`].

use super::scans;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as Planned;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr, update_expr};
use std::sync::Arc;

/// A filter stays below what is computed of the rows that it leaves.
#[derive(Debug)]
pub struct FilterFirst;

impl PhysicalOptimizerRule for FilterFirst {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(match filtered_first(&node)? {
                Some(node) => Transformed::yes(node),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "filter_first"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The same with the filter below; `None` where nothing is computed below it.
fn filtered_first(node: &Arc<dyn ExecutionPlan>) -> Planned<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = node.downcast_ref::<FilterExec>() else {
        return Ok(None);
    };
    let projection = filter.input().downcast_ref::<ProjectionExec>();
    let below = match projection {
        Some(projection) => Some((projection.expr().to_vec(), projection.input().clone())),
        None => scans::apart(filter.input())?,
    };
    let Some((computed, input)) = below else {
        return Ok(None);
    };
    // What the filter itself is asked of is not computed once more.
    let asked = collect_columns(filter.predicate());
    let mut asked = asked.iter().map(|column| computed.get(column.index()));
    if !asked.all(|column| column.is_some_and(is_read)) || computed.iter().all(is_read) {
        return Ok(None);
    }
    let Some(predicate) = update_expr(filter.predicate(), &computed, true)? else {
        return Ok(None);
    };
    let below = FilterExecBuilder::new(predicate, input)
        .with_default_selectivity(filter.default_selectivity())
        .with_batch_size(filter.batch_size())
        .with_fetch(filter.fetch())
        .build()?;
    let below: Arc<dyn ExecutionPlan> = Arc::new(below);
    let below = filtered_first(&below)?.unwrap_or(below);
    let left: Vec<ProjectionExpr> = match filter.projection() {
        Some(columns) => columns.iter().map(|at| computed[*at].clone()).collect(),
        None => computed,
    };
    let above = ProjectionExec::try_new_with_schema_metadata(left, below, &node.schema())?;
    Ok(Some(Arc::new(above)))
}

pub fn is_read(column: &ProjectionExpr) -> bool {
    let column = &column.expr;
    column.downcast_ref::<Column>().is_some() || column.downcast_ref::<Literal>().is_some()
}
