//! Moments beside moments: in UTC unless it is said otherwise, and in units in which they are what they are.
//!
//! Start reading at [`as_moment`].

use super::written;
use crate::plans;
use crate::reaches::{self, are_alike, in_nanos, is_utc};
use crate::types::per_second;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use std::sync::Arc;

/// A moment that is written down, of a year that nanoseconds do not reach, in microseconds. `TIMESTAMP '…'` is one in nanoseconds.
pub fn in_micros(value: &Expr, kind: &DataType) -> Option<Expr> {
    let DataType::Timestamp(TimeUnit::Nanosecond, zone) = kind else {
        return None;
    };
    let micros = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
    let moment = written(value)?;
    let is_beyond = moment.cast_to(kind).is_err() && moment.cast_to(&micros).is_ok();
    is_beyond.then(|| cast(value.clone(), micros))
}

/// What is computed of `now()` alone, in microseconds, beside what nanoseconds do not reach: a date, or a moment in another unit.
pub fn now_beside(of_side: &DataType, value: &Expr, of_value: &DataType) -> Option<Expr> {
    let DataType::Timestamp(TimeUnit::Nanosecond, zone) = of_value else {
        return None;
    };
    let reaches_more = match of_side {
        DataType::Timestamp(unit, _) => *unit != TimeUnit::Nanosecond,
        kind => *kind == DataType::Date32,
    };
    if !reaches_more || !plans::is_of_no_row(value) {
        return None;
    }
    let is_now = |part: &Expr| match part {
        Expr::ScalarFunction(call) => call.name() == "now",
        _ => false,
    };
    let is_of_now = value.exists(|part| Ok(is_now(part))).ok()?;
    let micros = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
    is_of_now.then(|| cast(value.clone(), micros))
}

/// Whether two moments of rows, or a date and a moment, are compared as numbers of nanoseconds of 128 bits: where one of them is in nanoseconds,
/// as DataFusion would make both, and the other is not, so that it may be of a year which these do not reach. What is of no row is none of
/// them: by that pages of a file are passed over, and each has its own way above. Neither is what a subquery is asked about, which DataFusion
/// has to find side by side with a column.
pub fn are_of_two_reaches(
    (one, of_one): (&Expr, &DataType),
    (other, of_other): (&Expr, &DataType),
) -> bool {
    let is_of_rows = |side: &Expr| !plans::is_of_no_row(side) && !is_asked(side);
    reaches::differ(of_one, of_other) && is_of_rows(one) && is_of_rows(other)
}

/// Whether a subquery is asked about it.
pub fn is_asked(side: &Expr) -> bool {
    let asked = side.exists(|part| Ok(matches!(part, Expr::OuterReferenceColumn(..))));
    asked.is_ok_and(|asked| asked)
}

/// The same of a list of which one value is of another reach than the side. `None` where there is none, or something else beside them.
pub fn list_in_nanos(list: &InList, is: &DataType, kinds: &[DataType]) -> Option<InList> {
    let side = list.expr.as_ref();
    let mut values = list.list.iter().zip(kinds);
    if !values.any(|value| are_of_two_reaches((side, is), value)) {
        return None;
    }
    let nanos = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let values = list.list.iter().zip(kinds).map(|(value, kind)| match kind {
        DataType::Null => Some(value.clone()),
        kind if kind.is_string() => {
            // As beside a column of nanoseconds, of whatever year it is.
            let moment = as_moment(&nanos, value, kind);
            let moment = moment.unwrap_or_else(|| cast(value.clone(), nanos.clone()));
            in_nanos(&moment, &nanos)
        }
        kind if are_alike(is, kind) => in_nanos(value, kind),
        _ => None,
    });
    let values: Vec<Expr> = values.collect::<Option<_>>()?;
    let side = Box::new(in_nanos(side, is)?);
    Some(InList::new(side, values, list.negated))
}

/// A list in which dates stand beside moments, or `now()` beside what nanoseconds do not reach, with both in microseconds, as each is compared by itself: DataFusion makes
/// all of a list alike, in nanoseconds. `None` where there is no such thing.
pub fn of_list(list: &InList, is: &DataType, kinds: &[DataType]) -> Option<InList> {
    if let Some(kind) = moments_beside(is, kinds) {
        let side = Box::new(cast(list.expr.as_ref().clone(), kind));
        return Some(InList::new(side, list.list.clone(), list.negated));
    }
    let side = kinds
        .iter()
        .find_map(|kind| now_beside(kind, &list.expr, is));
    let values = list.list.iter().zip(kinds);
    let moments = values.map(|(value, kind)| now_beside(is, value, kind));
    let moments: Vec<Option<Expr>> = moments.collect();
    if side.is_none() && moments.iter().all(Option::is_none) {
        return None;
    }
    let side = side.unwrap_or_else(|| list.expr.as_ref().clone());
    let values = moments.into_iter().zip(&list.list);
    let values = values.map(|(moment, value)| moment.unwrap_or_else(|| value.clone()));
    Some(InList::new(Box::new(side), values.collect(), list.negated))
}

/// What a date is in a list that has moments, all of one zone.
fn moments_beside(is: &DataType, kinds: &[DataType]) -> Option<DataType> {
    if *is != DataType::Date32 {
        return None;
    }
    let mut zones = kinds.iter().filter_map(|kind| match kind {
        DataType::Timestamp(_, zone) => Some(zone),
        _ => None,
    });
    let first = zones.next()?;
    let is_same = |zone: &Option<Arc<str>>| {
        zone == first || (is_utc(zone.as_ref()) && is_utc(first.as_ref()))
    };
    let are_alike = zones.all(is_same);
    are_alike.then(|| DataType::Timestamp(TimeUnit::Microsecond, first.clone()))
}

/// Values of which one is answered, in microseconds where one of them is in nanoseconds and another one may be of a year that these do not reach.
/// A text that is written down is a moment. `None` where all have one reach, or something else stands beside them.
pub fn in_one_reach<'e>(
    parts: impl Iterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> Option<Vec<Expr>> {
    let parts = parts.map(|part| Some((part, part.get_type(schema).ok()?)));
    let parts: Vec<(&Expr, DataType)> = parts.collect::<Option<_>>()?;
    let mut any = parts.iter();
    if !any.any(|(part, kind)| reaches_more(part, kind)) {
        return None;
    }
    let of_text = DataType::Timestamp(TimeUnit::Microsecond, None);
    let kinds = parts.iter().map(|(_, kind)| match kind.is_string() {
        true => &of_text,
        false => kind,
    });
    let micros = reaches::common(kinds)?;
    let parts = parts.iter();
    let parts = parts.map(|(part, kind)| in_micros_of(part, kind, &micros));
    parts.collect()
}

/// Whether a value may be of a year that nanoseconds do not reach.
fn reaches_more(value: &Expr, kind: &DataType) -> bool {
    let is = |unit: TimeUnit, value: &ScalarValue| {
        let kind = DataType::Timestamp(unit, None);
        value.cast_to(&kind).is_ok()
    };
    match kind {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => false,
        DataType::Timestamp(..) | DataType::Date32 => {
            written(value).is_none_or(|value| !is(TimeUnit::Nanosecond, &value))
        }
        kind if kind.is_string() => written(value).is_some_and(|text| {
            !is(TimeUnit::Nanosecond, &text) && is(TimeUnit::Microsecond, &text)
        }),
        _ => false,
    }
}

fn in_micros_of(value: &Expr, kind: &DataType, micros: &DataType) -> Option<Expr> {
    if !kind.is_string() {
        return Some(reaches::in_micros(value.clone(), kind, micros));
    }
    let DataType::Timestamp(_, zone) = micros else {
        return None;
    };
    let nanos = DataType::Timestamp(TimeUnit::Nanosecond, zone.clone());
    let kind = match written(value)?.cast_to(&nanos) {
        Ok(_) => &nanos,
        Err(_) => micros,
    };
    let moment = cast(value.clone(), kind.clone());
    Some(reaches::in_micros(moment, kind, micros))
}

/// `date_trunc` of a date or a text, which it would make nanoseconds.
pub fn truncated(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let [granule, moment] = call.args.as_slice() else {
        return None;
    };
    let kind = moment.get_type(schema).ok()?;
    if kind != DataType::Date32 && !kind.is_string() {
        return None;
    }
    let moment = cast(
        moment.clone(),
        DataType::Timestamp(TimeUnit::Microsecond, None),
    );
    let args = vec![granule.clone(), moment];
    let call = ScalarFunction::new_udf(call.func.clone(), args);
    Some(Expr::ScalarFunction(call))
}

/// A text or a date beside moments, as one of these. It is in UTC unless it says otherwise, and as fine as it is written; beside what the
/// statement itself casts to moments of a zone (`arrow_cast`) it is in that. `None` where DataFusion reads it so: beside a date it compares in
/// nanoseconds.
pub fn as_moment(of_side: &DataType, value: &Expr, of_value: &DataType) -> Option<Expr> {
    let DataType::Timestamp(unit, zone) = of_side else {
        return None;
    };
    let is_date = *of_value == DataType::Date32;
    if !is_date && !of_value.is_string() {
        return None;
    }
    let micros = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
    let nanos = DataType::Timestamp(TimeUnit::Nanosecond, zone.clone());
    let is_beyond = || {
        written(value)
            .is_some_and(|value| value.cast_to(&nanos).is_err() && value.cast_to(&micros).is_ok())
    };
    let is_beyond = is_beyond();
    let kind = match unit {
        TimeUnit::Nanosecond if !is_beyond => nanos,
        _ => micros,
    };
    // DataFusion reads a text in nanoseconds.
    (is_date || is_beyond || kind != *of_side).then(|| cast(value.clone(), kind))
}

/// Of a column of moments and a value that is written down and finer than its unit, but none of it: the column's last moment before that.
pub fn before(column: &DataType, value: &Expr, of_value: &DataType) -> Option<ScalarValue> {
    let (unit, zone, value, count) = finer(column, value, of_value)?;
    (value % count != 0).then(|| moment(unit, value.div_euclid(count), zone))
}

/// The same of a value that is one of the column's.
pub fn at(column: &DataType, value: &Expr, of_value: &DataType) -> Option<ScalarValue> {
    let (unit, zone, value, count) = finer(column, value, of_value)?;
    (value % count == 0).then(|| moment(unit, value / count, zone))
}

/// Of a column of moments its unit and zone, and of a value that is written down in a finer one how many of these it has, and how many of them are one of the column's.
fn finer(
    column: &DataType,
    value: &Expr,
    of_value: &DataType,
) -> Option<(TimeUnit, Option<Arc<str>>, i64, i64)> {
    let (DataType::Timestamp(unit, zone), DataType::Timestamp(finer, its_zone)) =
        (column, of_value)
    else {
        return None;
    };
    let count = per_second(*finer) / per_second(*unit);
    if count < 2 || !is_clear(zone.as_ref(), its_zone.as_ref()) {
        return None;
    }
    let kind = DataType::Timestamp(*finer, zone.clone());
    let value = written(value)?.cast_to(&kind).ok()?;
    Some((*unit, zone.clone(), units(&value)?, count))
}

/// Of a column of nanoseconds and a value that is written down and that these do not reach: the last of them, or the first, which nobody has.
pub fn beyond(column: &DataType, value: &Expr, of_value: &DataType) -> Option<ScalarValue> {
    let DataType::Timestamp(TimeUnit::Nanosecond, zone) = column else {
        return None;
    };
    let DataType::Timestamp(unit, its_zone) = of_value else {
        return None;
    };
    if !is_clear(zone.as_ref(), its_zone.as_ref()) {
        return None;
    }
    let kind = DataType::Timestamp(*unit, zone.clone());
    let value = units(&written(value)?.cast_to(&kind).ok()?)?;
    let nanos = per_second(TimeUnit::Nanosecond) / per_second(*unit);
    let end = match value.checked_mul(nanos) {
        Some(_) => return None,
        None if value < 0 => i64::MIN,
        None => i64::MAX,
    };
    Some(moment(TimeUnit::Nanosecond, end, zone.clone()))
}

/// Whether a moment beside a column's is one in the same zone, or in UTC. What a clock showed in another zone DataFusion may have its own
/// way with.
fn is_clear(zone: Option<&Arc<str>>, its_zone: Option<&Arc<str>>) -> bool {
    zone.is_some() || is_utc(its_zone)
}

/// A moment in its own unit.
pub fn units(moment: &ScalarValue) -> Option<i64> {
    match moment {
        ScalarValue::TimestampSecond(units, _)
        | ScalarValue::TimestampMillisecond(units, _)
        | ScalarValue::TimestampMicrosecond(units, _)
        | ScalarValue::TimestampNanosecond(units, _) => *units,
        _ => None,
    }
}

pub fn moment(unit: TimeUnit, units: i64, zone: Option<Arc<str>>) -> ScalarValue {
    match unit {
        TimeUnit::Second => ScalarValue::TimestampSecond(Some(units), zone),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(Some(units), zone),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(Some(units), zone),
        TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(Some(units), zone),
    }
}
