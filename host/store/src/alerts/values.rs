//! Answers, conditions and states as they are written down, and back.

use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use serde_json::Value;
use souk_domain::alerts::{Answer, Condition, ForecastField, Operator, State, Threshold};
use sqlx::any::AnyRow;

/// A number as JSON: a whole one without a fraction.
pub fn number(value: f64) -> Value {
    /// Up to here every whole number is a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value.fract() == 0.0 && value.abs() <= EXACT {
        true => Value::from(value as i64),
        false => Value::from(value),
    }
}

pub fn answer_value(answer: &Answer) -> Value {
    match answer {
        Answer::Number(value) => number(*value),
        Answer::Text(text) => text.as_str().into(),
        Answer::Nothing => Value::Null,
    }
}

pub fn threshold_value(threshold: &Threshold) -> Value {
    match threshold {
        Threshold::Number(value) => number(*value),
        Threshold::Text(text) => text.as_str().into(),
    }
}

pub(super) fn answer_text(answer: &Answer) -> String {
    answer_value(answer).to_string()
}

pub(super) fn condition_texts(
    condition: &Condition,
) -> (&'static str, Option<String>, Option<&'static str>) {
    let threshold = condition.threshold().map(threshold_value);
    (
        condition.operator().as_str(),
        threshold.map(|value| value.to_string()),
        condition.field().map(ForecastField::as_str),
    )
}

pub(super) fn read<T: serde::de::DeserializeOwned>(
    column: &str,
    text: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| corrupt(column, error))
}

pub(super) fn state(row: &AnyRow, column: &str) -> Result<State, StoreError> {
    let text = row.text(column)?;
    State::parse(&text).ok_or_else(|| corrupt(column, text))
}

pub(super) fn condition(row: &AnyRow) -> Result<Condition, StoreError> {
    let operator = row.text("operator")?;
    let operator = Operator::parse(&operator).ok_or_else(|| corrupt("operator", operator))?;
    let threshold = match row.text_opt("threshold")? {
        None => None,
        Some(text) => match read::<Value>("threshold", &text)? {
            Value::Number(value) => value.as_f64().map(Threshold::Number),
            Value::String(text) => Some(Threshold::Text(text)),
            other => return Err(corrupt("threshold", other)),
        },
    };
    let field = row.text_opt("answer_field")?;
    let field = field.as_deref().and_then(ForecastField::parse);
    Condition::new(operator, threshold, field)
        .map_err(|errors| corrupt("operator", format!("{errors:?}")))
}
