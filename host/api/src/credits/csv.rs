//! Tables as CSV (RFC 4180), for spreadsheets. Refuses to be a program: a text that a spreadsheet would calculate is disarmed.

use crate::describe::{Describe, Description};
use crate::problem::Problem;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use serde::Serialize;
use serde_json::json;

pub const CONTENT_TYPE: &str = "text/csv";
/// More lines than this are asked for by period. About 3 MB.
pub const LINES_MAX: i64 = 10_000;

/// What a formula begins with.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A statement as a file.
pub struct Csv(Response);

impl Csv {
    /// A table with these columns under a name that needs no quoting. What somebody typed is [`disarmed`] before.
    pub fn table(
        name: &str,
        columns: &[&str],
        lines: impl Iterator<Item = impl Serialize>,
    ) -> Result<Csv, Problem> {
        let mut writer = csv::WriterBuilder::new()
            .has_headers(false)
            .terminator(csv::Terminator::CRLF)
            .from_writer(Vec::new());
        // Also where no line would bring them.
        writer.write_record(columns).map_err(Problem::internal)?;
        for line in lines {
            writer.serialize(line).map_err(Problem::internal)?;
        }
        let text = writer.into_inner().map_err(Problem::internal)?;
        let mut response = Response::new(Body::from(text));
        let named = format!("attachment; filename=\"{name}\"");
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/csv; charset=utf-8"),
        );
        if let Ok(named) = HeaderValue::from_str(&named) {
            headers.insert(header::CONTENT_DISPOSITION, named);
        }
        Ok(Csv(response))
    }
}

impl Describe for Csv {
    fn describe(into: &mut Description) {
        into.answer(200, Some((CONTENT_TYPE, |_| json!({"type": "string"}))));
    }
}

impl IntoResponse for Csv {
    fn into_response(self) -> Response {
        self.0
    }
}

/// A text that stays one in a spreadsheet: what it would take for a formula gets the apostrophe that makes it a text there.
pub fn disarmed(value: &str) -> String {
    match value.starts_with(FORMULA) {
        true => format!("'{value}"),
        false => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a spreadsheet would calculate is a text there, and nothing else is changed.
    #[test]
    fn formulas_are_disarmed() {
        for (value, expected) in [
            ("plain text", "plain text"),
            ("a=b", "a=b"),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("", ""),
        ] {
            assert_eq!(disarmed(value), expected);
        }
    }
}
