//! Whether it matters to a statement where its rows are read: from their file, or from what is kept of it ([`crate::tables::Kept`]).

use crate::guards;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Functions that Parquet's reader answers: where in which file a row lies.
const OF_FILES: [&str; 2] = ["file_row_index", "input_file_name"];

/// Whether it asks for such a place; or computes what can fail of rows of which fewer are read from a file: those that a sort leaves ([`crate::late`]), and those
/// of pages and row groups that a sort, a join or a `min` has found to be behind. (Of an aggregate what it is given: a sum that is too large for its type in a group
/// that a join leaves out may be told from memory, and not from the file.)
pub fn matter(plan: &LogicalPlan) -> Planned<bool> {
    let (mut asks, mut may_fail, mut reads_less) = (false, false, false);
    plan.apply_with_subqueries(|node| {
        reads_less |= match node {
            LogicalPlan::Join(_) | LogicalPlan::Limit(_) | LogicalPlan::Union(_) => true,
            LogicalPlan::Sort(sort) => sort.fetch.is_some(),
            _ => false,
        };
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expression| {
            asks |= expression.exists(|part| Ok(is_place(part)))?;
            for part in computed(expression) {
                may_fail |= guards::may_fail(part, &schema)?;
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(asks || may_fail && reads_less)
}

/// What is computed of rows for an expression: of aggregates and windows what they are given, filtered and sorted by.
fn computed(expression: &Expr) -> Vec<&Expr> {
    fn keys(keys: &[Sort]) -> impl Iterator<Item = &Expr> {
        keys.iter().map(|key| &key.expr)
    }
    match expression {
        Expr::Alias(alias) => computed(&alias.expr),
        Expr::AggregateFunction(function) => {
            let params = &function.params;
            let filter = params.filter.iter().map(|filter| filter.as_ref());
            let given = params.args.iter().chain(filter);
            given.chain(keys(&params.order_by)).collect()
        }
        Expr::WindowFunction(function) => {
            let params = &function.params;
            let given = params.args.iter().chain(&params.partition_by);
            given.chain(keys(&params.order_by)).collect()
        }
        other => vec![other],
    }
}

fn is_place(part: &Expr) -> bool {
    match part {
        Expr::ScalarFunction(call) => OF_FILES.contains(&call.name()),
        _ => false,
    }
}
