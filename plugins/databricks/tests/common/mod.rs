//! A session, and a workspace that answers each of its requests as a test says.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

use std::ops::{Deref, DerefMut};

use serde_json::{Value as Json, json};
use souk_connector_databricks::Session;
use souk_sdk::{Error, HttpRequest, Request, SchemaFilter, Settings};
use souk_tests::talk;
pub use souk_tests::talk::{Reply, class_and_code, header, query, raw};
use souk_tests::wire::{Answer, LIMITS};

pub const STATEMENTS: &str = "/api/2.0/sql/statements";
pub const ID: &str = "01f00f48-d4ac-1dc7-8b29-c92b18761007";
/// When everything happens.
pub const NOW: u64 = 1_764_100_000;

pub fn settings(more: Json) -> Settings {
    let mut settings = json!({"base_url": "https://dbc.example.com", "warehouse_id": "a1b2", "database": "lake.shop"});
    for (name, value) in more.as_object().unwrap() {
        settings[name] = value.clone();
    }
    Settings {
        engine: "databricks".into(),
        json: settings.to_string(),
    }
}

pub fn reply(body: Json) -> Reply {
    raw(200, &[], body.to_string())
}

/// That a statement is in this state.
pub fn is(state: &str) -> Reply {
    reply(json!({"statement_id": ID, "status": {"state": state}}))
}

pub fn column(name: &str, kind: &str) -> Json {
    json!({"name": name, "type_text": kind, "type_name": kind, "position": 0})
}

pub fn manifest(columns: &[Json], more: Json) -> Json {
    let mut manifest = json!({"format": "JSON_ARRAY", "schema": {"column_count": columns.len(), "columns": columns}, "truncated": false});
    for (name, value) in more.as_object().unwrap() {
        manifest[name] = value.clone();
    }
    manifest
}

/// A chunk of rows, and the number of the next one.
pub fn chunk(number: u32, next: Option<u32>, rows: &Json) -> Json {
    let mut chunk =
        json!({"chunk_index": number, "row_offset": 0, "row_count": 1, "data_array": rows});
    if let Some(next) = next {
        chunk["next_chunk_index"] = next.into();
    }
    chunk
}

/// That a statement has ended, with all of its rows.
pub fn rows(columns: &[Json], list: &Json) -> Reply {
    let total = list.as_array().map_or(0, Vec::len);
    some_rows(columns, Some(total), None, list)
}

/// That it has ended with so many rows, and the first ones of them.
pub fn some_rows(columns: &[Json], total: Option<usize>, next: Option<u32>, list: &Json) -> Reply {
    let more = total.map_or(json!({}), |total| json!({"total_row_count": total}));
    reply(
        json!({"statement_id": ID, "status": {"state": "SUCCEEDED"}, "manifest": manifest(columns, more), "result": chunk(0, next, list)}),
    )
}

/// An answer of these members, in this order.
pub fn ordered(answer: &Json, names: &[&str]) -> Reply {
    let member = |name: &&str| Some(format!("\"{name}\":{}", answer.get(*name)?));
    let members: Vec<String> = names.iter().filter_map(member).collect();
    raw(200, &[], format!("{{{}}}", members.join(",")))
}

/// The answer to `DESCRIBE QUERY`: names and types.
pub fn described(columns: &[(&str, &str)]) -> Reply {
    let parts = ["col_name", "data_type", "comment"].map(|name| column(name, "STRING"));
    let list: Vec<Json> = columns
        .iter()
        .map(|(name, kind)| json!([name, kind, null]))
        .collect();
    rows(&parts, &list.into())
}

/// Whole numbers, all of them in one chunk.
pub fn numbers(count: usize) -> Reply {
    let list: Vec<Json> = (0..count).map(|n| json!([n.to_string()])).collect();
    rows(&[column("n", "BIGINT")], &list.into())
}

/// That a statement has failed.
pub fn fails(message: &str) -> Reply {
    let error = json!({"error_code": "BAD_REQUEST", "message": message});
    reply(json!({"statement_id": ID, "status": {"state": "FAILED", "error": error}}))
}

pub fn catalog(include_fields: bool) -> Request {
    Request::Schema(SchemaFilter {
        schemas: vec![],
        tables: vec!["a".into(), "it's".into()],
        include_fields,
        limits: LIMITS,
    })
}

/// What a request's body says.
pub fn body(request: &HttpRequest) -> Json {
    serde_json::from_slice(&request.body).unwrap()
}

/// The statement that a request begins.
pub fn text(request: &HttpRequest) -> String {
    body(request)["statement"].as_str().unwrap().to_owned()
}

/// A session, and what was asked of its workspace.
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
        talk::Talk::begin(settings(more), NOW).map(Talk)
    }

    pub fn usual() -> Talk {
        let talk = Talk::open(json!({})).unwrap();
        assert!(talk.is_ready() && talk.asked.is_empty());
        talk
    }

    /// Asks `SELECT 1`, which has been described as columns of these types, and answers the statement itself so.
    pub fn rows_of(&mut self, kinds: &[&str], replies: impl IntoIterator<Item = Reply>) -> Answer {
        let kinds: Vec<(&str, &str)> = kinds.iter().map(|kind| ("n", *kind)).collect();
        let id = self.submit(query("SELECT 1", vec![], LIMITS));
        if text(&self.asked[0]).starts_with("DESCRIBE") {
            self.hears(0, described(&kinds)).unwrap();
        }
        for reply in replies {
            if !self.asked.is_empty() {
                self.hears(0, reply).unwrap();
            }
        }
        // What goes on is stopped.
        while let Some(last) = self.asked.first() {
            assert!(last.path.ends_with("/cancel"), "{last:?}");
            self.hears(0, reply(json!({}))).unwrap();
        }
        self.ended(id).unwrap()
    }

    /// A session that has begun a statement, which was described.
    pub fn asking() -> (Talk, u32) {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.hears(0, described(&[("n", "bigint")])).unwrap();
        (talk, id)
    }

    /// A session whose statement runs.
    pub fn waiting() -> (Talk, u32) {
        let (mut talk, id) = Talk::asking();
        talk.hears(0, is("PENDING")).unwrap();
        (talk, id)
    }
}
