//! What is wrong with the fields of a request, whoever finds it: parameters, definitions, connections, bodies, queries.
//!
//! A client is told of all its wrong fields at once: checks note them in [`FieldErrors`] and go on.

use serde::Serialize;

/// What is wrong with one field: an entry of `details.errors`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// Where it stands: `name`, `parameters[0].type`.
    pub field: String,
    /// Stable, lower_snake.
    pub code: &'static str,
    /// What to send instead.
    pub message: String,
}

impl FieldError {
    pub fn new(
        field: impl Into<String>,
        code: &'static str,
        message: impl Into<String>,
    ) -> FieldError {
        FieldError {
            field: field.into(),
            code,
            message: message.into(),
        }
    }
}

/// What is wrong so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    pub fn add(
        &mut self,
        field: impl Into<String>,
        code: &'static str,
        message: impl Into<String>,
    ) {
        self.0.push(FieldError::new(field, code, message));
    }

    pub fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    pub fn extend(&mut self, errors: Vec<FieldError>) {
        self.0.extend(errors);
    }

    /// What could be read; else what is wrong with it is noted.
    pub fn take<T>(&mut self, read: Result<T, Vec<FieldError>>) -> Option<T> {
        read.map_err(|errors| self.extend(errors)).ok()
    }

    /// Where something is wrong so far.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|error| error.field.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn into_vec(self) -> Vec<FieldError> {
        self.0
    }

    /// `value`, if nothing is wrong.
    pub fn or<T>(self, value: T) -> Result<T, Vec<FieldError>> {
        match self.0.is_empty() {
            true => Ok(value),
            false => Err(self.0),
        }
    }
}
