//! Moments in nanoseconds, which reach from 1677 to 2262, beside those in another unit and dates, which may be of any year.
//!
//! DataFusion makes nanoseconds of both, and fails where a row is of a year that these do not reach. Where they are compared they are numbers of
//! nanoseconds of 128 bits here, of which nothing is lost. Where one of them is answered they are microseconds, and what is finer is refused, as it
//! is where it is answered by itself.
//!
//! Start reading at [`differ`] and [`common`].

use crate::computed::{Task, call};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::logical_expr::{Expr, cast};
use std::sync::Arc;

/// As it is written, and as DataFusion writes it for `now()`.
const UTC: [&str; 2] = ["UTC", "+00:00"];

/// Whether one of two kinds of moments, or of a date and moments, is in nanoseconds and the other is not.
pub fn differ(one: &DataType, other: &DataType) -> bool {
    is_nanos(one) != is_nanos(other) && are_alike(one, other)
}

/// What all are made of which one is answered, if some are in nanoseconds and others are not: moments in microseconds.
pub fn common<'k>(kinds: impl Iterator<Item = &'k DataType> + Clone) -> Option<DataType> {
    let mut kinds = kinds.filter(|kind| !kind.is_null());
    let first = kinds.clone().next()?;
    let are_moments = kinds.clone().all(|kind| are_alike(first, kind));
    if !are_moments || !kinds.clone().any(is_nanos) || kinds.clone().all(is_nanos) {
        return None;
    }
    let zone = kinds.find_map(|kind| match kind {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    });
    Some(DataType::Timestamp(TimeUnit::Microsecond, zone))
}

/// A moment, or a date, as nanoseconds since 1970, whatever its year. `None` of what is neither.
pub fn in_nanos(value: &Expr, kind: &DataType) -> Option<Expr> {
    let moment = match kind {
        DataType::Timestamp(..) => value.clone(),
        DataType::Date32 => cast(
            value.clone(),
            DataType::Timestamp(TimeUnit::Microsecond, None),
        ),
        _ => return None,
    };
    Some(call(Task::Span, vec![moment]))
}

/// A moment, or a date, in `micros`. Of no moment is NULL made by whoever stands beside it.
pub fn in_micros(value: Expr, is: &DataType, micros: &DataType) -> Expr {
    match is {
        kind if kind == micros || kind.is_null() => value,
        kind if is_nanos(kind) => cast(call(Task::Micros, vec![value]), micros.clone()),
        _ => cast(value, micros.clone()),
    }
}

/// Whether both are moments, or dates, of one zone.
pub fn are_alike(one: &DataType, other: &DataType) -> bool {
    let zone = |kind: &DataType| match kind {
        DataType::Timestamp(_, zone) => Some(zone.clone()),
        DataType::Date32 => Some(None),
        _ => None,
    };
    let (Some(one), Some(other)) = (zone(one), zone(other)) else {
        return false;
    };
    one == other || (is_utc(one.as_ref()) && is_utc(other.as_ref()))
}

pub fn is_utc(zone: Option<&Arc<str>>) -> bool {
    zone.is_none_or(|zone| UTC.contains(&zone.as_ref()))
}

fn is_nanos(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(TimeUnit::Nanosecond, _))
}
