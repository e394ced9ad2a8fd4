//! Parameters of an asset: how a seller defines them, and how a caller's values become typed.
//!
//! Knows no JSON and no query strings: the edge says what it read as [`Raw`]. All errors of a
//! request are collected, one per field.

use std::fmt;

use crate::fields::{FieldError, FieldErrors};
use crate::moments;
use crate::numbers::{self, Number};
use crate::sql::is_name;
use crate::time::DAY_MICROS;

/// More would not fit in a form that anybody fills in.
pub const PARAMETERS_MAX: usize = 50;
pub const ENUM_VALUES_MAX: usize = 200;
/// Values that are given at once, ones that no product has included: each is looked for among all parameters.
const GIVEN_MAX: usize = 2 * PARAMETERS_MAX;
/// 2025-01-01.
const EXAMPLE_DAY: i32 = 20_089;
/// Longest text a caller may pass.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Number,
    String,
    Boolean,
    Date,
    Timestamp,
}

impl Kind {
    pub fn of(word: &str) -> Option<Kind> {
        Some(match word {
            "integer" => Kind::Integer,
            "number" => Kind::Number,
            "string" => Kind::String,
            "boolean" => Kind::Boolean,
            "date" => Kind::Date,
            "timestamp" => Kind::Timestamp,
            _ => return None,
        })
    }

    pub fn word(self) -> &'static str {
        match self {
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::String => "string",
            Kind::Boolean => "boolean",
            Kind::Date => "date",
            Kind::Timestamp => "timestamp",
        }
    }

    /// What a caller should have written.
    fn expectation(self) -> &'static str {
        match self {
            Kind::Integer => "must be a whole number",
            Kind::Number => numbers::NO_NUMBER,
            Kind::String => "must be a string",
            Kind::Boolean => "must be true or false",
            Kind::Date => moments::DATE,
            Kind::Timestamp => moments::TIMESTAMP,
        }
    }
}

/// A value that has its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    Number(f64),
    /// A number that no float is, in plain digits.
    Decimal(String),
    Text(String),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Timestamp(i64),
}

impl Value {
    /// Order within one type, for `minimum` and `maximum`.
    fn precedes(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Integer(a), Value::Integer(b)) => a < b,
            (Value::Number(a), Value::Number(b)) => a < b,
            (Value::Number(a), Value::Decimal(b)) => numbers::order_of_float(*a, b).is_lt(),
            (Value::Decimal(a), Value::Number(b)) => numbers::order_of_float(*b, a).is_gt(),
            (Value::Decimal(a), Value::Decimal(b)) => numbers::order(a, b).is_lt(),
            (Value::Text(a), Value::Text(b)) => a < b,
            (Value::Date(a), Value::Date(b)) => a < b,
            (Value::Timestamp(a), Value::Timestamp(b)) => a < b,
            _ => false,
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Value {
        match number {
            Number::Float(value) => Value::Number(value),
            Number::Digits(digits) => Value::Decimal(digits),
        }
    }
}

/// As it is written to people, and to a seller's API in a JSON string where it is no JSON literal.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Boolean(v) => write!(f, "{v}"),
            Value::Integer(v) => write!(f, "{v}"),
            Value::Number(v) => write!(f, "{v}"),
            Value::Decimal(v) | Value::Text(v) => f.write_str(v),
            Value::Date(days) => match date_of_days(*days) {
                Some(date) => write!(f, "{date}"),
                None => write!(f, "{days}"),
            },
            Value::Timestamp(micros) => match jiff::Timestamp::from_microsecond(*micros) {
                Ok(timestamp) => write!(f, "{timestamp}"),
                Err(_) => write!(f, "{micros}"),
            },
        }
    }
}

/// A value as the edge read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Raw<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Not a whole number, or beyond 64 bits.
    Number(f64),
    /// The same as it was written, where a float may be another one.
    Digits(&'a str),
    Text(&'a str),
    /// An array or an object.
    Other,
    /// From a query string: read by the parameter's type.
    Query(&'a str),
}

/// One parameter of an asset. Made by [`Parameter::new`] and [`Parameter::saved`] only, so its default and its bounds hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    name: String,
    kind: Kind,
    /// Null may be given, and is what is bound where nothing is given and there is no default. A default alone allows leaving it out, not null: the
    /// seller's statement may have no answer to that.
    nullable: bool,
    default: Option<Value>,
    /// Empty: everything.
    allowed: Vec<Value>,
    minimum: Option<Value>,
    maximum: Option<Value>,
}

/// A parameter as the seller wrote it.
#[derive(Clone, Debug)]
pub struct Definition<'a> {
    pub name: &'a str,
    pub kind: &'a str,
    pub required: Option<bool>,
    pub default: Option<Raw<'a>>,
    pub allowed: Vec<Raw<'a>>,
    pub minimum: Option<Raw<'a>>,
    pub maximum: Option<Raw<'a>>,
}

impl Parameter {
    /// `field` is where the definition stands, for the errors: `parameters[0]`.
    pub fn new(field: &str, definition: &Definition<'_>) -> Result<Parameter, Vec<FieldError>> {
        let parameter = Parameter::saved(field, definition)?;
        let mut errors = FieldErrors::default();
        for (index, value) in parameter.allowed.iter().enumerate() {
            if let Err(error) = parameter.bounded(value) {
                let field = format!("{field}.enum[{index}]");
                let message = format!("{}, as nobody could give it", error.message);
                errors.add(field, error.code, message);
            }
        }
        errors.or(parameter)
    }

    /// One that is saved already. Of those there are some with an `enum` that goes beyond their bounds: what is within both is taken, as it always was.
    pub fn saved(field: &str, definition: &Definition<'_>) -> Result<Parameter, Vec<FieldError>> {
        let mut errors = FieldErrors::default();
        if !is_name(definition.name) {
            let message =
                "must consist of letters, digits and _, at most 63, and begin with a letter or _";
            errors.add(format!("{field}.name"), "invalid", message);
        }
        let Some(kind) = Kind::of(definition.kind) else {
            let message = "must be one of integer, number, string, boolean, date, timestamp";
            errors.add(format!("{field}.type"), "invalid", message);
            return Err(errors.into_vec());
        };
        if definition.allowed.len() > ENUM_VALUES_MAX {
            errors.add(
                format!("{field}.enum"),
                "too_many",
                format!("has more than {ENUM_VALUES_MAX} values"),
            );
        }
        let mut typed = |part: &str, raw: &Raw<'_>| match read(kind, raw) {
            Ok(value) => Some(value),
            Err(message) => {
                errors.add(format!("{field}.{part}"), "invalid_type", message);
                None
            }
        };
        let allowed: Vec<Value> = definition
            .allowed
            .iter()
            .filter_map(|raw| typed("enum", raw))
            .collect();
        let minimum = definition
            .minimum
            .as_ref()
            .and_then(|raw| typed("minimum", raw));
        let maximum = definition
            .maximum
            .as_ref()
            .and_then(|raw| typed("maximum", raw));
        let default = match &definition.default {
            None | Some(Raw::Null) => None,
            Some(raw) => typed("default", raw),
        };
        if kind == Kind::Boolean && (minimum.is_some() || maximum.is_some()) {
            errors.add(field, "invalid", "a boolean has no minimum or maximum");
        }
        if let (Some(minimum), Some(maximum)) = (&minimum, &maximum)
            && maximum.precedes(minimum)
        {
            errors.add(
                format!("{field}.maximum"),
                "out_of_range",
                "must not be less than the minimum",
            );
        }
        let parameter = Parameter {
            name: definition.name.to_owned(),
            kind,
            nullable: definition.required == Some(false),
            default,
            allowed,
            minimum,
            maximum,
        };
        if let Some(Err(mut error)) = parameter
            .default
            .as_ref()
            .map(|value| parameter.bounded(value))
        {
            error.field = format!("{field}.default");
            errors.push(error);
        }
        errors.or(parameter)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where a caller gives its value.
    pub fn field(&self) -> String {
        format!("params.{}", self.name)
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether a call without it is refused.
    pub fn is_required(&self) -> bool {
        self.default.is_none() && !self.nullable
    }

    /// Whether a caller may give this value.
    pub fn takes(&self, raw: &Raw<'_>) -> bool {
        self.bind(Some(raw)).is_ok()
    }

    /// A value that is within the bounds, for trying a product whose caller must choose one; `None`
    /// where the caller need not.
    pub fn example(&self) -> Option<Value> {
        if !self.is_required() {
            return None;
        }
        let mut allowed = self.allowed.iter();
        let chosen = allowed
            .find(|value| self.bounded(value).is_ok())
            .or(self.minimum.as_ref())
            .or(self.maximum.as_ref());
        Some(chosen.cloned().unwrap_or_else(|| match self.kind {
            Kind::Integer => Value::Integer(1),
            Kind::Number => Value::Number(1.0),
            Kind::String => Value::Text(String::new()),
            Kind::Boolean => Value::Boolean(true),
            Kind::Date => Value::Date(EXAMPLE_DAY),
            Kind::Timestamp => Value::Timestamp(i64::from(EXAMPLE_DAY) * DAY_MICROS),
        }))
    }

    /// The value for this parameter, when the caller gave `raw`.
    fn bind(&self, raw: Option<&Raw<'_>>) -> Result<Value, FieldError> {
        let value = match raw {
            None => match (&self.default, self.nullable) {
                (Some(default), _) => return Ok(default.clone()),
                (None, true) => return Ok(Value::Null),
                (None, false) => return Err(self.error("required", "is required")),
            },
            Some(Raw::Null) if self.nullable => return Ok(Value::Null),
            Some(Raw::Null) => return Err(self.error("required", self.instead_of_null())),
            Some(raw) => {
                read(self.kind, raw).map_err(|message| self.error("invalid_type", message))?
            }
        };
        self.bounded(&value)?;
        Ok(value)
    }

    fn instead_of_null(&self) -> &'static str {
        match self.default {
            Some(_) => "must not be null: leave it out, and its default is taken",
            None => "must not be null",
        }
    }

    fn bounded(&self, value: &Value) -> Result<(), FieldError> {
        if !self.allowed.is_empty() && !self.allowed.contains(value) {
            let allowed = self
                .allowed
                .iter()
                .take(20)
                .map(Value::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            return Err(self.error("not_allowed", format!("must be one of {allowed}")));
        }
        if let Some(minimum) = self
            .minimum
            .as_ref()
            .filter(|minimum| value.precedes(minimum))
        {
            return Err(self.error("out_of_range", format!("must not be less than {minimum}")));
        }
        if let Some(maximum) = self
            .maximum
            .as_ref()
            .filter(|maximum| maximum.precedes(value))
        {
            return Err(self.error(
                "out_of_range",
                format!("must not be greater than {maximum}"),
            ));
        }
        Ok(())
    }

    fn error(&self, code: &'static str, message: impl Into<String>) -> FieldError {
        FieldError::new(self.field(), code, message)
    }
}

/// The typed values, in the order of the definitions; or everything that is wrong.
pub fn bind(
    parameters: &[Parameter],
    given: &[(&str, Raw<'_>)],
) -> Result<Vec<Value>, Vec<FieldError>> {
    if given.len() > GIVEN_MAX {
        let message = format!("has more than {GIVEN_MAX} members");
        return Err(vec![FieldError::new("params", "too_many", message)]);
    }
    let mut errors = FieldErrors::default();
    let mut values = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        let mut matching = given.iter().filter(|(name, _)| *name == parameter.name);
        let raw = matching.next().map(|(_, raw)| raw);
        if matching.next().is_some() {
            errors.push(parameter.error("duplicate", "is given more than once"));
        }
        match parameter.bind(raw) {
            Ok(value) => values.push(value),
            Err(error) => errors.push(error),
        }
    }
    let mut are_told = false;
    for (name, _) in given
        .iter()
        .filter(|(name, _)| !parameters.iter().any(|parameter| parameter.name == *name))
    {
        let shown: String = name.chars().take(63).collect();
        let mut message = "is not a parameter of this product".to_owned();
        // Once: they may be three kilobytes, and a hundred names may be wrong.
        if !std::mem::replace(&mut are_told, true) {
            message.push_str(&known(parameters));
        }
        errors.add(format!("params.{shown}"), "unknown", message);
    }
    errors.or(values)
}

/// What there is instead of a parameter that nobody knows.
fn known(parameters: &[Parameter]) -> String {
    let names: Vec<&str> = parameters.iter().map(Parameter::name).collect();
    match names.is_empty() {
        true => ", which takes none".to_owned(),
        false => format!(", which takes {}", names.join(", ")),
    }
}

/// Reads one value as `kind`.
pub fn read(kind: Kind, raw: &Raw<'_>) -> Result<Value, String> {
    let value = match *raw {
        Raw::Query(text) => Some(read_text(kind, text)?),
        Raw::Text(text) => match kind {
            Kind::String | Kind::Date | Kind::Timestamp => Some(read_text(kind, text)?),
            Kind::Integer | Kind::Number | Kind::Boolean => None,
        },
        Raw::Boolean(value) if kind == Kind::Boolean => Some(Value::Boolean(value)),
        Raw::Integer(value) if kind == Kind::Integer => Some(Value::Integer(value)),
        Raw::Integer(value) if kind == Kind::Number => Some(numbers::whole(value)?.into()),
        Raw::Digits(text) if kind == Kind::Integer => integer(text).map(Value::Integer),
        Raw::Digits(text) if kind == Kind::Number => Some(numbers::read(text)?.into()),
        // JSON knows one kind of number: 3.0 is a whole one.
        Raw::Number(value)
            if kind == Kind::Integer
                && value.fract() == 0.0
                && value.abs() < 9_007_199_254_740_992.0 =>
        {
            Some(Value::Integer(value as i64))
        }
        Raw::Number(value) if kind == Kind::Number && value.is_finite() => {
            Some(Value::Number(value))
        }
        Raw::Null
        | Raw::Boolean(_)
        | Raw::Integer(_)
        | Raw::Number(_)
        | Raw::Digits(_)
        | Raw::Other => None,
    };
    match value {
        Some(Value::Text(text)) if text.len() > TEXT_BYTES_MAX => {
            Err(format!("must not be longer than {TEXT_BYTES_MAX} bytes"))
        }
        Some(Value::Text(text)) if text.contains('\0') => {
            Err("must not contain a NUL character".to_owned())
        }
        Some(value) => Ok(value),
        None => Err(kind.expectation().to_owned()),
    }
}

fn read_text(kind: Kind, text: &str) -> Result<Value, &'static str> {
    let value = match kind {
        Kind::String => Some(Value::Text(text.to_owned())),
        Kind::Integer => integer(text).map(Value::Integer),
        Kind::Number => Some(numbers::read(text)?.into()),
        Kind::Boolean => match text {
            "true" | "1" => Some(Value::Boolean(true)),
            "false" | "0" => Some(Value::Boolean(false)),
            _ => None,
        },
        // Years of four digits.
        Kind::Date if text.len() == 10 => Some(Value::Date(moments::date(text)?)),
        Kind::Date => None,
        Kind::Timestamp => Some(Value::Timestamp(moments::common_timestamp(text)?)),
    };
    value.ok_or(kind.expectation())
}

/// The integer that a number with a fraction or an exponent is, computed on its digits. A double would spoil the large ones.
pub fn integer(number: &str) -> Option<i64> {
    // Nearly all are written plainly. Rust's has a plus that JSON has not.
    if let (false, Ok(plain)) = (number.starts_with('+'), number.parse()) {
        return Some(plain);
    }
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (minus, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_end_matches('0');
    let zeros = digits.len() - significant.len();
    let power = i64::from(exponent) - fraction.len() as i64 + zeros as i64;
    match significant {
        "" => Some(0),
        // No integer of 64 bits has more digits.
        _ if !(0..20).contains(&power) => None,
        _ => format!("{minus}{significant}{}", "0".repeat(power as usize))
            .parse()
            .ok(),
    }
}

fn date_of_days(days: i32) -> Option<jiff::civil::Date> {
    let span = jiff::Span::new().try_days(days).ok()?;
    jiff::civil::date(1970, 1, 1).checked_add(span).ok()
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
