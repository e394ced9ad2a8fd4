//! Which side of a join is kept: of one that only asks whether there is a partner (`IN`, `EXISTS`), the smaller one.
//!
//! DataFusion thinks of rows that a join makes as no more than those of its smaller side, so that what it takes for small may be as much as a
//! whole table: of TPC-H's question 18 it kept all lines of orders, in order to look for five.

use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as Planned;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use std::sync::Arc;

/// The rule that it stands behind, and in front of whatever is told the other side about the one that is kept.
pub const BEHIND: &str = "join_selection";

#[derive(Debug)]
pub struct SmallerSide;

impl PhysicalOptimizerRule for SmallerSide {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(join) = node.downcast_ref::<HashJoinExec>() else {
                return Ok(Transformed::no(node));
            };
            let asks = matches!(
                join.join_type(),
                JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark
            );
            if !asks || join.null_aware || !has_join(join.left())? {
                return Ok(Transformed::no(node));
            }
            let is_smaller = match (most(join.left())?, rows(join.right())?) {
                // Of as many rows those that are only compared have less in them.
                (Some(left), Some(right)) if join.filter().is_none() => right <= left,
                (Some(left), Some(right)) => right < left,
                _ => false,
            };
            if !is_smaller {
                return Ok(Transformed::no(node));
            }
            let swapped = join.swap_inputs(PartitionMode::CollectLeft)?;
            Ok(Transformed::yes(swapped))
        })
        .data()
    }

    fn name(&self) -> &str {
        "smaller_side"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn has_join(plan: &Arc<dyn ExecutionPlan>) -> Planned<bool> {
    plan.exists(|node| Ok(node.children().len() > 1))
}

/// What the largest of the tables below has.
fn most(plan: &Arc<dyn ExecutionPlan>) -> Planned<Option<usize>> {
    let mut most = Some(0);
    plan.apply(|node| {
        if node.children().is_empty() {
            most = most.zip(rows(node)?).map(|(most, rows)| rows.max(most));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(most)
}

/// As many as are thought to come.
fn rows(plan: &Arc<dyn ExecutionPlan>) -> Planned<Option<usize>> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
    Ok(statistics.num_rows.get_value().copied())
}
