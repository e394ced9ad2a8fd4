//! What a `CASE` compares and answers, and functions that answer one of their arguments.
//!
//! Start reading at [`chosen`] and [`called`].

use super::moments::{as_moment, in_one_reach};
use super::places::{Place, place};
use super::{float, of_kind, spans};
use crate::reaches::{self, in_nanos};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::binary::type_union_coercion;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Case, Expr, ExprSchemable, Operator, binary_expr, lit};

/// Functions that answer one of their arguments.
pub const CHOOSING: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "nvl"];

/// Whether floats stand beside decimals.
fn are_mixed<'e>(parts: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> bool {
    let kinds = parts.filter_map(|part| part.get_type(schema).ok());
    let kinds: Vec<DataType> = kinds.collect();
    kinds.iter().any(DataType::is_floating) && kinds.iter().any(DataType::is_decimal)
}

/// What a `CASE` compares, and what it answers.
pub fn chosen(case: &Case, schema: &DFSchema) -> Option<Expr> {
    let (side, other) = (case.expr.as_deref(), case.else_expr.as_deref());
    let whens = case.when_then_expr.iter().map(|(when, _)| when.as_ref());
    let thens = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
    let exact = side.and_then(|side| {
        whens_of_singles(case, side, schema).or_else(|| whens_of_moments(case, side, schema))
    });
    let of_spans = side.is_some_and(|side| spans::are_compared(side, whens.clone(), schema));
    let compares =
        exact.is_none() && side.is_some() && are_mixed(whens.clone().chain(side), schema);
    let answers = alike(thens.clone().chain(other), schema);
    let answers = answers.or_else(|| decimals(thens.clone().chain(other), schema));
    let answers = answers.or_else(|| in_one_reach(thens.clone().chain(other), schema));
    if exact.is_none() && !compares && !of_spans && answers.is_none() {
        return None;
    }
    let of = |part: &Expr| match compares {
        true => float(part),
        false if of_spans => spans::length(part, schema),
        false => part.clone(),
    };
    let whens = exact.unwrap_or_else(|| whens.map(of).collect());
    let answers = answers.unwrap_or_else(|| thens.chain(other).cloned().collect());
    let mut answers = answers.into_iter().map(Box::new);
    let parts: Vec<_> = whens.into_iter().map(Box::new).zip(&mut answers).collect();
    let side = side.map(|side| Box::new(of(side)));
    let other = answers.next();
    Some(Expr::Case(Case::new(side, parts, other)))
}

/// What a float of 32 bits is compared with, where all of it is written down. One that none is shown as is NULL, which nothing equals.
fn whens_of_singles(case: &Case, side: &Expr, schema: &DFSchema) -> Option<Vec<Expr>> {
    let kind = side.get_type(schema).ok()?;
    if kind != DataType::Float32 {
        return None;
    }
    let whens = case.when_then_expr.iter();
    let singles = whens.map(|(when, _)| match place(&kind, when, &kind)? {
        Place::At(single) => Some(lit(single)),
        Place::Behind(_) => Some(lit(ScalarValue::Float32(None))),
    });
    singles.collect()
}

/// What moments are compared with.
fn whens_of_moments(case: &Case, side: &Expr, schema: &DFSchema) -> Option<Vec<Expr>> {
    let kind = side.get_type(schema).ok()?;
    let whens = case.when_then_expr.iter().map(|(when, _)| when.as_ref());
    let moment = |when: &Expr| as_moment(&kind, when, &when.get_type(schema).ok()?);
    let moments: Vec<Option<Expr>> = whens.clone().map(moment).collect();
    if moments.iter().all(Option::is_none) {
        return None;
    }
    let moments = moments.into_iter().zip(whens);
    let moments = moments.map(|(moment, when)| moment.unwrap_or_else(|| when.clone()));
    Some(moments.collect())
}

pub fn called(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    if let Some(chosen) = spans::chosen(call, schema) {
        return Some(chosen);
    }
    if let ("nullif", [value, other]) = (call.name(), call.args.as_slice())
        && let Some(case) = nullified(value, other, schema)
    {
        return Some(case);
    }
    let args = alike(call.args.iter(), schema);
    let args = args.or_else(|| in_one_reach(call.args.iter(), schema))?;
    let call = ScalarFunction::new_udf(call.func.clone(), args);
    Some(Expr::ScalarFunction(call))
}

/// `nullif` of moments, of which one is in nanoseconds and the other is not: the first one stays what it is.
fn nullified(value: &Expr, other: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is = value.get_type(schema).ok()?;
    let of_other = other.get_type(schema).ok()?;
    if !reaches::differ(&is, &of_other) {
        return None;
    }
    let (one, other) = (in_nanos(value, &is)?, in_nanos(other, &of_other)?);
    let same = binary_expr(one, Operator::Eq, other);
    let none = lit(ScalarValue::try_from(&is).ok()?);
    let when = (Box::new(same), Box::new(none));
    let value = Some(Box::new(value.clone()));
    Some(Expr::Case(Case::new(None, vec![when], value)))
}

/// Values of which one is answered, where DataFusion would make them alike otherwise: decimals beside floats as floats.
fn alike<'e>(
    parts: impl Iterator<Item = &'e Expr> + Clone,
    schema: &DFSchema,
) -> Option<Vec<Expr>> {
    are_mixed(parts.clone(), schema).then(|| parts.map(float).collect())
}

/// Whole numbers and decimals as decimals of one type. Until types are aligned a `CASE` says that it answers what its first answer is, and how
/// many digits a quotient of it has is to be known before.
fn decimals<'e>(
    parts: impl Iterator<Item = &'e Expr> + Clone,
    schema: &DFSchema,
) -> Option<Vec<Expr>> {
    let kinds = parts.clone().map(|part| part.get_type(schema));
    let kinds: Vec<DataType> = kinds.collect::<Planned<_>>().ok()?;
    let mut all = kinds.iter();
    let are_numbers = all.all(|kind| kind.is_numeric() || kind.is_null());
    if !are_numbers || !kinds.iter().any(DataType::is_decimal) {
        return None;
    }
    let mut numbers = kinds.iter().filter(|kind| !kind.is_null());
    let first = numbers.next()?.clone();
    let kind = numbers.try_fold(first, |kind, other| type_union_coercion(&kind, other))?;
    if kinds.iter().all(|is| *is == kind) {
        return None;
    }
    let parts = parts.zip(&kinds);
    Some(parts.map(|(part, is)| of_kind(part, is, &kind)).collect())
}
