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

pub struct Group {
    pub shirt: i64,
    pub active: bool,
    pub goals: i64,
}

/// About what one group takes as JSON.
const GROUP_BYTES: usize = 48;
/// About as many as there are.
const GROUPS_EXPECTED: usize = 64;

/// The groups of a team, where a chart has its values; what else souk says of a chart is left out.
pub struct Groups {
    body: Vec<u8>,
    integers: itoa::Buffer,
}

impl Groups {
    pub fn begin() -> Groups {
        let mut body = Vec::with_capacity(96 + GROUPS_EXPECTED * GROUP_BYTES);
        body.extend_from_slice(br#"{"data":{"visualization":{"spec":{"data":{"values":["#);
        Groups {
            body,
            integers: itoa::Buffer::new(),
        }
    }

    pub fn group(&mut self, group: &Group) {
        let active: &[u8] = match group.active {
            true => br#","active":true,"goals":"#,
            false => br#","active":false,"goals":"#,
        };
        self.body.extend_from_slice(br#"{"shirt":"#);
        let shirt = self.integers.format(group.shirt);
        self.body.extend_from_slice(shirt.as_bytes());
        self.body.extend_from_slice(active);
        let goals = self.integers.format(group.goals);
        self.body.extend_from_slice(goals.as_bytes());
        self.body.extend_from_slice(b"},");
    }

    pub fn finish(self) -> Response {
        json(self.written())
    }

    fn written(mut self) -> Vec<u8> {
        if self.body.last() == Some(&b',') {
            self.body.pop();
        }
        self.body.extend_from_slice(b"]}}}}}");
        self.body
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn groups_are_the_values_of_a_chart() {
        let mut groups = Groups::begin();
        for (active, goals) in [(false, 7), (true, 14)] {
            groups.group(&Group {
                shirt: 3,
                active,
                goals,
            });
        }
        let body: Value = serde_json::from_slice(&groups.written()).expect("JSON");
        let values = json!([{"shirt": 3, "active": false, "goals": 7}, {"shirt": 3, "active": true, "goals": 14}]);
        let chart = json!({"visualization": {"spec": {"data": {"values": values}}}});
        assert_eq!(body, json!({"data": chart}));
    }
}
