//! Steps of a plan that sort, join and group by spans of time: those that are equally long are one.
//!
//! DataFusion groups intervals by their months, days and nanoseconds, by which a month and 30 days are two. Here they are one, and the first that
//! is met stands for both, as in PostgreSQL. Two they stay in a `WITH RECURSIVE` that leaves out what was there.
//!
//! Start reading at [`by_length`].

use super::spans::{in_order, is_interval, joined, key, sorted};
use crate::plans::{sets_of, told_by};
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::error::Result as Planned;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{
    Aggregate, Case, Distinct, DistinctOn, Expr, ExprSchemable, GroupingSet, LogicalPlan,
    Projection,
};
use std::sync::Arc;

/// The plan with each of these steps going by how long spans are.
pub fn by_length(plan: LogicalPlan) -> Planned<LogicalPlan> {
    let mut has_changed = false;
    plan.transform_up_with_subqueries(|node| {
        let node = match node {
            LogicalPlan::Sort(sort) => {
                let schema = sort.input.schema().clone();
                LogicalPlan::Sort(sort).map_expressions(|key| sorted(key, &schema))?
            }
            LogicalPlan::Join(join) => joined(join),
            LogicalPlan::Aggregate(aggregate) => grouped(aggregate)?,
            LogicalPlan::Distinct(Distinct::All(input)) => once(input)?,
            LogicalPlan::Distinct(Distinct::On(rows)) => once_by(rows),
            node => Transformed::no(node),
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

/// Groups, and of each the first of its spans. What the columns are called stays.
fn grouped(aggregate: Aggregate) -> Planned<Transformed<LogicalPlan>> {
    let columns = aggregate.input.schema().clone();
    let is_interval = |key: &Expr| {
        let kind = key.get_type(&columns);
        kind.is_ok_and(|kind| is_interval(&kind))
    };
    let keys = grouping_set_to_exprlist(&aggregate.group_expr)?;
    if !keys.into_iter().any(is_interval) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    if let [Expr::GroupingSet(set)] = aggregate.group_expr.as_slice() {
        let set = set.clone();
        return grouped_in_sets(aggregate, set).map(Transformed::yes);
    }
    let Aggregate {
        input,
        group_expr,
        aggr_expr,
        schema,
        ..
    } = aggregate;
    let length_of = |value: &Expr| key(value, &columns);
    let aggr_expr = aggr_expr.into_iter();
    let aggr_expr = aggr_expr.map(|value| told_by(value, &length_of));
    let mut aggr_expr: Vec<Expr> = aggr_expr.collect::<Planned<_>>()?;
    let (mut keys, mut count) = (Vec::with_capacity(group_expr.len()), 0);
    let mut places: Vec<usize> = (0..schema.fields().len()).collect();
    for (at, value) in group_expr.into_iter().enumerate() {
        if !is_interval(&value) {
            keys.push(value);
            continue;
        }
        let span = value.unalias();
        keys.push(key(&span, &columns));
        // Behind all groups and aggregates, and the spans before it.
        places[at] = places.len() + count;
        count += 1;
        let first = first_value_udaf().call(vec![span]);
        aggr_expr.push(first.alias(format!("first of group {at}")));
    }
    let groups = Aggregate::try_new(input, keys, aggr_expr)?;
    let found = groups.schema.columns();
    let columns = schema.iter().zip(places).enumerate();
    let columns = columns.map(|(at, ((table, field), place))| {
        let is_called_so = place == at && found[place].name == *field.name();
        let column = Expr::Column(found[place].clone());
        match is_called_so {
            true => column,
            false => column.alias_qualified(table.cloned(), field.name()),
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let groups = Arc::new(LogicalPlan::Aggregate(groups));
    let projection = Projection::try_new(columns, groups)?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}

/// The groups of `ROLLUP`, `CUBE` and `GROUPING SETS`, and of each the first of its spans: where a set leaves a span out it is NULL. How long spans are stands in columns
/// of a step below: what sets compute in several of them DataFusion would make two of.
fn grouped_in_sets(aggregate: Aggregate, set: GroupingSet) -> Planned<LogicalPlan> {
    let columns = aggregate.input.schema().clone();
    let (keys, behind) = (set.distinct_expr(), aggregate.schema.fields().len());
    let mut below: Vec<Expr> = columns.columns().into_iter().map(Expr::Column).collect();
    let mut lengths: Vec<(&Expr, Expr)> = Vec::new();
    let mut first_values = Vec::new();
    // Where the first span of a key is found: behind all keys, the number of the set, and the aggregates.
    let mut places: Vec<Option<usize>> = vec![None; keys.len()];
    for (at, value) in keys.iter().copied().enumerate() {
        if is_interval(&value.get_type(&columns)?) {
            places[at] = Some(behind + first_values.len());
            let name = format!("length of group {at}");
            below.push(key(value, &columns).alias(name.clone()));
            lengths.push((value, Expr::Column(Column::from_name(name))));
            let first = first_value_udaf().call(vec![value.clone()]);
            first_values.push(first.alias(format!("first of group {at}")));
        }
    }
    let length_of = |value: &Expr| {
        let mut lengths = lengths.iter();
        let found = lengths.find(|(of, _)| *of == value);
        found.map_or_else(|| value.clone(), |(_, length)| length.clone())
    };
    let by_length = sets_of(&set, &length_of);
    let mut aggr_expr = Vec::with_capacity(aggregate.aggr_expr.len() + first_values.len());
    for value in aggregate.aggr_expr {
        aggr_expr.push(told_by(value, &length_of)?);
    }
    aggr_expr.append(&mut first_values);
    let below = LogicalPlan::Projection(Projection::try_new(below, aggregate.input)?);
    let by_length = vec![Expr::GroupingSet(by_length)];
    let groups = Aggregate::try_new(Arc::new(below), by_length, aggr_expr)?;
    let found = groups.schema.columns();
    let mut columns = Vec::with_capacity(behind);
    for (at, (table, field)) in aggregate.schema.iter().enumerate() {
        // The number of the set is nobody's above: what tells it, `grouping`, is among the aggregates.
        if at == keys.len() {
            continue;
        }
        let column = Expr::Column(found[at].clone());
        let value = match places.get(at).copied().flatten() {
            Some(place) => {
                let first = Expr::Column(found[place].clone());
                let when = (Box::new(column.is_not_null()), Box::new(first));
                Expr::Case(Case::new(None, vec![when], None))
            }
            None => column,
        };
        columns.push(value.alias_qualified(table.cloned(), field.name()));
    }
    let groups = Arc::new(LogicalPlan::Aggregate(groups));
    let projection = Projection::try_new(columns, groups)?;
    Ok(LogicalPlan::Projection(projection))
}

/// `SELECT DISTINCT`, which groups by all columns. So do `UNION` and its like.
fn once(input: Arc<LogicalPlan>) -> Planned<Transformed<LogicalPlan>> {
    let mut fields = input.schema().fields().iter();
    if !fields.any(|field| is_interval(field.data_type())) {
        let distinct = LogicalPlan::Distinct(Distinct::All(input));
        return Ok(Transformed::no(distinct));
    }
    let columns = input.schema().columns().into_iter();
    let columns: Vec<Expr> = columns.map(Expr::Column).collect();
    grouped(Aggregate::try_new(input, columns, Vec::new())?)
}

/// `SELECT DISTINCT ON (…)`. Its order begins with what it is on.
fn once_by(mut rows: DistinctOn) -> Transformed<LogicalPlan> {
    let schema = rows.input.schema().clone();
    let keys = rows.on_expr.iter();
    let keys: Vec<Expr> = keys.map(|value| key(value, &schema)).collect();
    let order_by = rows.sort_expr.as_deref();
    let order_by = order_by.and_then(|order_by| in_order(order_by, &schema));
    let has_changed = keys != rows.on_expr || order_by.is_some();
    rows.on_expr = keys;
    if order_by.is_some() {
        rows.sort_expr = order_by;
    }
    let distinct = LogicalPlan::Distinct(Distinct::On(rows));
    Transformed::new_transformed(distinct, has_changed)
}
