//! Where two JSON documents differ, to the last digit: numbers are compared as they are written, not as what a float makes of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use super::check::cut;

/// Characters of a value that are quoted.
const VALUE_CHARS_MAX: usize = 200;

/// Every place where two documents differ, as a JSON pointer that begins with `pointer`, with both values.
///
/// Calls itself for what is inside: who made the documents has bounded how deep they nest.
pub(super) fn differences(pointer: &str, first: &RawValue, second: &RawValue) -> Vec<String> {
    let mut found = Vec::new();
    diff(pointer, first, second, &mut found);
    found
}

type Members<'a> = BTreeMap<String, &'a RawValue>;
type Elements<'a> = Vec<&'a RawValue>;

fn diff(pointer: &str, first: &RawValue, second: &RawValue, found: &mut Vec<String>) {
    if let (Some(a), Some(b)) = (members(first), members(second)) {
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for name in names {
            let inner = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            pair(&inner, a.get(name), b.get(name), found);
        }
    } else if let (Some(a), Some(b)) = (elements(first), elements(second)) {
        for index in 0..a.len().max(b.len()) {
            let inner = format!("{pointer}/{index}");
            pair(&inner, a.get(index), b.get(index), found);
        }
    } else if !is_same(first.get(), second.get()) {
        found.push(differs(pointer, Some(first), Some(second)));
    }
}

fn pair(
    pointer: &str,
    first: Option<&&RawValue>,
    second: Option<&&RawValue>,
    found: &mut Vec<String>,
) {
    match (first, second) {
        (Some(first), Some(second)) => diff(pointer, first, second, found),
        (first, second) => found.push(differs(pointer, first.copied(), second.copied())),
    }
}

fn differs(pointer: &str, first: Option<&RawValue>, second: Option<&RawValue>) -> String {
    let quote = |value: Option<&RawValue>| match value {
        None => "absent".to_owned(),
        Some(value) => cut(value.get(), VALUE_CHARS_MAX).to_owned(),
    };
    format!("{pointer} is {} and {}", quote(first), quote(second))
}

fn members(value: &RawValue) -> Option<Members<'_>> {
    serde_json::from_str(value.get()).ok()
}

fn elements(value: &RawValue) -> Option<Elements<'_>> {
    serde_json::from_str(value.get()).ok()
}

/// Of two values of which at most one has others inside.
fn is_same(first: &str, second: &str) -> bool {
    if let (Some(a), Some(b)) = (Number::read(first), Number::read(second)) {
        return a == b;
    }
    let text = |text: &str| serde_json::from_str::<String>(text).ok();
    match (text(first), text(second)) {
        (Some(a), Some(b)) => a == b,
        _ => first == second,
    }
}

/// A number by its digits: `1`, `1.0` and `10e-1` are the same.
#[derive(PartialEq, Eq)]
struct Number {
    is_negative: bool,
    /// Neither the first nor the last is a zero; none at all is zero.
    digits: String,
    /// Of the last digit.
    exponent: i64,
}

impl Number {
    fn read(text: &str) -> Option<Number> {
        if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
            return None;
        }
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let significant = digits.trim_end_matches('0');
        let zeros = digits.len() - significant.len();
        let exponent = exponent.parse::<i64>().ok()?;
        let exponent = exponent.checked_add(zeros as i64 - fraction.len() as i64)?;
        let is_zero = significant.is_empty();
        Some(Number {
            is_negative: is_negative && !is_zero,
            digits: significant.to_owned(),
            exponent: if is_zero { 0 } else { exponent },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(first: &str, second: &str) -> Vec<String> {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        differences("/answer_value", &raw(first), &raw(second))
    }

    /// A difference is named by its JSON pointer and both values.
    #[test]
    fn differences_are_pointed_at() {
        assert_eq!(between("1", r#""1""#), ["/answer_value is 1 and \"1\""]);
        assert_eq!(
            between(
                r#"{"a": [1, 2], "b/c": true}"#,
                r#"{"a": [1, 3, []], "d": null}"#
            ),
            [
                "/answer_value/a/1 is 2 and 3",
                "/answer_value/a/2 is absent and []",
                "/answer_value/b~1c is true and absent",
                "/answer_value/d is absent and null"
            ]
        );
        assert_eq!(between("{}", "[]"), ["/answer_value is {} and []"]);
    }

    /// Numbers are the same if their digits are, however they are written, and beyond what a float can tell apart.
    #[test]
    fn numbers_are_compared_to_the_last_digit() {
        for (one, other) in [
            ("1", "1.0"),
            ("10e-1", "1"),
            ("-0.0", "0"),
            ("1200", "1.2E+3"),
            (r#""\u0041""#, r#""A""#),
            ("1e99999999999999999999", "1e99999999999999999999"),
        ] {
            assert_eq!(between(one, other), [""; 0], "{one} {other}");
        }
        for (one, other) in [
            ("9007199254740992", "9007199254740993"),
            ("0.1", "0.10000000000000000001"),
            ("1", "-1"),
            ("1", "10"),
            ("1e99999999999999999999", "2e99999999999999999999"),
        ] {
            assert_eq!(between(one, other).len(), 1, "{one} {other}");
        }
    }
}
