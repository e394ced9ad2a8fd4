//! Where a value that is written down stands among those that a column may have.
//!
//! Start reading at [`Place`] and [`place`].

use super::moments::{before, beyond};
use super::written;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Operator, and, binary_expr, lit, or};
use souk_sdk::numbers::widened;
use std::cmp::Ordering;

/// Where a value that is written down stands among those that a column may have.
pub enum Place {
    /// It is this one of them.
    At(ScalarValue),
    /// It is none of them: behind this one, before the next.
    Behind(ScalarValue),
}

impl Place {
    pub fn compared(self, column: &Expr, operator: Operator) -> Option<Expr> {
        match self {
            Place::At(value) => Some(binary_expr(column.clone(), operator, lit(value))),
            Place::Behind(last) => beside(column, operator, last),
        }
    }
}

/// `None` where DataFusion finds it by itself.
pub fn place(column: &DataType, value: &Expr, of_value: &DataType) -> Option<Place> {
    match column {
        DataType::Float32 => among_singles(number(&written(value)?)?),
        _ => before(column, value, of_value)
            .or_else(|| beyond(column, value, of_value))
            .map(Place::Behind),
    }
}

/// Of floats of 32 bits the one that is shown as this number, or else the last that is shown as a smaller one.
fn among_singles(number: f64) -> Option<Place> {
    let nearest = number as f32;
    let at = |single| Place::At(ScalarValue::Float32(Some(single)));
    if nearest.is_nan() {
        return Some(at(nearest));
    }
    let (last, next) = (nearest.next_down(), nearest.next_up());
    let shown = [nearest, last, next].into_iter();
    let mut shown = shown.filter(|single| widened(*single) == number);
    if let Some(single) = shown.next() {
        return Some(at(single));
    }
    let last = match widened(nearest).partial_cmp(&number)? {
        Ordering::Less => nearest,
        _ => last,
    };
    Some(Place::Behind(ScalarValue::Float32(Some(last))))
}

/// The float that a number which is no float of 32 bits is.
pub fn number(value: &ScalarValue) -> Option<f64> {
    let kind = value.data_type();
    match value {
        ScalarValue::Float64(number) => *number,
        _ if kind.is_integer() || kind.is_decimal() => digits(value)?.parse().ok(),
        _ => None,
    }
}

fn digits(value: &ScalarValue) -> Option<String> {
    match value.cast_to(&DataType::Utf8).ok()? {
        ScalarValue::Utf8(digits) => digits,
        _ => None,
    }
}

/// The comparison with something between `last` and the next moment of that unit.
pub fn beside(side: &Expr, operator: Operator, last: ScalarValue) -> Option<Expr> {
    let last = lit(last);
    let after = binary_expr(side.clone(), Operator::Gt, last.clone());
    let until = binary_expr(side.clone(), Operator::LtEq, last);
    match operator {
        Operator::Gt | Operator::GtEq => Some(after),
        Operator::Lt | Operator::LtEq => Some(until),
        // Never and always, and NULL where there is none.
        Operator::Eq => Some(and(after, until)),
        Operator::NotEq => Some(or(after, until)),
        Operator::IsDistinctFrom => Some(lit(true)),
        Operator::IsNotDistinctFrom => Some(lit(false)),
        _ => None,
    }
}
