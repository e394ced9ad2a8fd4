//! How a statement fails, and what the API does not take.

use std::borrow::Cow;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// How a statement fails: `[CONDITION] text SQLSTATE: 42000`.
#[derive(Clone, Debug)]
pub struct Failure {
    pub condition: Cow<'static, str>,
    pub state: Cow<'static, str>,
    pub text: String,
}

impl Failure {
    pub fn new(
        condition: impl Into<Cow<'static, str>>,
        state: impl Into<Cow<'static, str>>,
        text: impl Into<String>,
    ) -> Failure {
        Failure {
            condition: condition.into(),
            state: state.into(),
            text: text.into(),
        }
    }

    pub fn syntax(near: &str) -> Failure {
        let text = format!("Syntax error at or near '{near}'.");
        Failure::new("PARSE_SYNTAX_ERROR", "42601", text)
    }

    pub fn message(&self) -> String {
        match &*self.condition {
            "" => self.text.clone(),
            condition => format!("[{condition}] {} SQLSTATE: {}", self.text, self.state),
        }
    }
}

/// What the API does not take.
pub struct Refusal {
    status: u16,
    code: Value,
    text: String,
}

impl Refusal {
    pub fn new(status: u16, code: impl Into<Value>, text: &str) -> Refusal {
        Refusal {
            status,
            code: code.into(),
            text: text.to_owned(),
        }
    }

    pub fn wrong(text: &str) -> Refusal {
        Refusal::new(400, "INVALID_PARAMETER_VALUE", text)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).expect("a status");
        let body = json!({"error_code": self.code, "message": self.text});
        (status, axum::Json(body)).into_response()
    }
}
