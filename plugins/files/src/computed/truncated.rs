//! Moments as the beginning of their second, day, month and the like, in their own unit. DataFusion computes in nanoseconds, which do not reach
//! the year 9999, and goes on at the other end of time where a first day is before all that a unit reaches.
//!
//! Start reading at [`Granule`].

use super::nothing;
use crate::errors;
use crate::types::per_second;
use chrono::{DateTime, Datelike, NaiveDate, NaiveTime};
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::error::Result as Planned;
use souk_sdk::Error;

const SECONDS_A_DAY: i64 = 86_400;

/// What moments are the beginnings of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Granule {
    /// So many nanoseconds.
    Length(i64),
    /// It begins on a Monday.
    Week,
    /// So many months, from January on.
    Months(u32),
}

impl Granule {
    /// `None` where DataFusion has none of this name, either.
    pub fn of(name: &str) -> Option<Granule> {
        let seconds = |count: i64| Granule::Length(count * per_second(TimeUnit::Nanosecond));
        Some(match name.to_lowercase().as_str() {
            "microsecond" => Granule::Length(1_000),
            "millisecond" => Granule::Length(1_000_000),
            "second" => seconds(1),
            "minute" => seconds(60),
            "hour" => seconds(3_600),
            "day" => seconds(SECONDS_A_DAY),
            "week" => Granule::Week,
            "month" => Granule::Months(1),
            "quarter" => Granule::Months(3),
            "year" => Granule::Months(12),
            _ => return None,
        })
    }

    /// The first moment of that in which this one is; `None` where its unit does not reach it.
    fn start(self, units: i64, a_second: i64) -> Option<i64> {
        let a_day = SECONDS_A_DAY * a_second;
        match self {
            Granule::Length(nanos) => {
                // A moment is no finer than its unit.
                let length = nanos / (per_second(TimeUnit::Nanosecond) / a_second);
                units.checked_sub(units.rem_euclid(length.max(1)))
            }
            Granule::Week => {
                let day = units.div_euclid(a_day);
                // Time begins on a Thursday.
                (day - (day + 3).rem_euclid(7)).checked_mul(a_day)
            }
            Granule::Months(months) => {
                let day = DateTime::from_timestamp(units.div_euclid(a_second), 0)?.date_naive();
                let month = day.month0() / months * months + 1;
                let first = NaiveDate::from_ymd_opt(day.year(), month, 1)?;
                let seconds = first.and_time(NaiveTime::MIN).and_utc().timestamp();
                seconds.checked_mul(a_second)
            }
        }
    }
}

/// The first moments, in UTC, of those in which these are.
pub fn truncated(moments: &ArrayRef, granule: Granule) -> Planned<ArrayRef> {
    let kind = moments.data_type();
    let DataType::Timestamp(unit, _) = kind else {
        return Err(errors::through(nothing()));
    };
    let a_second = per_second(*unit);
    let units = cast(moments, &DataType::Int64)?;
    let units = units.as_primitive::<Int64Type>();
    let first = units.try_unary::<_, Int64Type, _>(|units| {
        let first = granule.start(units, a_second);
        first.ok_or_else(|| errors::through(out_of_range()))
    })?;
    Ok(cast(&first, kind)?)
}

fn out_of_range() -> Error {
    Error::source_failed(
        "value_out_of_range",
        "date_trunc makes a moment that is before all that its type reaches: CAST(… AS timestamp(6)) what it is given",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_truncated_in_their_own_unit() {
        let seconds = |text: &str| {
            let moment = text.parse::<chrono::NaiveDateTime>().unwrap();
            moment.and_utc().timestamp()
        };
        for (granule, moment, first) in [
            ("second", "9999-12-31T23:59:59", "9999-12-31T23:59:59"),
            ("MINUTE", "1969-12-31T23:59:59", "1969-12-31T23:59:00"),
            ("hour", "9999-12-31T23:59:59", "9999-12-31T23:00:00"),
            ("day", "0001-01-01T00:00:01", "0001-01-01T00:00:00"),
            ("week", "1970-01-04T23:59:59", "1969-12-29T00:00:00"),
            ("week", "1970-01-05T00:00:00", "1970-01-05T00:00:00"),
            ("month", "2400-02-29T12:00:00", "2400-02-01T00:00:00"),
            ("quarter", "9999-12-31T23:59:59", "9999-10-01T00:00:00"),
            ("year", "-0044-03-15T12:00:00", "-0044-01-01T00:00:00"),
        ] {
            let of = Granule::of(granule).unwrap();
            let (moment, first) = (seconds(moment), seconds(first));
            for a_second in [1, 1_000, 1_000_000] {
                // The end of a second is in the same one.
                let moment = moment * a_second + (a_second - 1);
                let wanted = Some(first * a_second);
                let found = of.start(moment, a_second);
                assert_eq!(found, wanted, "{granule} of {moment}");
            }
        }
        let nanos = 1_000_000_000;
        for granule in ["microsecond", "day", "week", "month", "year"] {
            let of = Granule::of(granule).unwrap();
            assert_eq!(of.start(i64::MIN, nanos), None, "{granule}");
        }
        assert_eq!(Granule::Months(1).start(i64::MAX, 1), None);
        assert_eq!(Granule::of("century"), None);
    }
}
