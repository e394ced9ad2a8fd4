//! The numbers of a body's `params` with the digits that they were sent with. What reads a body makes floats of them, and not every number is one.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use souk_domain::numbers::SHORT_BYTES_MAX;
use std::collections::HashMap;

/// The numbers that may be others than the floats that were made of them, by the names of their parameters. Mostly there are none.
pub type Digits = HashMap<String, String>;

/// What is looked for in a body once more.
#[derive(Deserialize)]
struct Sent<'a> {
    #[serde(borrow)]
    params: Option<HashMap<String, &'a RawValue>>,
}

/// Those of `params`, which were read from `body`. It is read again only where it has such a number, or something that looks like one.
pub fn digits(params: &Map<String, Value>, body: &[u8]) -> Digits {
    if !may_differ(params, body) {
        return Digits::new();
    }
    let sent = serde_json::from_slice::<Sent<'_>>(body);
    let sent = sent.ok().and_then(|sent| sent.params).unwrap_or_default();
    sent.into_iter()
        .filter(|(name, _)| params.get(name).is_some_and(is_float))
        .map(|(name, written)| (name, written.get().to_owned()))
        .collect()
}

fn may_differ(params: &Map<String, Value>, body: &[u8]) -> bool {
    let mut floats = params.values().filter(|value| is_float(value)).peekable();
    // What is nearly zero has lost its digits, however few it had.
    floats.peek().is_some() && (has_long_number(body) || !floats.all(is_normal))
}

/// Not a whole number of 64 bits, which is exact.
fn is_float(value: &Value) -> bool {
    matches!(value, Value::Number(number) if number.as_i64().is_none())
}

fn is_normal(value: &Value) -> bool {
    value.as_f64().is_some_and(f64::is_normal)
}

fn has_long_number(body: &[u8]) -> bool {
    let is_of_none = |byte: &u8| !byte.is_ascii_digit() && *byte != b'.';
    body.split(is_of_none)
        .any(|run| run.len() > SHORT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a float may not hold is found with its digits, and nothing else is looked for.
    #[test]
    fn numbers_are_found_with_their_digits() {
        let of = |body: &str| {
            let whole: Value = serde_json::from_str(body).unwrap();
            let params = whole["params"].as_object().cloned().unwrap_or_default();
            let mut found: Vec<_> = digits(&params, body.as_bytes()).into_iter().collect();
            found.sort_unstable();
            let found = found.iter().map(|(name, text)| format!("{name}={text}"));
            found.collect::<Vec<_>>().join(" ")
        };
        for (body, found) in [
            (
                r#"{"params": {"x": 1.0000000000000000001}}"#,
                "x=1.0000000000000000001",
            ),
            (r#"{"params":{"x":2.5,"n":9007199254740993}}"#, "x=2.5"),
            (
                r#"{"params": {"x": 18446744073709551615, "y": 1}}"#,
                "x=18446744073709551615",
            ),
            (r#"{"params": {"x": 1e-400, "y": 2e3}}"#, "x=1e-400 y=2e3"),
            (
                r#"{"params": {"\u0078": 1, "x": 0.12345678901234567890}}"#,
                "x=0.12345678901234567890",
            ),
            // Nothing is lost here, and nothing is read again.
            (r#"{"params": {"x": 2.5, "n": 7, "t": "2.5"}}"#, ""),
            (r#"{"params": {"t": "12345678901234567890.5"}}"#, ""),
            (r#"{"params": {"n": 9007199254740993}}"#, ""),
            (r#"{"params": null}"#, ""),
            ("{}", ""),
        ] {
            assert_eq!(of(body), found, "{body}");
        }
    }
}
