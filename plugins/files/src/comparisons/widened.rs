//! A moment that is cast to a finer unit, beside one that is of no row and finer than it was.
//!
//! DataFusion takes the cast off and puts the other one into the coarser unit, by which it is cut: of a column of milliseconds
//! `CAST(at AS timestamp) < '2026-01-01 00:00:00.0005'` leaves out the first moment of the year. Where a column itself stands beside what is
//! written down, the file above has seen to it. A cast may come there from a subquery or a `UNION`, when filters are moved to the tables: it is
//! looked for before each round of the optimizer, and after the last. What is computed (`now() - INTERVAL '1 hour'`) DataFusion computes in the
//! very step that takes the cast off, so that it is computed here before.
//!
//! Start reading at [`Widened`].

use super::moments::{moment, units};
use super::places::beside;
use super::{is_comparison, within, written};
use crate::plans;
use crate::reaches::is_utc;
use crate::types::per_second;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::simplify_expressions::{ExprSimplifier, SimplifyContext};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rule of the optimizer, which comes before all others.
#[derive(Debug)]
pub struct Widened;

impl OptimizerRule for Widened {
    fn name(&self) -> &str {
        "widened_moments"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Planned<Transformed<LogicalPlan>> {
        exact(plan, config)
    }
}

/// What is computed of no row, if it can be. A value that is drawn anew each time cannot.
type Computed<'c> = &'c dyn Fn(&Expr) -> Option<ScalarValue>;

/// The plan with such moments compared in the unit that they had. What a column is called stays.
pub fn exact(plan: LogicalPlan, config: &dyn OptimizerConfig) -> Planned<Transformed<LogicalPlan>> {
    let context = SimplifyContext::builder()
        .with_config_options(config.options())
        .with_query_execution_start_time(config.query_execution_start_time())
        .build();
    let simplifier = ExprSimplifier::new(context);
    let computed = |value: &Expr| {
        if !plans::is_of_no_row(value) {
            return None;
        }
        match simplifier.simplify(value.clone()) {
            Ok(Expr::Literal(value, _)) => Some(value),
            _ => None,
        }
    };
    plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        node.map_expressions(|expression| {
            let name = names.save(&expression);
            let expression = expression.transform_up(|part| rewritten(part, &schema, &computed))?;
            Ok(match expression.transformed {
                true => expression.update_data(|expression| name.restore(expression)),
                false => expression,
            })
        })
    })
}

fn rewritten(part: Expr, schema: &DFSchema, computed: Computed<'_>) -> Planned<Transformed<Expr>> {
    let instead = match &part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            compared(left, *op, right, schema, computed)
        }
        Expr::Between(between) => within(between, |side, operator, end| {
            compared(side, operator, end, schema, computed)
        }),
        Expr::InList(list) => listed(list, schema, computed),
        _ => None,
    };
    Ok(match instead {
        Some(instead) => Transformed::yes(instead),
        None => Transformed::no(part),
    })
}

/// The comparison to be made instead; `None` where it is another one, or nothing is cut.
fn compared(
    left: &Expr,
    operator: Operator,
    right: &Expr,
    schema: &DFSchema,
    computed: Computed<'_>,
) -> Option<Expr> {
    let one = |side: &Expr, operator: Operator, value: &Expr| {
        let coarse = Coarse::of(side, schema)?;
        beside(coarse.moment, operator, coarse.before(value, computed)?)
    };
    one(left, operator, right).or_else(|| one(right, operator.swap()?, left))
}

/// A list without what no moment of the unit is.
fn listed(list: &InList, schema: &DFSchema, computed: Computed<'_>) -> Option<Expr> {
    let coarse = Coarse::of(&list.expr, schema)?;
    let (mut values, mut last) = (Vec::with_capacity(list.list.len()), None);
    for value in &list.list {
        match coarse.before(value, computed) {
            Some(before) => last = Some(before),
            None => values.push(value.clone()),
        }
    }
    let last = last?;
    match (values.is_empty(), list.negated) {
        (true, false) => beside(coarse.moment, Operator::Eq, last),
        (true, true) => beside(coarse.moment, Operator::NotEq, last),
        (false, _) => Some(Expr::InList(InList::new(
            list.expr.clone(),
            values,
            list.negated,
        ))),
    }
}

/// A moment without the casts that make it finer.
struct Coarse<'e> {
    moment: &'e Expr,
    unit: TimeUnit,
    zone: Option<Arc<str>>,
    /// What it is cast to, and the unit of that.
    wanted: DataType,
    finer: TimeUnit,
}

impl<'e> Coarse<'e> {
    fn of(side: &'e Expr, schema: &DFSchema) -> Option<Coarse<'e>> {
        let Expr::Cast(Cast { field, .. }) = side else {
            return None;
        };
        let wanted = field.data_type().clone();
        let mut moment = side;
        while let Expr::Cast(Cast { expr, field }) = moment
            && let Ok(is) = expr.get_type(schema)
            && is_widened(&is, field.data_type())
        {
            moment = expr.as_ref();
        }
        let DataType::Timestamp(unit, zone) = moment.get_type(schema).ok()? else {
            return None;
        };
        let DataType::Timestamp(finer, _) = wanted else {
            return None;
        };
        (per_second(unit) < per_second(finer)).then_some(Coarse {
            moment,
            unit,
            zone,
            wanted,
            finer,
        })
    }

    /// Its last moment before one that is of no row and is none of its unit.
    fn before(&self, value: &Expr, computed: Computed<'_>) -> Option<ScalarValue> {
        let value = written(value).or_else(|| computed(value));
        let value = value.filter(|value| value.data_type() == self.wanted)?;
        let count = per_second(self.finer) / per_second(self.unit);
        let units = units(&value)?;
        (units % count != 0).then(|| moment(self.unit, units.div_euclid(count), self.zone.clone()))
    }
}

/// Whether a cast makes moments finer and nothing else: what clocks show is moved where it is put into a zone.
fn is_widened(is: &DataType, to: &DataType) -> bool {
    let (DataType::Timestamp(unit, zone), DataType::Timestamp(finer, its_zone)) = (is, to) else {
        return false;
    };
    let is_moved = zone.is_none() && !is_utc(its_zone.as_ref());
    per_second(*unit) <= per_second(*finer) && !is_moved
}
