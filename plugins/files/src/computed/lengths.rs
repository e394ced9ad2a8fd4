//! How long spans of time are, which is the longest, and what they are made of.
//!
//! Start reading at [`nanos`].

use super::nothing;
use crate::errors;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Int32Array};
use datafusion::arrow::compute::{DatePart, cast, date_part, interleave, try_binary};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalUnit, IntervalYearMonthType, TimeUnit, TimestampNanosecondType,
};
use datafusion::common::ScalarValue;
use datafusion::error::Result as Planned;
use datafusion::logical_expr::ColumnarValue;
use std::sync::Arc;

const NANOS_A_DAY: i64 = 86_400_000_000_000;
const MILLIS_A_DAY: i32 = 86_400_000;

/// Of 128 bits, which no span outgrows.
pub const NANOS: DataType = DataType::Decimal128(38, 0);
const DAYS_A_MONTH: i128 = 30;

/// What spans are made alike as.
pub const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// How long intervals and durations are, and how long after the beginning of 1970 moments.
pub fn nanos(spans: &ArrayRef) -> Planned<ArrayRef> {
    let days = |days: i128| days * i128::from(NANOS_A_DAY);
    let nanos = match spans.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => spans
            .as_primitive::<IntervalMonthDayNanoType>()
            .unary::<_, Decimal128Type>(|span| {
                let whole = i128::from(span.months) * DAYS_A_MONTH + i128::from(span.days);
                days(whole) + i128::from(span.nanoseconds)
            }),
        DataType::Interval(IntervalUnit::DayTime) => spans
            .as_primitive::<IntervalDayTimeType>()
            .unary::<_, Decimal128Type>(|span| {
            days(span.days.into()) + i128::from(span.milliseconds) * 1_000_000
        }),
        DataType::Interval(IntervalUnit::YearMonth) => spans
            .as_primitive::<IntervalYearMonthType>()
            .unary::<_, Decimal128Type>(|months| days(i128::from(months) * DAYS_A_MONTH)),
        DataType::Duration(unit) | DataType::Timestamp(unit, _) => {
            let unit: i128 = match unit {
                TimeUnit::Second => 1_000_000_000,
                TimeUnit::Millisecond => 1_000_000,
                TimeUnit::Microsecond => 1_000,
                TimeUnit::Nanosecond => 1,
            };
            let units = cast(spans, &DataType::Int64)?;
            let units = units.as_primitive::<Int64Type>();
            units.unary::<_, Decimal128Type>(|units| i128::from(units) * unit)
        }
        _ => return Err(errors::through(nothing())),
    };
    Ok(Arc::new(nanos.with_data_type(NANOS)))
}

/// Of the intervals of each row the longest one, or the shortest.
pub fn extreme(spans: &[ColumnarValue], is_greatest: bool) -> Planned<ColumnarValue> {
    let mut kinds = spans.iter();
    let is_one = kinds.all(|span| matches!(span, ColumnarValue::Scalar(_)));
    let spans = ColumnarValue::values_to_arrays(spans)?;
    let lengths: Vec<ArrayRef> = spans.iter().map(nanos).collect::<Planned<_>>()?;
    let lengths = lengths.iter().map(|lengths| lengths.as_primitive());
    let lengths: Vec<&Decimal128Array> = lengths.collect();
    let best = |row: usize| {
        let mut best: Option<(i128, usize)> = None;
        for (at, lengths) in lengths.iter().enumerate() {
            if !lengths.is_valid(row) {
                continue;
            }
            let length = lengths.value(row);
            let is_better = best.is_none_or(|(before, _)| match is_greatest {
                true => length > before,
                false => length < before,
            });
            if is_better {
                best = Some((length, at));
            }
        }
        (best.map_or(0, |(_, at)| at), row)
    };
    let rows = spans.first().map_or(0, |spans| spans.len());
    let rows: Vec<(usize, usize)> = (0..rows).map(best).collect();
    let spans: Vec<&dyn Array> = spans.iter().map(|spans| spans.as_ref()).collect();
    let chosen = interleave(&spans, &rows)?;
    Ok(match is_one {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&chosen, 0)?),
        false => ColumnarValue::Array(chosen),
    })
}

/// Of a number of microseconds in a minute.
pub const PART_DIGITS: u8 = 8;
const NANOS_A_MINUTE: i64 = 60_000_000_000;

/// The microseconds of moments, times and spans since their last whole minute.
pub fn micros(moments: &ArrayRef) -> Planned<Decimal128Array> {
    let of_span = |nanos: i64| i128::from(nanos % NANOS_A_MINUTE / 1_000);
    match moments.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => Ok(moments
            .as_primitive::<IntervalMonthDayNanoType>()
            .unary(|span| of_span(span.nanoseconds))),
        DataType::Duration(_) => {
            let spans = nanos(moments)?;
            let spans = spans.as_primitive::<Decimal128Type>();
            Ok(spans.unary(|nanos| nanos % i128::from(NANOS_A_MINUTE) / 1_000))
        }
        _ => {
            let seconds = date_part(moments, DatePart::Second)?;
            let rest = date_part(moments, DatePart::Nanosecond)?;
            let (seconds, rest) = (seconds.as_primitive(), rest.as_primitive());
            let micros = |second: i32, nanos: i32| {
                Ok(i128::from(second) * 1_000_000 + i128::from(nanos) / 1_000)
            };
            Ok(try_binary::<&Int32Array, &Int32Array, _, Decimal128Type>(
                seconds, rest, micros,
            )?)
        }
    }
}

/// Refuses intervals of which a date would lose something.
pub fn of_whole_days(value: &ColumnarValue) -> Planned<()> {
    let array = match value {
        ColumnarValue::Array(array) => array.clone(),
        ColumnarValue::Scalar(value) => value.to_array()?,
    };
    let is_whole = match array.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let intervals = array.as_primitive::<IntervalMonthDayNanoType>();
            let mut intervals = intervals.iter().flatten();
            intervals.all(|interval| interval.nanoseconds % NANOS_A_DAY == 0)
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let intervals = array.as_primitive::<IntervalDayTimeType>();
            let mut intervals = intervals.iter().flatten();
            intervals.all(|interval| interval.milliseconds % MILLIS_A_DAY == 0)
        }
        _ => true,
    };
    match is_whole {
        true => Ok(()),
        false => Err(errors::through(errors::date_with_hours())),
    }
}

/// Refuses moments that are finer than a microsecond.
pub fn of_whole_micros(value: &ColumnarValue) -> Planned<()> {
    let array = match value {
        ColumnarValue::Array(array) => array.clone(),
        ColumnarValue::Scalar(value) => value.to_array()?,
    };
    let is_whole = match array.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let moments = array.as_primitive::<TimestampNanosecondType>();
            moments.iter().flatten().all(|nanos| nanos % 1_000 == 0)
        }
        _ => true,
    };
    match is_whole {
        true => Ok(()),
        false => Err(errors::through(errors::finer_than_microseconds())),
    }
}
