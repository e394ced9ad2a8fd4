//! A session, and a Snowflake that answers each of its requests as a test says.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

use std::io::Write;
use std::ops::{Deref, DerefMut};

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value as Json, json};
use souk_connector_snowflake::Session;
use souk_sdk::{Error, HttpRequest, Request, SchemaFilter, Settings};
use souk_tests::talk;
pub use souk_tests::talk::{Reply, class_and_code, header, query, raw};
use souk_tests::wire::{Answer, LIMITS};

/// The time of day at which everything here happens.
pub const NOW: u64 = 1_790_000_000;
pub const HANDLE: &str = "01b66701-0000-001c-0000-0030000b91521";

/// By a token that the host shows, with these members changed.
pub fn settings(more: Json) -> Settings {
    let mut settings = json!({"base_url": "https://myorg-shop.snowflakecomputing.com", "database": "SHOP.PUBLIC", "warehouse": "SMALL", "role": "READER"});
    for (name, value) in more.as_object().unwrap() {
        settings[name] = value.clone();
    }
    Settings {
        engine: "snowflake".into(),
        json: settings.to_string(),
    }
}

/// Rows stand behind what they are, as Snowflake sends them: a `Value` has its members by their names.
pub fn reply(status: u16, mut body: Json) -> Reply {
    let members = body.as_object_mut();
    let data = members.and_then(|members| members.remove("data"));
    let mut text = body.to_string();
    if let Some(data) = data {
        text.pop();
        text.push_str(&format!(",\"data\":{data}}}"));
    }
    raw(status, &[], text)
}

/// An answer of these members, in this order.
pub fn ordered(answer: &Json, names: &[&str]) -> Reply {
    let member = |name: &&str| Some(format!("\"{name}\":{}", answer.get(*name)?));
    let members: Vec<String> = names.iter().filter_map(member).collect();
    raw(200, &[], format!("{{{}}}", members.join(",")))
}

/// That a statement goes on.
pub fn waits() -> Reply {
    let text = "Asynchronous execution in progress. Use provided query id to perform query monitoring and management.";
    let body = json!({"code": "333334", "message": text, "statementHandle": HANDLE, "statementStatusUrl": format!("/api/v2/statements/{HANDLE}")});
    reply(202, body)
}

pub fn column(name: &str, kind: &str, more: Json) -> Json {
    let mut column = json!({"name": name, "database": "", "schema": "", "table": "", "type": kind, "nullable": true,
        "scale": null, "precision": null, "length": null, "byteLength": null, "collation": null});
    for (name, value) in more.as_object().unwrap() {
        column[name] = value.clone();
    }
    column
}

pub fn number(name: &str, precision: u32, scale: u32) -> Json {
    column(
        name,
        "fixed",
        json!({"precision": precision, "scale": scale}),
    )
}

/// A result: its first part, and of how many rows each part is.
pub fn result(columns: &[Json], rows: Json, parts: &[usize]) -> Json {
    let parts: Vec<Json> = parts
        .iter()
        .map(|rows| json!({"rowCount": rows, "uncompressedSize": 1000 * rows}))
        .collect();
    let rows_of = |part: &Json| part["rowCount"].as_u64().unwrap();
    json!({"resultSetMetaData": {"numRows": parts.iter().map(rows_of).sum::<u64>(), "format": "jsonv2", "partitionInfo": parts, "rowType": columns},
        "data": rows, "code": "090001", "statementStatusUrl": format!("/api/v2/statements/{HANDLE}"), "requestId": "x", "sqlState": "00000",
        "statementHandle": HANDLE, "message": "Statement executed successfully.", "createdOn": 1_620_151_693_299_u64})
}

/// A result of one part.
pub fn page(columns: &[Json], rows: Json) -> Reply {
    let count = rows.as_array().unwrap().len();
    reply(200, result(columns, rows, &[count]))
}

/// Whole numbers, all of them in one part.
pub fn numbers(count: usize) -> Reply {
    let rows: Vec<Json> = (0..count).map(|n| json!([n.to_string()])).collect();
    page(&[number("N", 18, 0)], rows.into())
}

pub fn packed(body: &str) -> Vec<u8> {
    packed_by(body, Compression::default())
}

/// Of the form that is compressed, but no smaller than what is in it.
pub fn wrapped(body: &str) -> Vec<u8> {
    packed_by(body, Compression::none())
}

fn packed_by(body: &str, level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(body.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// A later part, as Snowflake sends it.
pub fn part(rows: Json) -> Reply {
    let body = packed(&json!({"data": rows}).to_string());
    raw(200, &[("Content-Encoding", "gzip")], body)
}

/// That a statement, or who asks, is refused.
pub fn refuses(status: u16, code: &str, sql_state: &str, text: &str) -> Reply {
    let body = json!({"code": code, "message": text, "sqlState": sql_state, "statementHandle": HANDLE, "createdOn": 1, "statementStatusUrl": "x"});
    reply(status, body)
}

pub fn catalog(include_fields: bool) -> Request {
    Request::Schema(SchemaFilter {
        schemas: vec![],
        tables: vec!["A".into(), "it's".into()],
        include_fields,
        limits: LIMITS,
    })
}

/// A session, and what was asked of Snowflake.
pub struct Talk(talk::Talk<Session>);

impl Deref for Talk {
    type Target = talk::Talk<Session>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Talk {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Talk {
    pub fn open(more: Json) -> Result<Talk, Error> {
        let talk = Talk(talk::Talk::begin(settings(more), NOW)?);
        assert!(talk.is_ready() && talk.asked.is_empty());
        Ok(talk)
    }

    pub fn usual() -> Talk {
        Talk::open(json!({})).unwrap()
    }

    /// A session that has begun a statement, of which it knows the name.
    pub fn waiting() -> (Talk, u32) {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.hears(0, waits()).unwrap();
        talk.wakes();
        (talk, id)
    }

    /// What becomes of a statement's answers.
    pub fn rows_of(&mut self, replies: impl IntoIterator<Item = Reply>) -> Answer {
        self.ask(query("SELECT 1", vec![], LIMITS), replies)
    }
}

/// The body of a request.
pub fn body(request: &HttpRequest) -> Json {
    serde_json::from_slice(&request.body).unwrap()
}
