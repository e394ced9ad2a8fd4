//! What a subquery answers, compared as what it is: spans of time, and moments of which one side is in nanoseconds and the other is not.
//!
//! Start reading at [`listed`].

use super::moments::is_asked;
use super::spans::{are_spans, span};
use crate::reaches::{self, in_nanos};
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::{InSubquery, SetComparison};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlanBuilder, Subquery};
use std::sync::Arc;

/// `value IN (SELECT …)`.
pub fn listed(set: &InSubquery, schema: &DFSchema) -> Option<Expr> {
    let (side, answers) = alike(&set.expr, &set.subquery, schema)?;
    let set = InSubquery::new(Box::new(side), answers, set.negated);
    Some(Expr::InSubquery(set))
}

/// `value > ALL (SELECT …)`.
pub fn quantified(set: &SetComparison, schema: &DFSchema) -> Option<Expr> {
    let (side, answers) = alike(&set.expr, &set.subquery, schema)?;
    let set = SetComparison::new(Box::new(side), answers, set.op, set.quantifier);
    Some(Expr::SetComparison(set))
}

/// Both sides as numbers of nanoseconds. `None` where DataFusion compares them right.
fn alike(side: &Expr, subquery: &Subquery, schema: &DFSchema) -> Option<(Expr, Subquery)> {
    let is = side.get_type(schema).ok()?;
    let plan = subquery.subquery.as_ref();
    let kind = plan.schema().fields().first()?.data_type().clone();
    let column = Expr::Column(plan.schema().columns().into_iter().next()?);
    let (side, answer) = if are_spans(&is, &kind) {
        (span(side, &is), span(&column, &kind))
    } else if reaches::differ(&is, &kind) && !is_asked(side) {
        (in_nanos(side, &is)?, in_nanos(&column, &kind)?)
    } else {
        return None;
    };
    let plan = LogicalPlanBuilder::from(plan.clone()).project([answer]);
    let plan = plan.ok()?.build().ok()?;
    Some((side, subquery.with_plan(Arc::new(plan))))
}
