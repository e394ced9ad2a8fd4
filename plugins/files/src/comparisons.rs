//! Comparisons that DataFusion refuses or gets wrong, written so that it does not.
//!
//! It compares no times of day of different units. It makes a decimal of 30 digits of a float that stands beside a decimal, which most
//! floats are not: the statement fails at a large one, and a small one is nothing. Of a moment that is finer than the column beside it
//! it cuts off what is finer, so that `at < 12:00:00.5` leaves out 12:00:00 of a column of seconds; beside a column of nanoseconds it fails
//! at one that these do not reach, and `TIMESTAMP '9999-12-31 00:00:00'` it does not take at all. A float of 32 bits is
//! to it the one of 64 bits that has the same bits, which is not 0.1 where 0.1 is shown. And rows, `(a, b) > (1, 2)`, it compares as structures,
//! whose fields it makes alike in its own way, and passes over no page of a file by. Of intervals it compares months, then days, then the rest,
//! so that 25 hours, and two days between two moments, are less than one day: `spans` has what is done about that.
//!
//! Beside them stands what has other types than DataFusion would say, which is to be known before types are aligned: quotients of decimals, which
//! it cuts off four digits behind those of what is divided, and seconds, of which it leaves out the fraction.
//!
//! Start reading at [`exact`].

mod chosen;
mod groups;
mod moments;
mod places;
mod sets;
mod spans;
pub mod widened;

use crate::computed::quotients::quotient;
use crate::computed::{Task, call};
use crate::plans;
use crate::reaches::in_nanos;
use crate::zones;
use chosen::{CHOOSING, called, chosen};
use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{
    Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, and, binary_expr, cast,
    lit, not, or,
};
use groups::by_length;
use moments::{
    are_of_two_reaches, as_moment, at, in_micros, list_in_nanos, now_beside, of_list, truncated,
};
use places::{Place, beside, number, place};
use spans::{are_spans, span};

/// The plan with its comparisons made exact. Parameters are bound by then; types are not aligned yet.
pub fn exact(plan: LogicalPlan) -> Planned<LogicalPlan> {
    by_length(plans::rewrite(plan, rewritten)?)
}

fn rewritten(part: Expr, schema: &DFSchema) -> Planned<Transformed<Expr>> {
    let part = match part {
        Expr::ScalarFunction(call) if call.name() == zones::NAME => {
            return zones::checked(call, schema);
        }
        part => part,
    };
    let instead = match &part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            compared(left, *op, right, schema)
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Divide,
            right,
        }) => divided(left, right, schema),
        Expr::ScalarFunction(call) if call.name() == "date_part" => taken(call, schema),
        Expr::ScalarFunction(call) if call.name() == "date_trunc" => truncated(call, schema),
        Expr::Between(between) => within(between, |side, operator, end| {
            compared(side, operator, end, schema)
        }),
        Expr::InList(list) => listed(list, schema),
        Expr::Case(case) => chosen(case, schema),
        Expr::ScalarFunction(call) if CHOOSING.contains(&call.name()) => called(call, schema),
        Expr::AggregateFunction(function) => spans::aggregated(function, schema),
        Expr::WindowFunction(window) => spans::windowed(window, schema),
        Expr::InSubquery(set) => sets::listed(set, schema),
        Expr::SetComparison(set) => sets::quantified(set, schema),
        Expr::Cast(Cast { expr, field }) => in_micros(expr, field.data_type()),
        _ => None,
    };
    Ok(match instead {
        Some(instead) => Transformed::yes(instead),
        None => Transformed::no(part),
    })
}

fn is_comparison(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// The comparison to be made instead; `None` where it is one that DataFusion makes right.
fn compared(left: &Expr, operator: Operator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    if let Some((left, right)) = rows(left, right) {
        return by_columns(left, operator, right, schema);
    }
    let kinds = [left, right].map(|side| side.get_type(schema).ok());
    let [Some(one), Some(other)] = kinds else {
        return None;
    };
    if let Some(moment) = now_beside(&one, right, &other) {
        let exact = compared(left, operator, &moment, schema);
        return Some(exact.unwrap_or_else(|| binary_expr(left.clone(), operator, moment)));
    }
    if let Some(moment) = now_beside(&other, left, &one) {
        let exact = compared(&moment, operator, right, schema);
        return Some(exact.unwrap_or_else(|| binary_expr(moment, operator, right.clone())));
    }
    if are_of_two_reaches((left, &one), (right, &other)) {
        let (left, right) = (in_nanos(left, &one)?, in_nanos(right, &other)?);
        return Some(binary_expr(left, operator, right));
    }
    if let Some(moment) = as_moment(&one, right, &other) {
        let exact = compared(left, operator, &moment, schema);
        return Some(exact.unwrap_or_else(|| binary_expr(left.clone(), operator, moment)));
    }
    if let Some(moment) = as_moment(&other, left, &one) {
        let exact = compared(&moment, operator, right, schema);
        return Some(exact.unwrap_or_else(|| binary_expr(moment, operator, right.clone())));
    }
    if let Some(place) = place(&one, right, &other) {
        return place.compared(left, operator);
    }
    if let Some(place) = place(&other, left, &one) {
        return place.compared(right, operator.swap()?);
    }
    if are_spans(&one, &other) {
        return Some(binary_expr(span(left, &one), operator, span(right, &other)));
    }
    let kind = common(&one, &other)?;
    let (left, right) = (of_kind(left, &one, &kind), of_kind(right, &other, &kind));
    Some(binary_expr(left, operator, right))
}

/// A quotient of decimals.
fn divided(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let by = right.get_type(schema).ok()?;
    if !by.is_decimal() && !by.is_integer() {
        return None;
    }
    quotient(&left.get_type(schema).ok()?, &by)?;
    Some(call(Task::Divide, vec![left.clone(), right.clone()]))
}

/// Parts of a moment that DataFusion has without their fraction, and parts of the span between two that it has of the whole span.
fn taken(part: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let [Expr::Literal(name, _), moment] = part.args.as_slice() else {
        return None;
    };
    let name = name.try_as_str().flatten()?.to_lowercase();
    let kind = moment.get_type(schema).ok()?;
    let is_clock = matches!(
        kind,
        DataType::Timestamp(..)
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Interval(IntervalUnit::MonthDayNano)
            | DataType::Duration(_)
    );
    let of = |whole: i32| {
        let part = Expr::ScalarFunction(part.clone());
        binary_expr(part, Operator::Modulo, lit(whole))
    };
    match (name.as_str(), kind) {
        ("s" | "sec" | "secs" | "second" | "seconds", _) if is_clock => {
            Some(call(Task::Part(6), vec![moment.clone()]))
        }
        ("ms" | "msec" | "msecs" | "millisecond" | "milliseconds", _) if is_clock => {
            Some(call(Task::Part(3), vec![moment.clone()]))
        }
        ("minute" | "minutes" | "min" | "mins", DataType::Duration(_)) => Some(of(60)),
        ("hour" | "hours" | "hr" | "hrs", DataType::Duration(_)) => Some(of(24)),
        _ => None,
    }
}

/// `(a, b)` and `(1, 2)`.
fn rows<'e>(left: &'e Expr, right: &'e Expr) -> Option<(&'e [Expr], &'e [Expr])> {
    let (Expr::ScalarFunction(left), Expr::ScalarFunction(right)) = (left, right) else {
        return None;
    };
    let are_rows = left.name() == "struct" && right.name() == "struct";
    let are_alike = left.args.len() == right.args.len() && !left.args.is_empty();
    (are_rows && are_alike).then_some((left.args.as_slice(), right.args.as_slice()))
}

/// A column after the other, as each is compared: of those before being equal the next one decides. The first one is compared by itself, too:
/// by that pages of a file are passed over.
fn by_columns(
    left: &[Expr],
    operator: Operator,
    right: &[Expr],
    schema: &DFSchema,
) -> Option<Expr> {
    let one = |operator: Operator, (left, right): (&Expr, &Expr)| {
        let instead = compared(left, operator, right, schema);
        instead.unwrap_or_else(|| binary_expr(left.clone(), operator, right.clone()))
    };
    let pairs = left.iter().zip(right);
    let (beyond, from) = match operator {
        Operator::Eq => return pairs.map(|pair| one(operator, pair)).reduce(and),
        Operator::NotEq => return pairs.map(|pair| one(operator, pair)).reduce(or),
        Operator::Lt | Operator::LtEq => (Operator::Lt, Operator::LtEq),
        Operator::Gt | Operator::GtEq => (Operator::Gt, Operator::GtEq),
        _ => return None,
    };
    let first = pairs.clone().next()?;
    let mut pairs = pairs.rev();
    let last = one(operator, pairs.next()?);
    let all = pairs.fold(last, |rest, pair| {
        or(one(beyond, pair), and(one(Operator::Eq, pair), rest))
    });
    Some(match left.len() {
        1 => all,
        _ => and(one(from, first), all),
    })
}

/// What both are compared as, where DataFusion would not know or choose otherwise.
fn common(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType::{Time32, Time64};
    match (one, other) {
        (Time32(_) | Time64(_), Time32(_) | Time64(_)) if one != other => {
            Some(Time64(TimeUnit::Nanosecond))
        }
        // As PostgreSQL does.
        _ if one.is_floating() && other.is_decimal() => Some(DataType::Float64),
        _ if one.is_decimal() && other.is_floating() => Some(DataType::Float64),
        _ => None,
    }
}

fn of_kind(side: &Expr, is: &DataType, kind: &DataType) -> Expr {
    match is == kind {
        true => side.clone(),
        false if *kind == DataType::Float64 => float(side),
        false => cast(side.clone(), kind.clone()),
    }
}

fn float(side: &Expr) -> Expr {
    nearest(side).unwrap_or_else(|| cast(side.clone(), DataType::Float64))
}

/// A decimal that is written down is the float that its digits say: a cast divides, which is not the same for many digits.
fn nearest(side: &Expr) -> Option<Expr> {
    let value = written(side)?;
    match value.data_type().is_decimal() {
        true => number(&value).map(lit),
        false => None,
    }
}

/// A literal, or what one is said to be: `TIMESTAMP '…'`.
fn written(value: &Expr) -> Option<ScalarValue> {
    match value {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) => written(expr)?.cast_to(field.data_type()).ok(),
        _ => None,
    }
}

/// Each end by itself, as it is compared.
fn within(
    between: &Between,
    compared: impl Fn(&Expr, Operator, &Expr) -> Option<Expr>,
) -> Option<Expr> {
    let side = between.expr.as_ref();
    let (low, high) = (between.low.as_ref(), between.high.as_ref());
    let from = compared(side, Operator::GtEq, low);
    let to = compared(side, Operator::LtEq, high);
    if from.is_none() && to.is_none() {
        return None;
    }
    let from = from.unwrap_or_else(|| binary_expr(side.clone(), Operator::GtEq, low.clone()));
    let to = to.unwrap_or_else(|| binary_expr(side.clone(), Operator::LtEq, high.clone()));
    let both = and(from, to);
    Some(match between.negated {
        true => not(both),
        false => both,
    })
}

/// A list stays one, however long it is.
fn listed(list: &InList, schema: &DFSchema) -> Option<Expr> {
    let is = list.expr.get_type(schema).ok()?;
    let kinds = list.list.iter().map(|value| value.get_type(schema));
    let kinds: Vec<DataType> = kinds.collect::<Planned<_>>().ok()?;
    if kinds.iter().any(|kind| are_spans(&is, kind)) {
        let values = list.list.iter().zip(&kinds);
        let values = values.map(|(value, kind)| span(value, kind)).collect();
        let side = Box::new(span(&list.expr, &is));
        return Some(Expr::InList(InList::new(side, values, list.negated)));
    }
    if let Some(list) = list_in_nanos(list, &is, &kinds) {
        return Some(Expr::InList(list));
    }
    if let Some(list) = of_list(list, &is, &kinds) {
        return Some(listed(&list, schema).unwrap_or_else(|| Expr::InList(list)));
    }
    let values = list.list.iter().zip(&kinds);
    let moments = values.map(|(value, kind)| as_moment(&is, value, kind));
    let moments: Vec<Option<Expr>> = moments.collect();
    if moments.iter().any(Option::is_some) {
        let values = moments.into_iter().zip(&list.list);
        let values = values.map(|(moment, value)| moment.unwrap_or_else(|| value.clone()));
        let list = InList::new(list.expr.clone(), values.collect(), list.negated);
        return Some(listed(&list, schema).unwrap_or_else(|| Expr::InList(list)));
    }
    let values = list.list.iter().zip(&kinds);
    // One value that is finer than all others makes a list so, whose other values the column may have far beyond: each is in its unit.
    let places = values.map(|(value, kind)| {
        let place = place(&is, value, kind);
        place.or_else(|| at(&is, value, kind).map(Place::At))
    });
    let places: Vec<Option<Place>> = places.collect();
    let kind = kinds.iter().find_map(|other| common(&is, other));
    match kind {
        Some(kind) if places.iter().any(Option::is_none) => {
            let values = list.list.iter().zip(&kinds);
            let values = values
                .map(|(value, is)| of_kind(value, is, &kind))
                .collect();
            let side = Box::new(of_kind(&list.expr, &is, &kind));
            Some(Expr::InList(InList::new(side, values, list.negated)))
        }
        _ if places.iter().all(Option::is_none) => None,
        _ => listed_by_places(list, places),
    }
}

/// What is none of the values that a column may have is left out.
fn listed_by_places(list: &InList, places: Vec<Option<Place>>) -> Option<Expr> {
    let mut values = Vec::with_capacity(places.len());
    let mut last = None;
    for (value, place) in list.list.iter().zip(places) {
        match place {
            None => values.push(value.clone()),
            Some(Place::At(value)) => values.push(lit(value)),
            Some(Place::Behind(before)) => last = Some(before),
        }
    }
    match (values.is_empty(), list.negated) {
        (true, false) => beside(&list.expr, Operator::Eq, last?),
        (true, true) => beside(&list.expr, Operator::NotEq, last?),
        (false, _) => {
            let side = list.expr.clone();
            Some(Expr::InList(InList::new(side, values, list.negated)))
        }
    }
}
