//! Bound values on their way into texts, as literals or beside the statement: what connectors have in common that write them. A value that an
//! engine's types do not have is the caller's mistake: what writes it says what it should have been, and [`each`] of which value that is told.

use crate::statements::callers_values;
use crate::time::{DAY_US, Date, TimeOfDay};
use crate::{Error, Value};
use std::fmt;

/// Years of which engines read a text without doubt.
const YEARS: std::ops::RangeInclusive<i64> = 1..=9999;
/// Digits that decimals of most engines have.
const DIGITS_MAX: usize = 38;
/// A longer value is in no error as a whole.
const SHOWN_BYTES_MAX: usize = 1_000;

/// Each value as `write` writes it. Its error is what the value should have been.
pub fn each<T>(
    values: &[Value],
    write: impl Fn(&Value) -> Result<T, &'static str>,
) -> Result<Vec<T>, Error> {
    let values = values.iter().enumerate();
    let values = values.map(|(place, value)| write(value).map_err(|wanted| refused(place, wanted)));
    values.collect()
}

/// The error of the value at this place, the first one being 0, which should have been what is `wanted`.
pub fn refused(place: usize, wanted: &str) -> Error {
    Error::invalid_request("parameter_type", format!("must be {wanted}")).parameter(place)
}

/// The caller's values, as an error of an engine's may quote them. Those of the page are the host's own.
pub fn callers(text: &str, values: &[Value]) -> Vec<String> {
    let callers = values.iter().take(callers_values(text, values.len()));
    callers.filter_map(shown).collect()
}

/// Values as an error of an engine's may quote them.
pub fn all_shown(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(shown).collect()
}

fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Int64(value) => Some(value.to_string()),
        Value::Float64(value) => Some(float(*value, "nan", "inf")),
        Value::Text(text) | Value::Json(text) | Value::Decimal(text)
            if text.len() <= SHOWN_BYTES_MAX =>
        {
            Some(text.clone())
        }
        _ => None,
    }
}

/// The shortest digits that say a number; what is none, and what is beyond all of them, has a word of the engine's own.
pub fn float(value: f64, not_a_number: &str, infinity: &str) -> String {
    match value {
        value if value.is_nan() => not_a_number.to_owned(),
        f64::INFINITY => infinity.to_owned(),
        f64::NEG_INFINITY => format!("-{infinity}"),
        value => format!("{value:e}"),
    }
}

/// A number of at most 38 digits. Written as it came, but for a `+`, and a point that nothing stands behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal<'a> {
    /// `-`, or nothing.
    pub sign: &'static str,
    /// Before the point, zeros and all.
    pub whole: &'a str,
    /// Behind it; nothing where there is none.
    pub fraction: &'a str,
}

impl<'a> Decimal<'a> {
    /// The error is what it should have been.
    pub fn of(text: &'a str) -> Result<Decimal<'a>, &'static str> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let number = Decimal {
            sign,
            whole,
            fraction,
        };
        let is_one = !whole.is_empty() && is_number(whole) && is_number(fraction);
        match is_one && number.digits() <= DIGITS_MAX {
            true => Ok(number),
            false => Err("a number of at most 38 digits"),
        }
    }

    /// How many digits it has, zeros before it left out.
    pub fn digits(&self) -> usize {
        self.whole.trim_start_matches('0').len() + self.fraction.len()
    }
}

impl fmt::Display for Decimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.sign, self.whole)?;
        match self.fraction {
            "" => Ok(()),
            fraction => write!(f, ".{fraction}"),
        }
    }
}

/// A day by its number since 1970-01-01. The error is what it should have been.
pub fn date(days: i32) -> Result<Date, &'static str> {
    in_years(i64::from(days)).ok_or("a date of the years 1 to 9999")
}

/// Microseconds since 1970-01-01T00:00:00, in UTC or on a clock of no zone. The error is what they should have been.
pub fn moment(micros: i64) -> Result<i64, &'static str> {
    match in_years(micros.div_euclid(DAY_US)) {
        Some(_) => Ok(micros),
        None => Err("a timestamp of the years 1 to 9999"),
    }
}

/// The same as a clock shows them: `2024-02-29 12:00:00.000000`.
pub fn clock(micros: i64) -> Result<String, &'static str> {
    let micros = moment(micros)?;
    let date = Date::from_days(micros.div_euclid(DAY_US));
    Ok(format!("{date} {}", TimeOfDay::of(micros)))
}

fn in_years(days: i64) -> Option<Date> {
    Some(Date::from_days(days)).filter(|date| YEARS.contains(&date.year))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first value that is refused is told by its place.
    #[test]
    fn a_value_is_refused_by_its_place() {
        let write = |value: &Value| match value {
            Value::Int64(value) => Ok(*value),
            _ => Err("a whole number"),
        };
        let numbers = [Value::Int64(1), Value::Int64(2)];
        assert_eq!(each(&numbers, write).unwrap(), [1, 2]);
        let error = each(&[Value::Int64(1), Value::Boolean(true)], write).unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.parameter),
            ("parameter_type", Some(1))
        );
        assert_eq!(error.message, "must be a whole number");
    }

    /// Neither the page's values are quoted, nor what is long or was not written as a text.
    #[test]
    fn what_is_quoted_is_the_callers() {
        let values = [
            Value::Text("a".to_owned()),
            Value::Boolean(true),
            Value::Json("x".repeat(1_001)),
            Value::Decimal("0.10".to_owned()),
            Value::Int64(7),
            Value::Float64(1e300),
        ];
        let paged = "SELECT ?, ?, ?, ?\nLIMIT ? OFFSET ?";
        assert_eq!(callers(paged, &values), ["a", "0.10"]);
        assert_eq!(callers("SELECT 1", &values), ["a", "0.10", "7", "1e300"]);
    }

    #[test]
    fn floats_are_written_in_the_engines_words() {
        for (value, written) in [
            (0.1, "1e-1"),
            (-1.5e300, "-1.5e300"),
            (f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float(value, "nan", "inf"), written);
        }
    }

    #[test]
    fn decimals_keep_their_digits() {
        let (whole, zeros) = ("9".repeat(38), "0".repeat(50));
        for (text, written, digits) in [
            ("0", "0", 0),
            ("+007", "007", 1),
            ("-0.10", "-0.10", 2),
            ("5.", "5", 1),
            (whole.as_str(), whole.as_str(), 38),
            (zeros.as_str(), zeros.as_str(), 0),
        ] {
            let number = Decimal::of(text).unwrap();
            assert_eq!(
                (number.to_string().as_str(), number.digits()),
                (written, digits)
            );
        }
        for text in [
            "", "-", "+-1", "-+1", ".5", "1e5", "1.2.3", "NaN", "１", "1.'",
        ] {
            assert!(Decimal::of(text).is_err(), "{text}");
        }
        assert!(Decimal::of(&"9".repeat(39)).is_err());
        assert!(Decimal::of(&format!("0.{}", "0".repeat(39))).is_err());
    }

    /// A day before the first year and one after the last are no dates to most engines.
    #[test]
    fn years_have_bounds() {
        assert_eq!(date(19_782).unwrap().to_string(), "2024-02-29");
        let (first, last) = (-719_162, 2_932_896);
        assert_eq!(date(first).unwrap().to_string(), "0001-01-01");
        assert_eq!(date(last).unwrap().to_string(), "9999-12-31");
        for days in [first - 1, last + 1, i32::MIN, i32::MAX] {
            assert!(date(days).is_err(), "{days}");
        }
        assert_eq!(clock(-1).unwrap(), "1969-12-31 23:59:59.999999");
        let end = (i64::from(last) + 1) * DAY_US;
        assert_eq!(moment(end - 1), Ok(end - 1));
        for micros in [end, i64::from(first) * DAY_US - 1, i64::MIN, i64::MAX] {
            assert!(
                moment(micros).is_err() && clock(micros).is_err(),
                "{micros}"
            );
        }
    }
}
