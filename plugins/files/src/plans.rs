//! How a plan is gone through, one part of an expression after the other.

use crate::reaches;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, Expr, GroupingSet, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder,
    Projection, Union, cast,
};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;
use std::sync::Arc;

/// The plan with each part of its expressions, and of those of its subqueries, as `rewritten` makes it, inner ones first. It is given the columns
/// that there are. What a column is called stays.
pub fn rewrite(
    plan: LogicalPlan,
    rewritten: impl Fn(Expr, &DFSchema) -> Planned<Transformed<Expr>>,
) -> Planned<LogicalPlan> {
    let mut has_changed = false;
    plan.transform_up_with_subqueries(|node| {
        let node = keys_below(node, &rewritten)?;
        let node = node.transform_data(|node| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            node.map_expressions(|expression| {
                let name = names.save(&expression);
                let expression = expression.transform_up(|part| rewritten(part, &schema))?;
                Ok(expression.update_data(|expression| name.restore(expression)))
            })
        })?;
        let node = node.transform_data(of_one_kind)?;
        let node = node.update_data(|node| match node {
            LogicalPlan::Join(join) => LogicalPlan::Join(by_keys(join)),
            node => node,
        });
        has_changed |= node.transformed;
        match has_changed {
            // What stands above it is told the types that there are now.
            true => node.map_data(LogicalPlan::recompute_schema),
            false => Ok(node),
        }
    })
    .data()
}

/// The keys of `ROLLUP`, `CUBE` and `GROUPING SETS` that are made otherwise, computed in a step below, and the sets of columns: what is called as
/// before would be all of the sets, and not each key. Nothing else is changed.
fn keys_below(
    node: LogicalPlan,
    rewritten: &impl Fn(Expr, &DFSchema) -> Planned<Transformed<Expr>>,
) -> Planned<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = node else {
        return Ok(Transformed::no(node));
    };
    let set = match aggregate.group_expr.as_slice() {
        [Expr::GroupingSet(set)] => set.clone(),
        _ => return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate))),
    };
    let schema = aggregate.input.schema().clone();
    let mut below: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    let mut made: Vec<(&Expr, Expr)> = Vec::new();
    for key in set.distinct_expr() {
        let instead = key
            .clone()
            .transform_up(|part| rewritten(part, schema.as_ref()))?;
        if instead.transformed {
            let (table, name) = key.qualified_name();
            made.push((key, Expr::Column(Column::new(table.clone(), name.clone()))));
            below.push(instead.data.unalias().alias_qualified(table, name));
        }
    }
    if made.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let column_of = |key: &Expr| {
        let mut made = made.iter();
        let found = made.find(|(of, _)| *of == key);
        found.map_or_else(|| key.clone(), |(_, column)| column.clone())
    };
    let names = NamePreserver::new_for_projection();
    let told = aggregate.aggr_expr.into_iter();
    let told = told.map(|value| -> Planned<Expr> {
        let name = names.save(&value);
        Ok(name.restore(told_by(value, &column_of)?))
    });
    let told = told.collect::<Planned<Vec<Expr>>>()?;
    let below = LogicalPlan::Projection(Projection::try_new(below, aggregate.input)?);
    let sets = vec![Expr::GroupingSet(sets_of(&set, &column_of))];
    let groups = Aggregate::try_new(Arc::new(below), sets, told)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(groups)))
}

/// Sets of groups with other keys.
pub fn sets_of(set: &GroupingSet, key_of: &impl Fn(&Expr) -> Expr) -> GroupingSet {
    let keys_of = |keys: &Vec<Expr>| -> Vec<Expr> { keys.iter().map(key_of).collect() };
    match set {
        GroupingSet::Rollup(keys) => GroupingSet::Rollup(keys_of(keys)),
        GroupingSet::Cube(keys) => GroupingSet::Cube(keys_of(keys)),
        GroupingSet::GroupingSets(sets) => {
            GroupingSet::GroupingSets(sets.iter().map(keys_of).collect())
        }
    }
}

/// An aggregate; of `grouping(…)` the keys are what is grouped by.
pub fn told_by(aggregate: Expr, key_of: &impl Fn(&Expr) -> Expr) -> Planned<Expr> {
    let by_keys = |part: Expr| {
        Ok(match part {
            Expr::AggregateFunction(mut function) if function.func.name() == "grouping" => {
                let keys = function.params.args.iter();
                function.params.args = keys.map(key_of).collect();
                Transformed::yes(Expr::AggregateFunction(function))
            }
            part => Transformed::no(part),
        })
    };
    aggregate.transform_up(by_keys).data()
}

/// The parts of a `UNION` as all of them have to be. Until types are aligned it says that it is of what its first part was of.
fn of_one_kind(node: LogicalPlan) -> Planned<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = node else {
        return Ok(Transformed::no(node));
    };
    let wanted = kinds(&union.schema);
    let mut parts = union.inputs.iter();
    if parts.all(|part| kinds(part.schema()) == wanted) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let union = Union::try_new_with_loose_types(alike(union.inputs)?)?;
    TypeCoercionRewriter::coerce_union(union).map(Transformed::yes)
}

/// The parts of a `UNION`, where DataFusion would make them alike otherwise.
fn alike(parts: Vec<Arc<LogicalPlan>>) -> Planned<Vec<Arc<LogicalPlan>>> {
    let columns = parts.first().map_or(0, |part| part.schema().fields().len());
    let columns = (0..columns).map(|column| {
        let kinds = parts.iter();
        let kinds = kinds.filter_map(|part| part.schema().fields().get(column));
        common(kinds.map(|field| field.data_type()))
    });
    let wanted: Vec<Option<DataType>> = columns.collect();
    if wanted.iter().all(Option::is_none) {
        return Ok(parts);
    }
    let parts = parts.into_iter().map(|part| {
        let names = part.schema().columns().into_iter();
        let kinds = kinds(part.schema()).into_iter().zip(&wanted);
        let columns = names.zip(kinds).map(|(name, (is, wanted))| {
            let column = Expr::Column(name.clone());
            let changed = match wanted {
                Some(DataType::Float64) if is.is_decimal() => cast(column, DataType::Float64),
                Some(micros @ DataType::Timestamp(..)) => reaches::in_micros(column, is, micros),
                _ => return column,
            };
            changed.alias_qualified(name.relation, name.name)
        });
        let columns: Vec<Expr> = columns.collect();
        let part = LogicalPlanBuilder::from(part).project(columns)?.build()?;
        Ok(Arc::new(part))
    });
    parts.collect()
}

/// What a column of a `UNION` is made in its parts: a float where some have decimals beside floats, of which DataFusion would make decimals of
/// fifteen digits, and moments in microseconds where some are in nanoseconds.
fn common<'k>(kinds: impl Iterator<Item = &'k DataType> + Clone) -> Option<DataType> {
    let has = |is_it: fn(&DataType) -> bool| kinds.clone().any(is_it);
    match has(DataType::is_floating) && has(DataType::is_decimal) {
        true => Some(DataType::Float64),
        false => reaches::common(kinds),
    }
}

/// A join by keys that are no columns any more. One by columns of the same name (`USING`) is to DataFusion a mistake of its own then, where it looks
/// for their names, as for a `DISTINCT`.
pub fn by_keys(mut join: Join) -> Join {
    let is_column = |key: &Expr| key.get_as_join_column().is_some();
    let mut keys = join.on.iter();
    if !keys.all(|(left, right)| is_column(left) && is_column(right)) {
        join.join_constraint = JoinConstraint::On;
    }
    join
}

/// Whether a value is computed of no row: of what is written down, bound, or told by the clock.
pub fn is_of_no_row(value: &Expr) -> bool {
    let of_rows = value.exists(|part| {
        Ok(matches!(
            part,
            Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_)
        ))
    });
    of_rows.is_ok_and(|of_rows| !of_rows)
}

fn kinds(columns: &DFSchema) -> Vec<&DataType> {
    let columns = columns.fields().iter();
    columns.map(|column| column.data_type()).collect()
}
