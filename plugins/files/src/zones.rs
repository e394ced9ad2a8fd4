//! `at AT TIME ZONE 'Europe/Berlin'`, as PostgreSQL has it: of a moment it is what the clocks of the zone show then, a timestamp without a zone;
//! of a timestamp without a zone it is the moment at which the clocks there show it.
//!
//! DataFusion makes a moment of either, in nanoseconds, which do not reach the year 9999; it fails at an hour that the clocks leave out or show
//! twice; it takes no zone that is not written down; and where PostgreSQL reads `+03:00` as west of Greenwich, it reads east. Statements are
//! rewritten to call the function that PostgreSQL has for it, `timezone(zone, at)`. What it is given is looked at when parameters are bound.
//!
//! Start reading at [`Shown`] and [`Zone`].

use crate::errors;
use crate::plans;
use crate::types::per_second;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Offset, TimeDelta, TimeZone};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, PrimitiveBuilder, StringArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    self as logical, ColumnarValue, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Statement, Value, visit_expressions, visit_expressions_mut,
};
use souk_sdk::Error;
use std::ops::ControlFlow;
use std::sync::Arc;

/// PostgreSQL's name of the function.
pub const NAME: &str = "timezone";
const UTC: &str = "UTC";
/// What a text, a date or NULL is read as: a moment in UTC.
const MOMENT: TimeUnit = TimeUnit::Microsecond;

/// The last year whose changes of clocks are known one by one.
const YEAR_MAX: i32 = 2099;
/// Of so many years in a row each begins with another day of the week or is a leap year, or is not, until all kinds were there.
const YEARS: i32 = 28;
/// Clocks that are put forward leave out no more. Samoa left out a whole day.
const GAP_HOURS_MAX: i64 = 25;

/// Whether a statement puts something into a zone. What that is written as has another name.
pub fn are_named(statement: &Statement) -> bool {
    let found = visit_expressions(statement, |expression| match expression {
        Expr::AtTimeZone { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Writes the function for each `AT TIME ZONE`.
pub fn rewrite(statement: &mut Statement) {
    // Inner ones first.
    let _: ControlFlow<()> = visit_expressions_mut(statement, |expression| {
        if let Expr::AtTimeZone {
            timestamp,
            time_zone,
        } = expression
        {
            let nothing = || Expr::value(Value::Null);
            let moment = std::mem::replace(timestamp.as_mut(), nothing());
            let zone = std::mem::replace(time_zone.as_mut(), nothing());
            *expression = called(vec![zone, moment]);
        }
        ControlFlow::Continue(())
    });
}

fn called(values: Vec<Expr>) -> Expr {
    let values = values.into_iter();
    let values = values.map(|value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(NAME)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: values.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A call whose zone is one and whose moment is one, or the reason why it is none. A text that is written down is a moment in UTC, unless it says
/// otherwise.
pub fn checked(call: ScalarFunction, schema: &DFSchema) -> Planned<Transformed<logical::Expr>> {
    let ScalarFunction { func, mut args } = call;
    let refused = |error: Error| Err(errors::through(error));
    let mut has_changed = false;
    if let [zone, moment] = args.as_mut_slice() {
        match zone.get_type(schema)? {
            DataType::Null | DataType::Interval(_) => {}
            kind if kind.is_string() => {
                if let logical::Expr::Literal(name, _) = zone
                    && let Some(name) = name.try_as_str().flatten()
                    && let Err(error) = Zone::of(name)
                {
                    return refused(error);
                }
            }
            _ => return refused(no_zone()),
        }
        match moment.get_type(schema)? {
            // What is of no row has no more digits than it is told with, and years beyond those of nanoseconds.
            DataType::Timestamp(TimeUnit::Nanosecond, its_zone) if plans::is_of_no_row(moment) => {
                let value = std::mem::take(moment);
                *moment = logical::cast(value, DataType::Timestamp(MOMENT, its_zone));
                has_changed = true;
            }
            DataType::Timestamp(..) | DataType::Date32 | DataType::Null => {}
            kind if kind.is_string() && matches!(moment, logical::Expr::Literal(..)) => {
                let text = std::mem::take(moment);
                *moment = logical::cast(text, DataType::Timestamp(MOMENT, Some(UTC.into())));
                has_changed = true;
            }
            _ => return refused(no_moment()),
        }
    }
    let call = logical::Expr::ScalarFunction(ScalarFunction::new_udf(func, args));
    Ok(Transformed::new_transformed(call, has_changed))
}

/// The function.
pub fn function() -> ScalarUDF {
    ScalarUDF::from(Shown {
        signature: Signature::any(2, Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Shown {
    signature: Signature,
}

impl ScalarUDFImpl for Shown {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Planned<DataType> {
        Ok(match kinds.get(1) {
            Some(DataType::Timestamp(unit, zone)) => shown(*unit, zone.is_some()),
            _ => shown(MOMENT, true),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Planned<ColumnarValue> {
        let [zones, moments] = args.args.as_slice() else {
            return Err(errors::through(no_moment()));
        };
        let is_one = matches!(
            (zones, moments),
            (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_))
        );
        let rows = if is_one { 1 } else { args.number_rows };
        let moments = moments.to_array(rows)?;
        let moments = match moments.data_type() {
            DataType::Timestamp(..) => moments,
            DataType::Date32 | DataType::Null => {
                cast(&moments, &DataType::Timestamp(MOMENT, Some(UTC.into())))?
            }
            _ => return Err(errors::through(no_moment())),
        };
        let mut zones = Zones::of(&zones.to_array(rows)?)?;
        let moved = match moments.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => {
                moved::<TimestampSecondType>(&moments, &mut zones)
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                moved::<TimestampMillisecondType>(&moments, &mut zones)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                moved::<TimestampMicrosecondType>(&moments, &mut zones)
            }
            _ => moved::<TimestampNanosecondType>(&moments, &mut zones),
        }?;
        Ok(match is_one {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&moved, 0)?),
            false => ColumnarValue::Array(moved),
        })
    }
}

/// What a moment is as clocks show it, and what they show as a moment.
fn shown(unit: TimeUnit, is_moment: bool) -> DataType {
    DataType::Timestamp(unit, (!is_moment).then(|| UTC.into()))
}

/// Moments as clocks show them, or the moments of what clocks show.
fn moved<T: ArrowPrimitiveType<Native = i64>>(
    moments: &ArrayRef,
    zones: &mut Zones,
) -> Planned<ArrayRef> {
    let DataType::Timestamp(unit, shown_in) = moments.data_type() else {
        return Err(errors::through(no_moment()));
    };
    let (a_second, kind) = (per_second(*unit), shown(*unit, shown_in.is_some()));
    let moments: &PrimitiveArray<T> = moments.as_primitive();
    let mut moved = PrimitiveBuilder::<T>::with_capacity(moments.len());
    for row in 0..moments.len() {
        let zone = match moments.is_valid(row) {
            true => zones.at(row)?,
            false => None,
        };
        let Some(zone) = zone else {
            moved.append_null();
            continue;
        };
        let units = moments.value(row);
        let seconds = units.div_euclid(a_second);
        let there = match shown_in {
            Some(_) => zone.ahead_at(seconds).and_then(|ahead| {
                let ahead = ahead.checked_mul(a_second)?;
                units.checked_add(ahead)
            }),
            None => zone.ahead_where_shown(seconds).and_then(|ahead| {
                let ahead = ahead.checked_mul(a_second)?;
                units.checked_sub(ahead)
            }),
        };
        moved.append_value(there.ok_or_else(|| errors::through(out_of_range()))?);
    }
    Ok(Arc::new(moved.finish().with_data_type(kind)))
}

/// The zones of rows, of which the next one is often the same.
enum Zones {
    Named(StringArray, Option<(String, Zone)>),
    Ahead(PrimitiveArray<IntervalMonthDayNanoType>),
}

impl Zones {
    fn of(zones: &ArrayRef) -> Planned<Zones> {
        Ok(match zones.data_type() {
            DataType::Interval(_) => {
                let kind = DataType::Interval(IntervalUnit::MonthDayNano);
                let spans = cast(zones, &kind)?;
                Zones::Ahead(spans.as_primitive::<IntervalMonthDayNanoType>().clone())
            }
            _ => {
                let names = cast(zones, &DataType::Utf8)?;
                Zones::Named(names.as_string::<i32>().clone(), None)
            }
        })
    }

    fn at(&mut self, row: usize) -> Planned<Option<Zone>> {
        match self {
            Zones::Ahead(spans) if spans.is_valid(row) => Zone::ahead(spans.value(row)).map(Some),
            Zones::Named(names, last) if names.is_valid(row) => {
                let name = names.value(row);
                if let Some((before, zone)) = last
                    && before.as_str() == name
                {
                    return Ok(Some(*zone));
                }
                let zone = Zone::of(name).map_err(errors::through)?;
                *last = Some((name.to_owned(), zone));
                Ok(Some(zone))
            }
            _ => Ok(None),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Zone {
    Named(Tz),
    /// By so many seconds, always.
    Ahead(i64),
}

impl Zone {
    /// Zones have names of a place, `Europe/Berlin`. What else PostgreSQL takes for one is refused, since it is not what it looks like: it reads
    /// `+03:00` as west, as POSIX does, and `CET` as one hour, in summer, too.
    fn of(name: &str) -> Result<Zone, Error> {
        if [UTC, "GMT", "Z"]
            .iter()
            .any(|utc| name.eq_ignore_ascii_case(utc))
        {
            return Ok(Zone::Ahead(0));
        }
        if name.starts_with(['+', '-']) || name.starts_with(|sign: char| sign.is_ascii_digit()) {
            return Err(sign_of_posix());
        }
        match name.parse() {
            Ok(zone) if name.contains('/') => Ok(Zone::Named(zone)),
            _ => Err(no_zone()),
        }
    }

    /// `INTERVAL '3 hours'`, east of Greenwich.
    fn ahead(span: IntervalMonthDayNano) -> Planned<Zone> {
        match (span.months, span.days) {
            (0, 0) => Ok(Zone::Ahead(
                span.nanoseconds / per_second(TimeUnit::Nanosecond),
            )),
            _ => Err(errors::through(no_zone())),
        }
    }

    /// Seconds by which its clocks are ahead of UTC at a moment.
    fn ahead_at(self, seconds: i64) -> Option<i64> {
        match self {
            Zone::Ahead(ahead) => Some(ahead),
            Zone::Named(zone) => {
                let at = known(clock(seconds)?)?;
                Some(
                    zone.offset_from_utc_datetime(&at)
                        .fix()
                        .local_minus_utc()
                        .into(),
                )
            }
        }
    }

    /// The same when its clocks show this. What they show twice they show the second time; what they leave out they would show had they not been
    /// put forward.
    fn ahead_where_shown(self, seconds: i64) -> Option<i64> {
        match self {
            Zone::Ahead(ahead) => Some(ahead),
            Zone::Named(zone) => {
                let shown = known(clock(seconds)?)?;
                let offset = (0..=GAP_HOURS_MAX).find_map(|hours| {
                    let before = shown.checked_sub_signed(TimeDelta::hours(hours))?;
                    zone.offset_from_local_datetime(&before).latest()
                })?;
                Some(offset.fix().local_minus_utc().into())
            }
        }
    }
}

fn clock(seconds: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp(seconds, 0).map(|at| at.naive_utc())
}

/// The same day of a year whose changes are known. What changes later is as in one that has the same days of the week.
fn known(at: NaiveDateTime) -> Option<NaiveDateTime> {
    let year = at.year();
    if year <= YEAR_MAX {
        return Some(at);
    }
    let begins = |year: i32| {
        let first = NaiveDate::from_ymd_opt(year, 1, 1)?;
        Some((first.weekday(), first.leap_year()))
    };
    let wanted = begins(year)?;
    let mut years = (YEAR_MAX - YEARS + 1..=YEAR_MAX).rev();
    let alike = years.find(|other| begins(*other) == Some(wanted))?;
    at.with_year(alike)
}

fn no_zone() -> Error {
    Error::source_failed(
        "zone_unknown",
        "AT TIME ZONE has a zone that is not known: 'Europe/Berlin', capital letters as they are, or 'UTC'; for an abbreviation like CET, and for any distance east of Greenwich, INTERVAL '1 hour'",
    )
}

fn sign_of_posix() -> Error {
    Error::source_failed(
        "zone_with_sign",
        "AT TIME ZONE has a distance written as a text, which PostgreSQL reads as west of Greenwich where it has a plus: INTERVAL '3 hours' is east, INTERVAL '-3 hours' west",
    )
}

fn no_moment() -> Error {
    Error::source_failed(
        "zone_of_no_moment",
        "AT TIME ZONE stands behind what is no moment: CAST(… AS timestamp) what clocks in the zone show, or CAST(… AS timestamptz) a moment",
    )
}

fn out_of_range() -> Error {
    Error::source_failed(
        "value_out_of_range",
        "AT TIME ZONE makes a moment that is outside of what its type reaches: CAST(… AS timestamp(6)) before it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(moment: &str) -> i64 {
        let moment = moment.parse::<NaiveDateTime>().unwrap();
        moment.and_utc().timestamp()
    }

    /// As PostgreSQL 15 has them.
    #[test]
    fn clocks_are_those_of_the_zone() {
        for (zone, moment, shown) in [
            (
                "Europe/Berlin",
                "2026-01-15T11:00:00",
                "2026-01-15T12:00:00",
            ),
            (
                "Europe/Berlin",
                "2026-07-15T10:00:00",
                "2026-07-15T12:00:00",
            ),
            (
                "Europe/Berlin",
                "2100-07-15T10:00:00",
                "2100-07-15T12:00:00",
            ),
            (
                "Europe/Berlin",
                "9999-12-31T22:59:59",
                "9999-12-31T23:59:59",
            ),
            (
                "America/New_York",
                "2400-02-29T12:00:00",
                "2400-02-29T07:00:00",
            ),
            (
                "Australia/Sydney",
                "2150-01-01T00:00:00",
                "2150-01-01T11:00:00",
            ),
            ("Asia/Kolkata", "1969-12-31T23:59:59", "1970-01-01T05:29:59"),
            ("utc", "2026-07-15T10:00:00", "2026-07-15T10:00:00"),
        ] {
            let zone = Zone::of(zone).unwrap();
            let (moment, shown) = (seconds(moment), seconds(shown));
            assert_eq!(zone.ahead_at(moment), Some(shown - moment), "{zone:?}");
            assert_eq!(
                zone.ahead_where_shown(shown),
                Some(shown - moment),
                "{zone:?}"
            );
        }
    }

    /// An hour that is left out, one that is there twice, and a day that is left out.
    #[test]
    fn clocks_that_are_put_forward_and_back_show_one_moment() {
        for (zone, shown, moment) in [
            (
                "Europe/Berlin",
                "2026-03-29T02:30:00",
                "2026-03-29T01:30:00",
            ),
            (
                "Europe/Berlin",
                "2026-10-25T02:30:00",
                "2026-10-25T01:30:00",
            ),
            (
                "Europe/Berlin",
                "2126-10-27T02:30:00",
                "2126-10-27T01:30:00",
            ),
            ("Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T22:00:00"),
        ] {
            let ahead = Zone::of(zone).unwrap().ahead_where_shown(seconds(shown));
            assert_eq!(ahead, Some(seconds(shown) - seconds(moment)), "{shown}");
        }
    }

    #[test]
    fn what_postgresql_reads_otherwise_is_no_zone() {
        for (name, code) in [
            ("+03:00", "zone_with_sign"),
            ("-3", "zone_with_sign"),
            ("03", "zone_with_sign"),
            ("CET", "zone_unknown"),
            ("EST", "zone_unknown"),
            ("UTC+3", "zone_unknown"),
            ("Europe/Nowhere", "zone_unknown"),
            ("europe/berlin", "zone_unknown"),
            ("", "zone_unknown"),
        ] {
            assert_eq!(Zone::of(name).unwrap_err().code, code, "{name}");
        }
    }
}
