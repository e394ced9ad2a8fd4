//! A statement as CSV (RFC 4180), for spreadsheets. Refuses to be a program: a text that a spreadsheet would calculate is disarmed.

use super::shape::TransactionOut;
use crate::describe::{Describe, Description};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use serde_json::json;

pub const CONTENT_TYPE: &str = "text/csv";
/// More lines than this are asked for by period. About 3 MB.
pub const LINES_MAX: i64 = 10_000;

const HEADER: &str = "id,type,status,amount_credits,amount_usd_cents,balance_after_credits,product_id,purchase_id,execution_id,\
                      api_key_id,request_id,reversal_of,description,created_at,posted_at\r\n";

/// What a formula begins with.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Whether the client would rather have CSV than JSON.
pub fn is_accepted(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|kind| kind.split(';').next())
        .map(str::trim)
        .find(|kind| [CONTENT_TYPE, "application/json", "*/*"].contains(kind))
        == Some(CONTENT_TYPE)
}

/// A statement as a file.
pub struct Csv(Response);

impl Csv {
    pub fn of(lines: impl Iterator<Item = TransactionOut>) -> Csv {
        let mut text = HEADER.to_owned();
        for line in lines {
            row(&mut text, &line);
        }
        Csv::file("transactions.csv", text)
    }

    /// A whole table under its name, which needs no quoting.
    pub fn file(name: &str, text: impl Into<Body>) -> Csv {
        let mut response = Response::new(text.into());
        let named = format!("attachment; filename=\"{name}\"");
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/csv; charset=utf-8"),
        );
        if let Ok(named) = HeaderValue::from_str(&named) {
            headers.insert(header::CONTENT_DISPOSITION, named);
        }
        Csv(response)
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

fn row(out: &mut String, line: &TransactionOut) {
    let (created, posted) = (line.created_at.to_string(), line.posted_at.to_string());
    let credits = line.amount_credits.to_string();
    let cents = line.amount_usd_cents.to_string();
    let balance = line.balance_after_credits.map(|value| value.to_string());
    text(out, Some(&line.id));
    for (is_text, value) in [
        (true, Some(line.r#type)),
        (true, Some(line.status)),
        (false, Some(credits.as_str())),
        (false, Some(cents.as_str())),
        (false, balance.as_deref()),
        (true, line.product_id.as_deref()),
        (true, line.purchase_id.as_deref()),
        (true, line.execution_id.as_deref()),
        (true, line.api_key_id.as_deref()),
        (true, line.request_id.as_deref()),
        (true, line.reversal_of.as_deref()),
        (true, line.description.as_deref()),
        (false, Some(created.as_str())),
        (false, Some(posted.as_str())),
    ] {
        out.push(',');
        match is_text {
            true => text(out, value),
            false => out.push_str(value.unwrap_or_default()),
        }
    }
    out.push_str("\r\n");
}

/// A text as one cell. What a spreadsheet takes for a formula gets the apostrophe that makes it a text there.
fn text(out: &mut String, value: Option<&str>) {
    let value = value.unwrap_or_default();
    let is_formula = value.starts_with(FORMULA);
    if !is_formula && !value.contains([',', '"', '\r', '\n']) {
        out.push_str(value);
        return;
    }
    out.push('"');
    if is_formula {
        out.push('\'');
    }
    out.push_str(&value.replace('"', "\"\""));
    out.push('"');
}

/// A text that a spreadsheet takes for one, for a writer that quotes by itself.
pub fn disarmed(value: &str) -> String {
    match value.starts_with(FORMULA) {
        true => format!("'{value}"),
        false => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Separators are quoted, formulas disarmed.
    #[test]
    fn texts_are_one_cell_and_no_formula() {
        let cell = |value: &str| {
            let mut out = String::new();
            text(&mut out, Some(value));
            out
        };
        for (value, expected) in [
            ("plain text", "plain text"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "\"'=1+1\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\t=1", "\"'\t=1\""),
            ("", ""),
        ] {
            assert_eq!(cell(value), expected);
        }
    }

    /// The first type that we have decides.
    #[test]
    fn accept_is_read_in_order() {
        for (accept, expected) in [
            ("text/csv", true),
            ("text/csv; charset=utf-8, */*;q=0.1", true),
            ("application/json, text/csv", false),
            ("*/*", false),
            ("text/html,text/csv", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(is_accepted(&headers), expected, "{accept}");
        }
        assert!(!is_accepted(&HeaderMap::new()));
    }
}
