//! How a plan is gone through, one part of an expression after the other.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The plan with each part of its expressions, and of those of its subqueries, as `rewritten` makes it, inner ones first. It is given the columns
/// that there are. What a column is called stays.
pub fn rewrite(
    plan: LogicalPlan,
    rewritten: impl Fn(Expr, &DFSchema) -> Planned<Transformed<Expr>>,
) -> Planned<LogicalPlan> {
    let mut has_changed = false;
    plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expression| {
            let name = names.save(&expression);
            let expression = expression.transform_up(|part| rewritten(part, &schema))?;
            Ok(expression.update_data(|expression| name.restore(expression)))
        })?;
        has_changed |= node.transformed;
        match has_changed {
            // What stands above it is told the types that there are now.
            true => node.map_data(LogicalPlan::recompute_schema),
            false => Ok(node),
        }
    })
    .data()
}
