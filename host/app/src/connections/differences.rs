//! Where two JSON documents differ, to the last digit: numbers are compared as they are written, not as what a float makes of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

/// Differences that are spelled out; the first few show what is wrong.
const SPELLED_MAX: usize = 5;
/// Characters of a value, and of the pointer to it, that are quoted.
const CHARS_MAX: usize = 200;
/// Levels that are taken apart, because each is read once more. What is deeper inside is compared as it is written.
const LEVELS_MAX: usize = 16;

/// What differs between two documents.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// The first of them: where, as a JSON pointer, and both values.
    pub spelled: Vec<String>,
    pub count: usize,
}

/// Compares two documents to which `pointer` leads.
pub(super) fn differences(pointer: &str, first: &RawValue, second: &RawValue) -> Differences {
    let mut search = Search {
        pointer: pointer.to_owned(),
        found: Differences::default(),
    };
    search.compare(Some(first), Some(second), LEVELS_MAX);
    search.found
}

struct Search {
    /// Where the search is.
    pointer: String,
    found: Differences,
}

impl Search {
    fn compare(&mut self, first: Option<&RawValue>, second: Option<&RawValue>, levels: usize) {
        let (Some(a), Some(b)) = (first, second) else {
            return self.note(first, second);
        };
        if a.get() == b.get() {
            return;
        }
        let levels = levels.checked_sub(1);
        if let (Some(levels), Some(a), Some(b)) = (levels, members(a), members(b)) {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let step = name.replace('~', "~0").replace('/', "~1");
                self.compare_inside(&step, a.get(name), b.get(name), levels);
            }
        } else if let (Some(levels), Some(a), Some(b)) = (levels, elements(a), elements(b)) {
            for index in 0..a.len().max(b.len()) {
                self.compare_inside(&index.to_string(), a.get(index), b.get(index), levels);
            }
        } else if !is_same(a.get(), b.get()) {
            self.note(first, second);
        }
    }

    fn compare_inside(
        &mut self,
        step: &str,
        first: Option<&&RawValue>,
        second: Option<&&RawValue>,
        levels: usize,
    ) {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(step);
        self.compare(first.copied(), second.copied(), levels);
        self.pointer.truncate(length);
    }

    fn note(&mut self, first: Option<&RawValue>, second: Option<&RawValue>) {
        self.found.count += 1;
        if self.found.spelled.len() < SPELLED_MAX {
            let value = |value: Option<&RawValue>| {
                value.map_or("absent".to_owned(), |value| quote(value.get()))
            };
            let (pointer, first, second) = (quote(&self.pointer), value(first), value(second));
            let difference = format!("{pointer} is {first} and {second}");
            self.found.spelled.push(difference);
        }
    }
}

/// In one line, and not too long.
fn quote(text: &str) -> String {
    let in_line = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().take(CHARS_MAX).map(in_line).collect()
}

fn members(value: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(value.get()).ok()
}

fn elements(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// Of two values that are not both taken apart.
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
    /// `None`: no number, or one whose exponent is beyond counting.
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
        if significant.is_empty() {
            return Some(Number {
                is_negative: false,
                digits: String::new(),
                exponent: 0,
            });
        }
        let zeros = digits.len() - significant.len();
        let exponent = exponent.parse::<i64>().ok()?;
        Some(Number {
            is_negative,
            digits: significant.to_owned(),
            exponent: exponent.checked_add(zeros as i64 - fraction.len() as i64)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(first: &str, second: &str) -> Differences {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        differences("/answer_value", &raw(first), &raw(second))
    }

    /// A difference is named by its JSON pointer and both values.
    #[test]
    fn differences_are_pointed_at() {
        assert_eq!(
            between("1", r#""1""#).spelled,
            ["/answer_value is 1 and \"1\""]
        );
        assert_eq!(
            between(
                r#"{"a": [1, 2], "b/c": true}"#,
                r#"{"a": [1, 3, []], "d": null}"#
            )
            .spelled,
            [
                "/answer_value/a/1 is 2 and 3",
                "/answer_value/a/2 is absent and []",
                "/answer_value/b~1c is true and absent",
                "/answer_value/d is absent and null"
            ]
        );
        assert_eq!(
            between("{\n}", "[]").spelled,
            ["/answer_value is { } and []"]
        );
    }

    /// Numbers are the same if their digits are, however they are written, and beyond what a float can tell apart or hold.
    #[test]
    fn numbers_are_compared_to_the_last_digit() {
        for (one, other) in [
            ("1", "1.0"),
            ("10e-1", "1"),
            ("-0.0", "0"),
            ("0e99999999999999999999", "0"),
            ("1200", "1.2E+3"),
            (r#""\u0041""#, r#""A""#),
            (r#"{"a": 1, "b": 2}"#, r#"{"b": 2.0, "a": 1}"#),
        ] {
            assert_eq!(between(one, other), Differences::default(), "{one} {other}");
        }
        for (one, other) in [
            ("9007199254740992", "9007199254740993"),
            ("0.1", "0.10000000000000000001"),
            ("1", "-1"),
            ("1", "10"),
            ("1e400", "2e400"),
            ("1e99999999999999999999", "2e99999999999999999999"),
            (r#"{"a": 1e400, "b": 1}"#, r#"{"a": 1e400, "b": 2}"#),
            (r#"["\ud800", 1]"#, r#"["\ud800", 2]"#),
        ] {
            assert_eq!(between(one, other).count, 1, "{one} {other}");
        }
    }

    /// What a seller sends costs the host no more than what it sends: few differences are kept, short, and nothing is followed without end.
    #[test]
    fn what_is_kept_is_bounded() {
        let name = "n".repeat(500_000);
        let list = |digit: &str| format!("{{\"{name}\": [{}]}}", vec![digit; 250_000].join(","));
        let many = between(&list("1"), &list("2"));
        assert_eq!((many.count, many.spelled.len()), (250_000, SPELLED_MAX));
        assert!(many.spelled.iter().all(|text| text.len() < 3 * CHARS_MAX));

        let nested =
            |inside: &str| format!("{}{inside}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(between(&nested("1"), &nested("2")).count, 1);
        assert_eq!(between(&nested("1"), &nested("1")).count, 0);
    }
}
