//! A session, and a coordinator that answers each of its requests as a test says.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

use std::ops::{Deref, DerefMut};

use serde_json::{Value as Json, json};
use souk_connector_trino::Session;
use souk_sdk::{Error, HttpRequest, Request, SchemaFilter, Settings};
use souk_tests::talk;
pub use souk_tests::talk::{Reply, class_and_code, header, query, raw};
use souk_tests::wire::{Answer, LIMITS};

/// Where the coordinator is, and where what is asked there goes on.
pub const ORIGIN: &str = "https://trino.example.com:8443";
pub const PATH: &str = "/v1/statement/executing/20261125_120000_00001_souk1/ya1b2/";
pub const BEGIN: &str = "START TRANSACTION READ ONLY";
pub const TRANSACTION: &str = "3d9c4be0-7a1f-4a53-9b39-5a9a9a3e7f10";

pub fn settings(more: Json) -> Settings {
    let mut settings = json!({"base_url": ORIGIN, "username": "ada", "password": "pässw'ord", "database": "lake.shop"});
    for (name, value) in more.as_object().unwrap() {
        settings[name] = value.clone();
    }
    Settings {
        engine: "trino".into(),
        json: settings.to_string(),
    }
}

pub fn reply(body: Json) -> Reply {
    raw(200, &[], body.to_string())
}

/// An answer that goes on, at this number, or does not.
pub fn results(next: Option<u32>, more: Json) -> Json {
    let id = "20261125_120000_00001_souk1";
    let mut results = json!({"id": id, "infoUri": format!("{ORIGIN}/ui/query.html?{id}"), "stats": {"state": "RUNNING"}, "warnings": []});
    if let Some(next) = next {
        results["nextUri"] = format!("{ORIGIN}{PATH}{next}").into();
    }
    for (name, value) in more.as_object().unwrap() {
        results[name] = value.clone();
    }
    results
}

/// That there is nothing yet.
pub fn waits(next: u32) -> Reply {
    reply(results(Some(next), json!({})))
}

/// That a transaction has begun.
pub fn begun() -> Reply {
    let body = results(None, json!({"updateType": "START TRANSACTION"}));
    let headers = [("X-Trino-Started-Transaction-Id", TRANSACTION)];
    raw(200, &headers, body.to_string())
}

/// That a transaction has ended.
pub fn ended() -> Reply {
    let headers = [("X-Trino-Clear-Transaction-Id", "true")];
    raw(
        200,
        &headers,
        results(None, json!({"updateType": "ROLLBACK"})).to_string(),
    )
}

pub fn column(name: &str, kind: &str) -> Json {
    json!({"name": name, "type": kind, "typeSignature": {"rawType": kind, "arguments": []}})
}

/// A page of rows.
pub fn page(next: Option<u32>, columns: &[Json], rows: Json) -> Reply {
    reply(results(next, json!({"columns": columns, "data": rows})))
}

/// Members of a page in the order in which Trino sends them. (A [`page`] has them by their names.)
pub const ORDER: [&str; 4] = ["id", "nextUri", "columns", "data"];

/// A page of these members, in this order.
pub fn ordered(page: &Reply, names: &[&str]) -> Reply {
    let page: Json = serde_json::from_slice(&page.as_ref().unwrap().body).unwrap();
    let member = |name: &&str| Some(format!("\"{name}\":{}", page.get(*name)?));
    let members: Vec<String> = names.iter().filter_map(member).collect();
    raw(200, &[], format!("{{{}}}", members.join(",")))
}

/// Whole numbers, all of them in the last page.
pub fn numbers(count: usize) -> Reply {
    let rows: Vec<Json> = (0..count).map(|n| json!([n])).collect();
    page(None, &[column("n", "bigint")], rows.into())
}

/// That a statement has failed.
pub fn fails(name: &str, kind: &str, text: &str) -> Reply {
    let error = json!({"message": text, "errorCode": 1, "errorName": name, "errorType": kind,
        "errorLocation": {"lineNumber": 1, "columnNumber": 8}, "failureInfo": {"type": "io.trino.spi.TrinoException"}});
    reply(results(
        None,
        json!({"error": error, "stats": {"state": "FAILED"}}),
    ))
}

pub fn catalog(include_fields: bool) -> Request {
    Request::Schema(SchemaFilter {
        schemas: vec![],
        tables: vec!["a".into(), "it's".into()],
        include_fields,
        limits: LIMITS,
    })
}

/// A session, and what was asked of its coordinator.
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
        let talk = Talk(talk::Talk::begin(settings(more), 0)?);
        assert!(talk.is_ready() && talk.asked.is_empty());
        Ok(talk)
    }

    pub fn usual() -> Talk {
        Talk::open(json!({})).unwrap()
    }

    /// What becomes of a statement's answers, its transaction beginning and ending as usual where it has one.
    pub fn rows_of(&mut self, replies: impl IntoIterator<Item = Reply>) -> Answer {
        let id = self.submit(query("SELECT 1", vec![], LIMITS));
        if text(&self.asked[0]) == BEGIN {
            self.hears(0, begun()).unwrap();
        }
        for reply in replies {
            self.hears(0, reply).unwrap();
        }
        while let Some(last) = self.asked.first() {
            assert!(
                text(last) == "ROLLBACK" || last.method == "DELETE",
                "{last:?}"
            );
            self.hears(0, ended()).unwrap();
        }
        self.ended(id).unwrap()
    }

    /// A session that has begun a statement, in its transaction.
    pub fn asking() -> (Talk, u32) {
        let mut talk = Talk::usual();
        let id = talk.submit(query("SELECT 1", vec![], LIMITS));
        talk.hears(0, begun()).unwrap();
        (talk, id)
    }
}

/// The statement that a request asks.
pub fn text(request: &HttpRequest) -> &str {
    std::str::from_utf8(&request.body).unwrap()
}
