//! Spans of time, by how long they are: a day has 24 hours and a month 30 days, as in PostgreSQL.
//!
//! What groups by them is in `groups`.

use crate::computed::lengths::INTERVAL;
use crate::computed::{Task, call};
use crate::extremes::extreme;
use crate::plans;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction, Sort, WindowFunction};
use datafusion::logical_expr::{
    Case, Expr, ExprSchemable, Join, LogicalPlan, Operator, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition, binary_expr, cast, lit,
};
use std::sync::Arc;

/// Whether two spans of time are compared of which one is an interval.
pub fn are_spans(one: &DataType, other: &DataType) -> bool {
    let has_interval = is_interval(one) || is_interval(other);
    has_interval && is_span(one) && is_span(other)
}

pub fn is_interval(kind: &DataType) -> bool {
    matches!(kind, DataType::Interval(_))
}

fn is_span(kind: &DataType) -> bool {
    matches!(kind, DataType::Interval(_) | DataType::Duration(_))
}

/// How long a span is. What is none, like NULL, stays what it is.
pub fn span(side: &Expr, kind: &DataType) -> Expr {
    match is_span(kind) {
        true => call(Task::Span, vec![side.clone()]),
        false => side.clone(),
    }
}

/// [`span`] of what has its type from the columns.
pub fn length(side: &Expr, schema: &DFSchema) -> Expr {
    match side.get_type(schema) {
        Ok(kind) => span(side, &kind),
        Err(_) => side.clone(),
    }
}

/// Whether a `CASE` compares spans.
pub fn are_compared<'e>(
    side: &Expr,
    mut whens: impl Iterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> bool {
    let Ok(is) = side.get_type(schema) else {
        return false;
    };
    whens.any(|when| {
        when.get_type(schema)
            .is_ok_and(|kind| are_spans(&is, &kind))
    })
}

/// A key by which rows are sorted.
pub fn sorted(key: Expr, schema: &DFSchema) -> Planned<Transformed<Expr>> {
    Ok(match key.get_type(schema) {
        Ok(kind) if is_interval(&kind) => Transformed::yes(span(&key, &kind)),
        _ => Transformed::no(key),
    })
}

/// Columns that are to be equal, `USING (…)`.
pub fn joined(mut join: Join) -> Transformed<LogicalPlan> {
    let mut has_changed = false;
    for (left, right) in &mut join.on {
        let one = left.get_type(join.left.schema().as_ref());
        let other = right.get_type(join.right.schema().as_ref());
        if let (Ok(one), Ok(other)) = (one, other)
            && are_spans(&one, &other)
        {
            (*left, *right) = (span(left, &one), span(right, &other));
            has_changed = true;
        }
    }
    let join = LogicalPlan::Join(plans::by_keys(join));
    Transformed::new_transformed(join, has_changed)
}

/// `min` and `max`, what is counted once, and an order in which values are taken.
pub fn aggregated(function: &AggregateFunction, schema: &DFSchema) -> Option<Expr> {
    let AggregateFunction { func, params } = function;
    let of_spans = match has_interval(&params.args, schema) {
        true => extreme(func.name()),
        false => None,
    };
    // An order that is about what is counted once, or says what is taken, is what it is.
    let has_own = params.distinct || func.supports_within_group_clause();
    let order_by = match has_own {
        true => None,
        false => in_order(&params.order_by, schema),
    };
    let counts = params.distinct && func.name() == "count" && has_interval(&params.args, schema);
    if of_spans.is_none() && order_by.is_none() && !counts {
        return None;
    }
    let mut function = function.clone();
    if counts {
        let values = params.args.iter().map(|value| key(value, schema));
        function.params.args = values.collect();
    }
    if let Some(of_spans) = of_spans {
        function.func = Arc::new(of_spans);
    }
    if let Some(order_by) = order_by {
        function.params.order_by = order_by;
    }
    Some(Expr::AggregateFunction(function))
}

/// The same of a window, whose partitions are those of spans that are equally long. A frame that is counted in spans has its order.
pub fn windowed(window: &WindowFunction, schema: &DFSchema) -> Option<Expr> {
    let params = &window.params;
    let of_spans = match &window.fun {
        WindowFunctionDefinition::AggregateUDF(func) if has_interval(&params.args, schema) => {
            extreme(func.name())
        }
        _ => None,
    };
    let frame = &params.window_frame;
    let is_counted = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(span) | WindowFrameBound::Following(span) => !span.is_null(),
        WindowFrameBound::CurrentRow => false,
    };
    let has_own = frame.units == WindowFrameUnits::Range
        && (is_counted(&frame.start_bound) || is_counted(&frame.end_bound));
    let order_by = match has_own {
        true => None,
        false => in_order(&params.order_by, schema),
    };
    let has_parts = has_interval(&params.partition_by, schema);
    if of_spans.is_none() && order_by.is_none() && !has_parts {
        return None;
    }
    let mut window = window.clone();
    if let Some(of_spans) = of_spans {
        window.fun = WindowFunctionDefinition::AggregateUDF(Arc::new(of_spans));
    }
    if let Some(order_by) = order_by {
        window.params.order_by = order_by;
    }
    if has_parts {
        let parts = window.params.partition_by.iter();
        window.params.partition_by = parts.map(|part| key(part, schema)).collect();
    }
    Some(Expr::WindowFunction(Box::new(window)))
}

fn has_interval(values: &[Expr], schema: &DFSchema) -> bool {
    let mut kinds = values.iter().map(|value| value.get_type(schema));
    kinds.any(|kind| kind.is_ok_and(|kind| is_interval(&kind)))
}

/// [`span`] of an interval, by which it is grouped and sorted; all else as it is.
pub fn key(value: &Expr, schema: &DFSchema) -> Expr {
    match value.get_type(schema) {
        Ok(kind) if is_interval(&kind) => span(value, &kind),
        _ => value.clone(),
    }
}

/// The same order, by how long spans are; `None` where it has none.
pub fn in_order(order_by: &[Sort], schema: &DFSchema) -> Option<Vec<Sort>> {
    let keys: Vec<Expr> = order_by.iter().map(|sort| sort.expr.clone()).collect();
    if !has_interval(&keys, schema) {
        return None;
    }
    let sorts = order_by.iter().zip(&keys);
    let sorts = sorts.map(|(sort, value)| sort.with_expr(key(value, schema)));
    Some(sorts.collect())
}

/// Functions that answer one of their arguments, by how long it is.
pub fn chosen(function: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let kinds = function.args.iter().map(|value| value.get_type(schema));
    let kinds: Vec<DataType> = kinds.collect::<Planned<_>>().ok()?;
    let is_greatest = match (function.name(), function.args.as_slice(), kinds.as_slice()) {
        ("nullif", [value, other], [is, of_other]) if are_spans(is, of_other) => {
            let same = binary_expr(span(value, is), Operator::Eq, span(other, of_other));
            let none = lit(ScalarValue::try_from(is).ok()?);
            let when = (Box::new(same), Box::new(none));
            let value = Some(Box::new(value.clone()));
            return Some(Expr::Case(Case::new(None, vec![when], value)));
        }
        ("greatest", _, _) => true,
        ("least", _, _) => false,
        _ => return None,
    };
    let may_be = |kind: &DataType| is_span(kind) || kind.is_null();
    if !kinds.iter().any(is_interval) || !kinds.iter().all(may_be) {
        return None;
    }
    let values = function.args.iter().zip(&kinds);
    let values = values.map(|(value, kind)| match *kind == INTERVAL {
        true => value.clone(),
        false => cast(value.clone(), INTERVAL),
    });
    Some(call(Task::Extreme(is_greatest), values.collect()))
}
