//! Values of parameters as the sandbox binds them, and what it says about one of them.

use souk_domain::fields::{FieldError, FieldErrors};
use souk_domain::parameters::{self, Kind, Parameter, Raw, Value as Bound};
use souk_domain::sql::Dialect;
use souk_sandbox::{ColumnKind, Fault, RefusedField, Value};

/// What is told of a number that its source would round, so that another one was compared, or take for a whole one, so that `:n / 2` was cut.
const NO_FLOAT: &str = "must be a number that a 64-bit float holds: no float is this one, and the source has no other numbers with a fraction (a parameter of type integer takes whole ones of 64 bits)";

/// The values of an asset's parameters as a source of this dialect takes them; or everything that is wrong. `None`: a seller's API, which takes all.
pub(crate) fn bind(
    parameters: &[Parameter],
    dialect: Option<Dialect>,
    given: &[(&str, Raw<'_>)],
) -> Result<Vec<Bound>, Vec<FieldError>> {
    let bound = parameters::bind(parameters, given)?;
    if dialect != Some(Dialect::Sqlite) {
        return Ok(bound);
    }
    let mut errors = FieldErrors::default();
    for (parameter, value) in parameters.iter().zip(&bound) {
        if matches!(value, Bound::Decimal(_)) {
            errors.add(parameter.field(), "invalid_type", NO_FLOAT);
        }
    }
    errors.or(bound)
}

/// What a caller knows a value by that was bound.
pub(crate) struct Named {
    /// In a sentence: `parameter "season"`.
    pub told: String,
    /// Among the fields of the request: `params.season`.
    pub field: String,
}

/// A fault that is about a value that was bound says which, in the caller's words: the connector only knows its place.
pub(crate) fn named(mut fault: Fault, name: impl Fn(usize) -> Option<Named>) -> Fault {
    let Some(index) = fault.parameter else {
        return fault;
    };
    let name = name(index as usize);
    let told = name.as_ref().map_or("a value", |name| name.told.as_str());
    let message = format!("{told} {}", fault.message);
    let said = std::mem::replace(&mut fault.message, message);
    fault.field = name.map(|name| {
        Box::new(RefusedField {
            name: name.field,
            message: said,
        })
    });
    fault
}

/// The same with the type of one that is not there: an engine may not be able to tell it.
pub(crate) fn declared(parameter: &Parameter, bound: &Bound) -> Value {
    match bound {
        Bound::Null => Value::Null(Some(match parameter.kind() {
            Kind::Boolean => ColumnKind::Boolean,
            Kind::Integer => ColumnKind::Int64,
            Kind::Number => ColumnKind::Float64,
            Kind::String => ColumnKind::Text,
            Kind::Date => ColumnKind::Date,
            Kind::Timestamp => ColumnKind::Timestamp,
        })),
        bound => value(bound),
    }
}

/// A typed value as the sandbox binds it.
pub(crate) fn value(bound: &Bound) -> Value {
    match bound {
        Bound::Null => Value::Null(None),
        Bound::Boolean(value) => Value::Boolean(*value),
        Bound::Integer(value) => Value::Int64(*value),
        Bound::Number(value) => Value::Float64(*value),
        Bound::Decimal(digits) => Value::Decimal(digits.clone()),
        Bound::Text(text) => Value::Text(text.clone()),
        Bound::Date(days) => Value::Date(*days),
        Bound::Timestamp(micros) => Value::Timestamp(*micros),
    }
}

#[cfg(test)]
mod tests {
    use souk_domain::parameters::Definition;

    use super::*;

    /// A source that would round a number is not asked with it.
    #[test]
    fn a_number_that_would_be_rounded_is_refused() {
        let definition = Definition {
            name: "x",
            kind: "number",
            required: None,
            default: None,
            allowed: Vec::new(),
            minimum: None,
            maximum: None,
        };
        let parameters = [Parameter::new("parameters[0]", &definition).unwrap()];
        let of = |dialect, text| bind(&parameters, dialect, &[("x", Raw::Digits(text))]);
        let (fine, whole) = ("1.0000000000000000001", "9007199254740993");
        // SQLite divides whole numbers by cutting.
        for text in [fine, whole] {
            let refused = of(Some(Dialect::Sqlite), text).unwrap_err();
            assert_eq!(refused[0].field, "params.x");
            assert_eq!(refused[0].code, "invalid_type");
            assert!(refused[0].message.contains("no float is this one"));
        }
        for (dialect, text) in [
            (Some(Dialect::Postgres), whole),
            (Some(Dialect::Postgres), fine),
            (Some(Dialect::Opaque), fine),
            (None, fine),
        ] {
            let decimal = Bound::Decimal(text.to_owned());
            assert_eq!(of(dialect, text), Ok(vec![decimal]), "{dialect:?}");
        }
        for (text, float) in [("2.50", 2.5), ("9007199254740994", 9_007_199_254_740_994.0)] {
            let bound = of(Some(Dialect::Sqlite), text);
            assert_eq!(bound, Ok(vec![Bound::Number(float)]));
        }
    }
}
