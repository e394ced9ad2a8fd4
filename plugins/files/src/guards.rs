//! What can fail is computed of the rows for which it is asked, and of no others: `v <> 0 AND 10 / v > 1` fails at no zero.
//!
//! DataFusion computes what stands behind an `AND` or an `OR` for all rows, unless few of them need it; so it does what an aggregate with a
//! `FILTER` is given, and it moves what is selected below a filter where that leaves out columns. A `CASE` it computes as it is written:
//! whatever can fail is put into one, behind what cannot.
//!
//! Start reading at [`guarded`], [`given`], [`OnceIfSure`], [`FilterFirst`] and [`pairs`].

pub mod pairs;
mod scans;

use crate::computed::{Task, plain, task};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{merge_schema, split_binary_owned};
use datafusion::logical_expr::{
    BinaryExpr, Case, Cast, Expr, ExprSchemable, Filter, LogicalPlan, Operator, binary_expr, lit,
};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr, update_expr};
use std::sync::Arc;

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
    let function = Expr::AggregateFunction(AggregateFunction { func, params });
    Ok(Transformed::new_transformed(function, has_changed))
}

/// An aggregate that is given nothing of the rows that its filter leaves out. It has to be made so before the plan is optimized: what two
/// of them are given would be computed once, for all rows.
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
    for value in &mut function.params.args {
        if may_fail(value, schema)? {
            let when = (filter.clone(), Box::new(std::mem::take(value)));
            *value = Expr::Case(Case::new(None, vec![when], None));
            has_changed = true;
        }
    }
    let function = Expr::AggregateFunction(function);
    Ok(Transformed::new_transformed(function, has_changed))
}

/// Functions that answer whatever they are given.
const SURE: [&str; 19] = [
    "btrim",
    "character_length",
    "concat",
    "contains",
    "date_part",
    "ends_with",
    "greatest",
    "isnan",
    "least",
    "left",
    "lower",
    "ltrim",
    "nullif",
    "octet_length",
    "right",
    "rtrim",
    "starts_with",
    "strpos",
    "upper",
];

/// Whether there are values of which it cannot be computed.
fn may_fail(part: &Expr, schema: &DFSchema) -> Planned<bool> {
    part.exists(|part| Ok(!is_sure(part, schema)))
}

/// Whether it can be computed of whatever its parts are.
fn is_sure(part: &Expr, schema: &DFSchema) -> bool {
    match part {
        Expr::Alias(_)
        | Expr::Column(_)
        | Expr::OuterReferenceColumn(..)
        | Expr::Literal(..)
        | Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Between(_)
        | Expr::Case(_)
        | Expr::TryCast(_)
        | Expr::InList(_)
        | Expr::ScalarSubquery(_) => true,
        // What stands left may be long.
        Expr::BinaryExpr(BinaryExpr { op, right, .. }) => match op {
            Operator::Plus
            | Operator::Minus
            | Operator::Multiply
            | Operator::Divide
            | Operator::Modulo => right.get_type(schema).is_ok_and(|kind| kind.is_floating()),
            Operator::StringConcat => true,
            op => op.supports_propagation() || op.is_logic_operator() || is_pattern(*op),
        },
        Expr::Cast(Cast { expr, field }) => expr
            .get_type(schema)
            .is_ok_and(|from| holds(field.data_type(), &from)),
        Expr::ScalarFunction(call) => match task(call) {
            Some(task) => matches!(task, Task::Level | Task::Span | Task::Even | Task::Part(_)),
            None => SURE.contains(&call.name()),
        },
        _ => false,
    }
}

fn is_pattern(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::LikeMatch
            | Operator::ILikeMatch
            | Operator::NotLikeMatch
            | Operator::NotILikeMatch
    )
}

/// Digits of the longest whole number, one of 64 bits without a sign.
const WHOLE_DIGITS: i16 = 20;

/// Whether each value of a type is one of another.
fn holds(to: &DataType, from: &DataType) -> bool {
    let (to, from) = (plain(to), plain(from));
    if to == from || from.is_null() {
        return true;
    }
    match (to, from) {
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, from) => {
            from.is_string() || from.is_numeric() || *from == DataType::Boolean
        }
        (DataType::Float64, from) => from.is_numeric(),
        (DataType::Timestamp(to, _), DataType::Timestamp(from, _)) => to == from,
        (DataType::Timestamp(unit, _), DataType::Date32) => *unit != TimeUnit::Nanosecond,
        (DataType::Date32, DataType::Timestamp(..)) => true,
        (DataType::Decimal128(digits, scale), from) => {
            let room = i16::from(*digits) - i16::from(*scale);
            match from {
                DataType::Decimal128(digits, less) => {
                    scale >= less && room >= i16::from(*digits) - i16::from(*less)
                }
                from => from.is_integer() && *scale >= 0 && room >= WHOLE_DIGITS,
            }
        }
        (to, from) if to.is_integer() && from.is_integer() => is_wider(to, from),
        _ => false,
    }
}

fn is_wider(to: &DataType, from: &DataType) -> bool {
    let bytes = |kind: &DataType| kind.primitive_width().unwrap_or_default();
    let signs = (to.is_signed_integer(), from.is_signed_integer());
    match signs {
        (false, true) => false,
        (true, false) => bytes(to) > bytes(from),
        _ => bytes(to) >= bytes(from),
    }
}

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

fn is_read(column: &ProjectionExpr) -> bool {
    let column = &column.expr;
    column.downcast_ref::<Column>().is_some() || column.downcast_ref::<Literal>().is_some()
}
