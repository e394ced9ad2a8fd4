//! Values of parameters as the sandbox binds them, and what it says about one of them.

use souk_domain::parameters::{Kind, Parameter, Value as Bound};
use souk_sandbox::{ColumnKind, Fault, RefusedField, Value};

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
    fault.field = name.map(|name| RefusedField {
        name: name.field,
        message: said,
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
        Bound::Text(text) => Value::Text(text.clone()),
        Bound::Date(days) => Value::Date(*days),
        Bound::Timestamp(micros) => Value::Timestamp(*micros),
    }
}
