//! What stands twice is computed once, but not what can fail in a filter of several conditions.
//!
//! Start reading at [`OnceIfSure`].

use super::fallible::may_fail;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::utils::split_binary_owned;
use datafusion::logical_expr::{Case, Expr, Filter, LogicalPlan, Operator, lit};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// DataFusion's rule that computes once what stands twice, which leaves alone what can fail in a filter of several conditions: it would be computed below
/// the filter, for all rows, since cheap conditions have been put in front of dear ones by then.
#[derive(Debug)]
pub struct OnceIfSure(pub Arc<dyn OptimizerRule + Send + Sync>);

/// What the optimizer has as this rule.
pub const ONCE: &str = "common_sub_expression_eliminate";

impl OptimizerRule for OnceIfSure {
    fn name(&self) -> &str {
        ONCE
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Planned<Transformed<LogicalPlan>> {
        let hidden = filters(plan, |filter| {
            let schema = filter.input.schema().clone();
            let mut all = split_binary_owned(filter.predicate, Operator::And);
            if all.len() > 1 {
                for condition in &mut all {
                    if may_fail(condition, &schema)? {
                        *condition = hidden(std::mem::take(condition));
                    }
                }
            }
            Ok((all, filter.input))
        })?;
        let computed = self.0.rewrite(hidden, config)?;
        computed.map_data(|plan| {
            filters(plan, |filter| {
                let all = split_binary_owned(filter.predicate, Operator::And);
                Ok((all.into_iter().map(shown).collect(), filter.input))
            })
        })
    }
}

/// A part of a `CASE` may not be computed at all, and so is never computed elsewhere.
fn hidden(condition: Expr) -> Expr {
    let always = (Box::new(lit(true)), Box::new(condition));
    Expr::Case(Case::new(None, vec![always], None))
}

/// What was hidden. Where a statement itself says so, it means the same.
fn shown(condition: Expr) -> Expr {
    match condition {
        Expr::Case(Case {
            expr: None,
            mut when_then_expr,
            else_expr: None,
        }) if matches!(&when_then_expr[..], [(when, _)] if **when == lit(true)) => {
            *when_then_expr.remove(0).1
        }
        condition => condition,
    }
}

/// The plan with filters of these conditions.
fn filters(
    plan: LogicalPlan,
    conditions: impl Fn(Filter) -> Planned<(Vec<Expr>, Arc<LogicalPlan>)>,
) -> Planned<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Filter(filter) = node else {
            return Ok(Transformed::no(node));
        };
        let (conditions, input) = conditions(filter)?;
        let all = conditions.into_iter().reduce(Expr::and);
        let all = all.unwrap_or_else(|| lit(true));
        Filter::try_new(all, input).map(|filter| Transformed::yes(LogicalPlan::Filter(filter)))
    })
    .data()
}
