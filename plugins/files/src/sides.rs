//! Which side of a join is kept: of one that only asks whether there is a partner (`IN`, `EXISTS`), the smaller one.
//!
//! DataFusion thinks of rows that a join makes as no more than those of its smaller side, so that what it takes for small may be as much as a
//! whole table: of TPC-H's question 18 it kept all lines of orders, in order to look for five.

use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as Planned;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, PartitionMode};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::union::UnionExec;
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
            if !asks || join.null_aware {
                return Ok(Transformed::no(node));
            }
            let is_tie_enough = join.filter().is_none();
            if !is_smaller(join.right(), join.left(), is_tie_enough)? {
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

/// Whether what is looked for (`right`) is certainly no more than what it is looked for in may be, which is thought to be less. Of as many rows the
/// former has less in them, since it is only compared.
fn is_smaller(
    right: &Arc<dyn ExecutionPlan>,
    left: &Arc<dyn ExecutionPlan>,
    is_tie_enough: bool,
) -> Planned<bool> {
    let (looked_for, kept) = (Most::of(right)?, Most::of(left)?);
    let right = match looked_for.multiplies {
        true => looked_for.rows,
        false => rows(right)?,
    };
    let (Some(right), Some(left), Some(most)) = (right, rows(left)?, kept.rows) else {
        return Ok(false);
    };
    // Nobody knows how much a filter leaves.
    let is_tie_enough = is_tie_enough && !kept.is_filtered;
    let is_thought_less = kept.multiplies && left < most;
    Ok(is_thought_less && (right < most || right == most && is_tie_enough))
}

/// What may come at the most, but for rows that several others are joined to: what the largest of the tables has.
struct Most {
    rows: Option<usize>,
    /// There is a join in it that makes rows of pairs.
    multiplies: bool,
    is_filtered: bool,
}

impl Most {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Planned<Most> {
        let mut sides = Vec::new();
        for side in passed_on(plan) {
            sides.push(Most::of(side)?);
        }
        let is_union = plan.downcast_ref::<UnionExec>().is_some();
        let all: Option<Vec<usize>> = sides.iter().map(|side| side.rows).collect();
        let rows = match all {
            _ if is_total(plan) => Some(1),
            Some(all) if all.is_empty() => rows(plan)?,
            Some(all) if is_union => Some(all.into_iter().fold(0, usize::saturating_add)),
            Some(all) => all.into_iter().max(),
            None => None,
        };
        let rows = match (rows, plan.fetch()) {
            (Some(rows), Some(fetch)) => Some(rows.min(fetch)),
            (rows, fetch) => rows.or(fetch),
        };
        Ok(Most {
            rows,
            multiplies: sides.len() > 1 && !is_union || sides.iter().any(|side| side.multiplies),
            is_filtered: plan.downcast_ref::<FilterExec>().is_some()
                || sides.iter().any(|side| side.is_filtered),
        })
    }
}

/// The inputs whose rows it passes on, each once or with those of others.
fn passed_on(plan: &Arc<dyn ExecutionPlan>) -> Vec<&Arc<dyn ExecutionPlan>> {
    let hash = plan.downcast_ref::<HashJoinExec>();
    let nested = plan.downcast_ref::<NestedLoopJoinExec>();
    let kind = hash
        .map(HashJoinExec::join_type)
        .or(nested.map(NestedLoopJoinExec::join_type));
    let mut inputs = plan.children();
    match kind {
        Some(JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark) => inputs.truncate(1),
        Some(JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark) => {
            inputs.drain(..1);
        }
        // Of the others the values are read.
        None if plan.name() == "ScalarSubqueryExec" => inputs.truncate(1),
        _ => {}
    }
    inputs
}

/// One row of all.
fn is_total(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let aggregate = plan.downcast_ref::<AggregateExec>();
    aggregate.is_some_and(|aggregate| aggregate.group_expr().is_empty())
}

/// As many as are thought to come.
fn rows(plan: &Arc<dyn ExecutionPlan>) -> Planned<Option<usize>> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new())?;
    Ok(statistics.num_rows.get_value().copied())
}
