//! The parameters of an alert, whose numbers keep the digits that they were given with: what reads JSON makes floats of them, and not every number is one.
//!
//! Knows nothing of what an asset takes.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use souk_domain::numbers::{self, Number};
use souk_domain::parameters::Raw;

use crate::definition::raw;

/// By their names. Read from JSON alone.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Params(BTreeMap<String, Given>);

#[derive(Clone, Debug)]
struct Given {
    value: Value,
    /// Of a number that is no integer of 64 bits, as it was written.
    digits: Option<String>,
}

impl Params {
    /// As they are kept.
    pub fn read(json: &str) -> Result<Params, serde_json::Error> {
        serde_json::from_str(json)
    }

    pub fn raw(&self) -> Vec<(&str, Raw<'_>)> {
        let all = self.0.iter();
        all.map(|(name, given)| (name.as_str(), given.raw()))
            .collect()
    }

    /// To be kept: one way to write the same parameters.
    pub fn json(&self) -> String {
        let members = self.0.iter().map(|(name, given)| {
            let name = Value::from(name.as_str());
            format!("{name}:{}", given.json())
        });
        let members: Vec<String> = members.collect();
        format!("{{{}}}", members.join(","))
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Given, D::Error> {
        let written = Box::<RawValue>::deserialize(deserializer)?;
        let value: Value = serde_json::from_str(written.get()).map_err(D::Error::custom)?;
        let is_float = matches!(&value, Value::Number(number) if number.as_i64().is_none());
        Ok(Given {
            digits: is_float.then(|| written.get().to_owned()),
            value,
        })
    }
}

impl Given {
    fn raw(&self) -> Raw<'_> {
        match &self.digits {
            Some(digits) => Raw::Digits(digits),
            None => raw(&self.value),
        }
    }

    fn json(&self) -> String {
        match &self.digits {
            // One that is a float is written as all others write it: 2.5 and 2.50 are no change.
            Some(digits) if !matches!(numbers::read(digits), Ok(Number::Float(_))) => {
                digits.clone()
            }
            _ => self.value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(json: &str) -> String {
        Params::read(json).unwrap().json()
    }

    /// What no float is stays as it was written; all else is written in one way, and what is kept is kept as it is.
    #[test]
    fn numbers_keep_their_digits() {
        for (sent, expected) in [
            ("{}", "{}"),
            (
                r#"{"x": 1.0000000000000000001}"#,
                r#"{"x":1.0000000000000000001}"#,
            ),
            (r#"{"x": 9007199254740993}"#, r#"{"x":9007199254740993}"#),
            (
                r#"{"x": 9007199254740993.0}"#,
                r#"{"x":9007199254740993.0}"#,
            ),
            (
                r#"{"x": 12345678901234567890}"#,
                r#"{"x":12345678901234567890}"#,
            ),
            (r#"{"x": 1e-400}"#, r#"{"x":1e-400}"#),
            (
                r#"{"y": 2.50, "x": 25e-1, "n": -3}"#,
                r#"{"n":-3,"x":2.5,"y":2.5}"#,
            ),
            (
                r#"{"\u0061": "é \" 1.0000000000000000001", "b": null, "c": [1, {"d": true}]}"#,
                r#"{"a":"é \" 1.0000000000000000001","b":null,"c":[1,{"d":true}]}"#,
            ),
        ] {
            assert_eq!(kept(sent), expected);
            assert_eq!(kept(expected), expected);
        }
        for wrong in ["5", "[]", "null", r#"{"x": 1e400}"#] {
            assert!(Params::read(wrong).is_err(), "{wrong}");
        }
    }

    /// As `params` of a call are: no float stands for a number.
    #[test]
    fn numbers_are_bound_by_their_digits() {
        let params = Params::read(r#"{"n": 7, "t": "7", "x": 2.50, "y": 1e-400}"#).unwrap();
        assert_eq!(
            params.raw(),
            [
                ("n", Raw::Integer(7)),
                ("t", Raw::Text("7")),
                ("x", Raw::Digits("2.50")),
                ("y", Raw::Digits("1e-400")),
            ]
        );
    }
}
