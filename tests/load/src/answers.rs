//! What native handlers answer: souk's envelope around the same rows, into one buffer, without serde.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

pub struct Player<'a> {
    pub id: i64,
    pub name: &'a str,
    pub team: &'a str,
    pub goals: i64,
    pub rating: f64,
    pub active: bool,
}

/// What a row begins with.
const ROW: &[u8] = br#"{"id":"#;
/// About what one row takes as JSON.
const ROW_BYTES: usize = 96;

pub struct Page {
    body: Vec<u8>,
    integers: itoa::Buffer,
    floats: zmij::Buffer,
}

impl Page {
    /// With room for so many rows.
    pub fn of(rows: usize) -> Page {
        let mut body = Vec::with_capacity(64 + rows * ROW_BYTES);
        body.extend_from_slice(br#"{"data":{"response":{"data":["#);
        Page {
            body,
            integers: itoa::Buffer::new(),
            floats: zmij::Buffer::new(),
        }
    }

    pub fn player(&mut self, player: &Player<'_>) {
        self.put(ROW);
        self.integer(player.id);
        self.put(br#","name":"#);
        self.text(player.name);
        self.put(br#","team":"#);
        self.text(player.team);
        self.put(br#","goals":"#);
        self.integer(player.goals);
        self.put(br#","rating":"#);
        let rating = self.floats.format(player.rating);
        self.body.extend_from_slice(rating.as_bytes());
        self.put(match player.active {
            true => br#","active":true},"#,
            false => br#","active":false},"#,
        });
    }

    pub fn without_last(mut self) -> Page {
        let last = self.body.windows(ROW.len()).rposition(|part| part == ROW);
        if let Some(last) = last {
            self.body.truncate(last);
        }
        self
    }

    pub fn finish(mut self) -> Response {
        if self.body.last() == Some(&b',') {
            self.body.pop();
        }
        self.put(b"]}}}");
        json(self.body)
    }

    fn put(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    fn integer(&mut self, value: i64) {
        let digits = self.integers.format(value);
        self.body.extend_from_slice(digits.as_bytes());
    }

    /// No name of the dataset has anything to be escaped; one that had would be answered by serde.
    fn text(&mut self, value: &str) {
        let plain = |byte: &u8| *byte >= b' ' && *byte != b'"' && *byte != b'\\';
        if value.as_bytes().iter().all(plain) {
            self.body.push(b'"');
            self.body.extend_from_slice(value.as_bytes());
            self.body.push(b'"');
        } else {
            let escaped = serde_json::Value::from(value).to_string();
            self.body.extend_from_slice(escaped.as_bytes());
        }
    }
}

pub fn number(answer_value: i64) -> Response {
    let mut body = Vec::with_capacity(64);
    body.extend_from_slice(br#"{"data":{"answer_value":"#);
    body.extend_from_slice(itoa::Buffer::new().format(answer_value).as_bytes());
    body.extend_from_slice(b"}}");
    json(body)
}

/// The number of the one parameter in a query string, `id=7` or `limit=50`.
pub fn value(query: Option<String>) -> i64 {
    let number = query.as_deref().and_then(|query| query.split_once('='));
    number
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0)
}

fn json(body: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}
