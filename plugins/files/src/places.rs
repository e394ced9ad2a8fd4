//! Whether it matters to a statement where its rows are read: from their file, or from what is kept of it ([`crate::tables::Kept`]).

use crate::guards;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Functions that Parquet's reader answers: where in which file a row lies.
const OF_FILES: [&str; 2] = ["file_row_index", "input_file_name"];

/// Whether it asks for such a place; or computes what can fail of rows of which fewer are read from a file: those that a sort leaves ([`crate::late`]), and those
/// of pages and row groups that a sort or a join has found to be behind.
pub fn matter(plan: &LogicalPlan) -> Planned<bool> {
    let (mut asks, mut may_fail, mut reads_less) = (false, false, false);
    plan.apply_with_subqueries(|node| {
        reads_less |= matches!(
            node,
            LogicalPlan::Join(_) | LogicalPlan::Limit(_) | LogicalPlan::Sort(_)
        );
        let is_of_rows = matches!(
            node,
            LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::TableScan(_)
        );
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expression| {
            asks |= expression.exists(|part| Ok(is_place(part)))?;
            may_fail |= is_of_rows && guards::may_fail(expression, &schema)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(asks || may_fail && reads_less)
}

fn is_place(part: &Expr) -> bool {
    match part {
        Expr::ScalarFunction(call) => OF_FILES.contains(&call.name()),
        _ => false,
    }
}
