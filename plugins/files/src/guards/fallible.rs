//! Whether there are values of which something cannot be computed.
//!
//! Start reading at [`may_fail`].

use crate::computed::{Task, plain, task};
use crate::types;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result as Planned;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator};
use std::sync::Arc;

/// Functions that answer whatever they are given.
const SURE: [&str; 19] = [
    "btrim",
    "character_length",
    "concat",
    "contains",
    "date_part",
    "ends_with",
    "greatest",
    "isnan",
    "least",
    "left",
    "lower",
    "ltrim",
    "nullif",
    "octet_length",
    "right",
    "rtrim",
    "starts_with",
    "strpos",
    "upper",
];

/// Whether there are values of which it cannot be computed.
pub fn may_fail(part: &Expr, schema: &DFSchema) -> Planned<bool> {
    part.exists(|part| Ok(!is_sure(part, schema)))
}

/// Whether it can be computed of whatever its parts are.
fn is_sure(part: &Expr, schema: &DFSchema) -> bool {
    match part {
        Expr::Alias(_)
        | Expr::Column(_)
        | Expr::OuterReferenceColumn(..)
        | Expr::Literal(..)
        | Expr::Like(_)
        | Expr::SimilarTo(_)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Between(_)
        | Expr::Case(_)
        | Expr::TryCast(_)
        | Expr::InList(_)
        | Expr::ScalarSubquery(_) => true,
        // What stands left may be long.
        Expr::BinaryExpr(BinaryExpr { op, right, .. }) => match op {
            Operator::Plus
            | Operator::Minus
            | Operator::Multiply
            | Operator::Divide
            | Operator::Modulo => right.get_type(schema).is_ok_and(|kind| kind.is_floating()),
            Operator::StringConcat => true,
            op => op.supports_propagation() || op.is_logic_operator() || is_pattern(*op),
        },
        Expr::Cast(Cast { expr, field }) => expr
            .get_type(schema)
            .is_ok_and(|from| holds(field.data_type(), &from)),
        Expr::ScalarFunction(call) => match task(call) {
            Some(task) => matches!(
                task,
                Task::Level | Task::Span | Task::Even | Task::Part(_) | Task::Opaque
            ),
            None => SURE.contains(&call.name()),
        },
        _ => false,
    }
}

fn is_pattern(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::LikeMatch
            | Operator::ILikeMatch
            | Operator::NotLikeMatch
            | Operator::NotILikeMatch
    )
}

/// Digits of the longest whole number, one of 64 bits without a sign.
const WHOLE_DIGITS: i16 = 20;

/// Whether each value of a type is one of another.
pub fn holds(to: &DataType, from: &DataType) -> bool {
    let (to, from) = (plain(to), plain(from));
    if to == from || from.is_null() {
        return true;
    }
    match (to, from) {
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, from) => {
            from.is_string() || from.is_numeric() || *from == DataType::Boolean
        }
        (DataType::Float64, from) => from.is_numeric(),
        // Clocks that are put forward leave out hours.
        (DataType::Timestamp(to, zone), DataType::Timestamp(from, its_zone)) => {
            to == from && (its_zone.is_some() || has_all_hours(zone.as_ref()))
        }
        (DataType::Timestamp(unit, zone), DataType::Date32) => {
            *unit != TimeUnit::Nanosecond && has_all_hours(zone.as_ref())
        }
        (DataType::Date32, DataType::Timestamp(..)) => true,
        (DataType::Decimal128(digits, scale), from) => {
            let room = i16::from(*digits) - i16::from(*scale);
            match from {
                DataType::Decimal128(digits, less) => {
                    scale >= less && room >= i16::from(*digits) - i16::from(*less)
                }
                from => from.is_integer() && *scale >= 0 && room >= WHOLE_DIGITS,
            }
        }
        (to, from) if to.is_integer() && from.is_integer() => is_wider(to, from),
        _ => false,
    }
}

fn has_all_hours(zone: Option<&Arc<str>>) -> bool {
    zone.is_none_or(|zone| types::is_fixed(zone))
}

fn is_wider(to: &DataType, from: &DataType) -> bool {
    let bytes = |kind: &DataType| kind.primitive_width().unwrap_or_default();
    let signs = (to.is_signed_integer(), from.is_signed_integer());
    match signs {
        (false, true) => false,
        (true, false) => bytes(to) > bytes(from),
        _ => bytes(to) >= bytes(from),
    }
}
