//! Query strings, checked against what the operation declares: unknown, repeated and malformed parameters are all named in one 400.

use crate::ApiState;
use crate::operation::{Param, ParamKind};
use crate::problem::{FieldError, Problem};
use axum::extract::FromRequestParts;
use http::request::Parts;
use souk_domain::time::{DAY, Timestamp};
use std::convert::Infallible;

/// More parameters than any operation has: a bound on the work below.
const PARAMETERS_MAX: usize = 100;

/// The query parameters of a request. Values have the kind that the operation declares.
#[derive(Clone, Default)]
pub struct Query {
    values: Vec<(&'static str, Value)>,
    rest: Vec<(String, String)>,
}

#[derive(Clone)]
enum Value {
    Integer(i64),
    Boolean(bool),
    Text(String),
    Choice(&'static str),
    Time(Timestamp),
}

impl Query {
    pub(crate) fn read(text: &str, params: &'static [Param], open: bool) -> Result<Query, Problem> {
        let mut query = Query::default();
        let mut errors = Vec::new();
        for (place, (name, text)) in form_urlencoded::parse(text.as_bytes()).enumerate() {
            if place >= PARAMETERS_MAX {
                return Err(Problem::parameter(
                    name,
                    format!("more than {PARAMETERS_MAX} query parameters"),
                ));
            }
            let declared = params.iter().find(|param| param.name == name);
            let repeated = query.values.iter().any(|(known, _)| *known == name)
                || query.rest.iter().any(|(known, _)| *known == name);
            match declared {
                _ if repeated => {
                    errors.push(FieldError::new(name, "repeated", "may be given only once"))
                }
                Some(param) => match value(param.kind, &text) {
                    Ok(value) => query.values.push((param.name, value)),
                    Err(message) => errors.push(FieldError::new(name, "invalid", message)),
                },
                None if open => query.rest.push((name.into_owned(), text.into_owned())),
                None => errors.push(FieldError::new(name, "unknown", unknown(params))),
            }
        }
        if errors.is_empty() {
            Ok(query)
        } else {
            Err(Problem::fields("INVALID_PARAMETER", errors))
        }
    }

    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.value(name)? {
            Value::Integer(value) => Some(*value),
            _ => None,
        }
    }

    pub fn boolean(&self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    /// A text or one of the declared choices.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::Text(value) => Some(value),
            Value::Choice(value) => Some(value),
            _ => None,
        }
    }

    pub fn time(&self, name: &str) -> Option<Timestamp> {
        match self.value(name)? {
            Value::Time(value) => Some(*value),
            _ => None,
        }
    }

    /// What an operation with an open query was sent beside its declared parameters.
    pub fn rest(&self) -> &[(String, String)] {
        &self.rest
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.values
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}

fn value(kind: ParamKind, text: &str) -> Result<Value, String> {
    match kind {
        ParamKind::Integer { min, max } => match text.parse::<i64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(Value::Integer(number)),
            _ => Err(format!("must be an integer from {min} to {max}")),
        },
        ParamKind::Boolean => match text {
            "true" => Ok(Value::Boolean(true)),
            "false" => Ok(Value::Boolean(false)),
            _ => Err("must be true or false".to_owned()),
        },
        ParamKind::Text { chars_max } => match text.chars().count() {
            count if count <= chars_max && !text.contains('\0') => Ok(Value::Text(text.to_owned())),
            _ => Err(format!("must be a text of at most {chars_max} characters")),
        },
        ParamKind::From => date(text)
            .map_or_else(|| instant(text), Ok)
            .map(Value::Time),
        ParamKind::Until => date(text)
            .map_or_else(|| instant(text), |midnight| Ok(midnight.after(DAY)))
            .map(Value::Time),
        ParamKind::Date => date(text)
            .map(Value::Time)
            .ok_or_else(|| "must be a date such as 2026-01-31".to_owned()),
        ParamKind::OneOf(choices) => match choices.iter().find(|choice| **choice == text) {
            Some(choice) => Ok(Value::Choice(choice)),
            None => Err(format!("must be one of {}", choices.join(", "))),
        },
    }
}

/// Midnight UTC of a date.
fn date(text: &str) -> Option<Timestamp> {
    match text.len() == "2026-01-31".len() {
        true => Timestamp::parse(&format!("{text}T00:00:00Z")).ok(),
        false => None,
    }
}

fn instant(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).map_err(|error| error.to_string())
}

fn unknown(params: &[Param]) -> String {
    match params {
        [] => "this operation takes no query parameters".to_owned(),
        params => format!(
            "not a parameter of this operation, which takes {}",
            params
                .iter()
                .map(|param| param.name)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

impl FromRequestParts<ApiState> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Query, Infallible> {
        Ok(parts.extensions.remove::<Query>().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{PAGE, PER_PAGE, SORT_ORDER};

    static PARAMS: &[Param] = &[PAGE, PER_PAGE, SORT_ORDER];

    /// Valid values arrive typed; what is absent is absent.
    #[test]
    fn declared_parameters_are_typed() {
        let query = Query::read("page=2&sort_order=asc", PARAMS, false).unwrap();
        assert_eq!(
            (
                query.integer("page"),
                query.text("sort_order"),
                query.integer("per_page")
            ),
            (Some(2), Some("asc"), None)
        );
    }

    /// Over the maximum, unknown, repeated and malformed are refused, all at once.
    #[test]
    fn everything_wrong_is_named() {
        let problem = Query::read(
            "per_page=101&page=x&nope=1&sort_order=asc&sort_order=desc",
            PARAMS,
            false,
        )
        .err()
        .unwrap();
        assert_eq!(
            (problem.status().as_u16(), problem.code()),
            (400, "INVALID_PARAMETER")
        );
        let (_, _, body) = problem.into_parts("req_1");
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let fields: Vec<_> = body["error"]["details"]["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| error["field"].as_str().unwrap())
            .collect();
        assert_eq!(fields, ["per_page", "page", "nope", "sort_order"]);
    }

    /// A date is a whole day: it begins a period at its midnight and ends one at the next.
    #[test]
    fn dates_are_whole_days() {
        let read = |kind, text: &str| match value(kind, text) {
            Ok(Value::Time(time)) => Some(time.to_string()),
            _ => None,
        };
        let midnight = |day: u32| Some(format!("2026-01-0{day}T00:00:00Z"));
        assert_eq!(read(ParamKind::From, "2026-01-02"), midnight(2));
        assert_eq!(read(ParamKind::Until, "2026-01-02"), midnight(3));
        assert_eq!(read(ParamKind::Date, "2026-01-02"), midnight(2));
        assert_eq!(read(ParamKind::Until, "2026-01-02T00:00:00Z"), midnight(2));
        assert_eq!(
            read(ParamKind::From, "2026-01-02T01:00:00+01:00"),
            midnight(2)
        );
        for wrong in ["2026-02-30", "2026-1-2", "yesterday", ""] {
            assert_eq!(read(ParamKind::From, wrong), None, "{wrong}");
        }
        assert_eq!(read(ParamKind::Date, "2026-01-02T00:00:00Z"), None);
    }

    /// An open query keeps what it does not declare.
    #[test]
    fn an_open_query_hands_on_the_rest() {
        let query = Query::read("page=1&team=A%20B", PARAMS, true).unwrap();
        assert_eq!(query.rest(), [("team".to_owned(), "A B".to_owned())]);
    }
}
