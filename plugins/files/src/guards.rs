//! What can fail is computed of the rows for which it is asked, and of no others: `v <> 0 AND 10 / v > 1` fails at no zero.
//!
//! DataFusion computes what stands behind an `AND` or an `OR` for all rows, unless few of them need it; so it does what an aggregate with a
//! `FILTER` is given, and it moves what is selected below a filter where that leaves out columns. A `CASE` it computes as it is written:
//! whatever can fail is put into one, behind what cannot.
//!
//! Start reading at [`guarded`] and [`given`], then at [`once`], [`first`] and [`pairs`].

mod fallible;
pub mod first;
pub mod once;
pub mod pairs;
pub mod scans;

pub use fallible::{holds, may_fail};

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::expr::{AggregateFunction, Sort};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{merge_schema, split_binary_owned};
use datafusion::logical_expr::{
    BinaryExpr, Case, Expr, Filter, LogicalPlan, Operator, binary_expr, lit,
};

/// Where a condition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It is what a filter over a table asks for: pages are passed over by what stands in it side by side.
    Filter,
    /// Only whether it is true is asked.
    Condition,
    /// It may be NULL, too. So often stand, by what is around it, its parts there twice already.
    Value(u32),
}

/// Conditions whose value is asked stand there twice, those within them four times, and so on: from here on they are left as they are.
const DOUBLED_MAX: u32 = 4;

impl Place {
    /// Of what is no condition, or is a part of something else than a condition.
    fn of_parts(self) -> Place {
        match self {
            Place::Value(doubled) => Place::Value(doubled),
            Place::Filter | Place::Condition => Place::Value(0),
        }
    }

    /// Whether conditions may be put behind each other there. What is drawn anew each time it is computed stands nowhere twice.
    fn takes(self, conditions: &Expr) -> bool {
        match self {
            Place::Value(doubled) => doubled < DOUBLED_MAX && !conditions.is_volatile(),
            Place::Filter | Place::Condition => true,
        }
    }
}

/// The plan with what can fail behind what cannot. It has to be optimized already: nothing is to take it apart again.
pub fn guarded(plan: LogicalPlan) -> Planned<LogicalPlan> {
    let mut has_changed = false;
    plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let node = match node {
            LogicalPlan::Filter(filter) => {
                let predicate = behind(filter.predicate, Place::Filter, &schema)?;
                predicate.map_data(|predicate| {
                    Filter::try_new(predicate, filter.input).map(LogicalPlan::Filter)
                })?
            }
            LogicalPlan::Join(mut join) => match join.filter.take() {
                Some(filter) => {
                    let filter = behind(filter, Place::Condition, &schema)?;
                    filter.update_data(|filter| {
                        join.filter = Some(filter);
                        LogicalPlan::Join(join)
                    })
                }
                None => Transformed::no(LogicalPlan::Join(join)),
            },
            node => {
                let names = NamePreserver::new(&node);
                node.map_expressions(|expression| {
                    let name = names.save(&expression);
                    let expression = behind(expression, Place::Value(0), &schema)?;
                    Ok(match expression.transformed {
                        true => expression.update_data(|expression| name.restore(expression)),
                        false => expression,
                    })
                })?
            }
        };
        has_changed |= node.transformed;
        match has_changed {
            // What stands above it is told what may be NULL now.
            true => node.map_data(LogicalPlan::recompute_schema),
            false => Ok(node),
        }
    })
    .data()
}

fn behind(part: Expr, place: Place, schema: &DFSchema) -> Planned<Transformed<Expr>> {
    match part {
        Expr::BinaryExpr(BinaryExpr {
            op: op @ (Operator::And | Operator::Or),
            ..
        }) if place.takes(&part) => joined(part, op, place, schema),
        Expr::Case(case) => chosen(case, place.of_parts(), schema),
        Expr::AggregateFunction(function) => aggregated(function, place.of_parts(), schema),
        // Of these no part is to be called otherwise, or has columns of its own.
        Expr::GroupingSet(_) | Expr::HigherOrderFunction(_) | Expr::Lambda(_) => {
            Ok(Transformed::no(part))
        }
        part => part.map_children(|child| behind(child, place.of_parts(), schema)),
    }
}

/// Conditions of which all, or any, are to be true.
fn joined(part: Expr, op: Operator, place: Place, schema: &DFSchema) -> Planned<Transformed<Expr>> {
    let inside = match place {
        Place::Value(doubled) => Place::Value(doubled + 1),
        Place::Filter | Place::Condition => Place::Condition,
    };
    let (mut sure, mut fallible) = (Vec::new(), Vec::new());
    let mut has_changed = false;
    for condition in split_binary_owned(part, op) {
        let may_fail = may_fail(&condition, schema)?;
        let condition = behind(condition, inside, schema)?;
        has_changed |= condition.transformed;
        match may_fail {
            true => fallible.push(condition.data),
            false => sure.push(condition.data),
        }
    }
    let join = |one, other| binary_expr(one, op, other);
    let sure = sure.into_iter().reduce(join);
    let Some(last) = fallible.pop() else {
        let sure = sure.unwrap_or_else(|| lit(true));
        return Ok(Transformed::new_transformed(sure, has_changed));
    };
    let before: Vec<Expr> = sure.iter().cloned().chain(fallible).collect();
    // NULL and what follows on it may be false, or true, yet.
    let rest = match place {
        Place::Value(_) => before.iter().cloned().reduce(join),
        Place::Filter | Place::Condition => None,
    };
    let decides = |condition: Expr| {
        Box::new(match (op, place) {
            (Operator::Or, _) => condition,
            (_, Place::Value(_)) => Expr::IsFalse(Box::new(condition)),
            _ => Expr::IsNotTrue(Box::new(condition)),
        })
    };
    let decided = lit(op == Operator::Or);
    let last = match rest {
        Some(rest) => join(rest, last),
        None => last,
    };
    let before = before.into_iter();
    let whens = before.map(|condition| (decides(condition), Box::new(decided.clone())));
    let case = Expr::Case(Case::new(None, whens.collect(), Some(Box::new(last))));
    Ok(Transformed::yes(match (sure, op, place) {
        (Some(sure), Operator::And, Place::Filter) => join(sure, case),
        _ => case,
    }))
}

fn chosen(case: Case, value: Place, schema: &DFSchema) -> Planned<Transformed<Expr>> {
    let asks = match case.expr {
        Some(_) => value,
        None => Place::Condition,
    };
    let mut has_changed = false;
    let mut part = |part: Box<Expr>, place: Place| -> Planned<Box<Expr>> {
        let part = behind(*part, place, schema)?;
        has_changed |= part.transformed;
        Ok(Box::new(part.data))
    };
    let base = case.expr.map(|base| part(base, value)).transpose()?;
    let mut whens = Vec::with_capacity(case.when_then_expr.len());
    for (when, then) in case.when_then_expr {
        whens.push((part(when, asks)?, part(then, value)?));
    }
    let other = case.else_expr;
    let other = other.map(|other| part(other, value)).transpose()?;
    let case = Expr::Case(Case::new(base, whens, other));
    Ok(Transformed::new_transformed(case, has_changed))
}

fn aggregated(
    function: AggregateFunction,
    place: Place,
    schema: &DFSchema,
) -> Planned<Transformed<Expr>> {
    let AggregateFunction { func, mut params } = function;
    let mut has_changed = false;
    if let Some(filter) = params.filter.take() {
        let filter = behind(*filter, Place::Condition, schema)?;
        has_changed |= filter.transformed;
        params.filter = Some(Box::new(filter.data));
    }
    let mut args = Vec::with_capacity(params.args.len());
    for value in params.args {
        let value = behind(value, place, schema)?;
        has_changed |= value.transformed;
        args.push(value.data);
    }
    params.args = args;
    let mut order_by = Vec::with_capacity(params.order_by.len());
    for key in params.order_by {
        let value = behind(key.expr, place, schema)?;
        has_changed |= value.transformed;
        order_by.push(Sort::new(value.data, key.asc, key.nulls_first));
    }
    params.order_by = order_by;
    let function = Expr::AggregateFunction(AggregateFunction { func, params });
    Ok(Transformed::new_transformed(function, has_changed))
}

/// An aggregate that is given nothing of the rows that its filter leaves out, and sorts by nothing of them. It has to be made so before the
/// plan is optimized: what two of them are given would be computed once, for all rows.
pub fn given(part: Expr, schema: &DFSchema) -> Planned<Transformed<Expr>> {
    let Expr::AggregateFunction(mut function) = part else {
        return Ok(Transformed::no(part));
    };
    // One that is drawn anew would leave out other rows than it has left out.
    let filter = function.params.filter.as_ref();
    let Some(filter) = filter.filter(|filter| !filter.is_volatile()) else {
        return Ok(Transformed::no(Expr::AggregateFunction(function)));
    };
    let mut has_changed = false;
    let keys = function.params.order_by.iter_mut();
    let keys = keys.map(|key| &mut key.expr);
    for value in function.params.args.iter_mut().chain(keys) {
        if may_fail(value, schema)? {
            let when = (filter.clone(), Box::new(std::mem::take(value)));
            *value = Expr::Case(Case::new(None, vec![when], None));
            has_changed = true;
        }
    }
    let function = Expr::AggregateFunction(function);
    Ok(Transformed::new_transformed(function, has_changed))
}
