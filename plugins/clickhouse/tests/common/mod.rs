//! A session, and a server that answers each of its requests as a test says.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

use std::ops::{Deref, DerefMut};

use souk_connector_clickhouse::Session;
use souk_sdk::{Error, Request, Settings};
use souk_tests::talk;
pub use souk_tests::talk::{Reply, query, raw as reply};
use souk_tests::wire::{Answer, LIMITS};

pub fn settings(json: &str) -> Settings {
    Settings {
        engine: "clickhouse".into(),
        json: json.into(),
    }
}

pub const SETTINGS: &str =
    r#"{"username":"souk","password":"pässw'ord","database":"shop","statement_timeout_ms":5000}"#;

pub fn rows(body: impl Into<Vec<u8>>) -> Reply {
    let headers = [("X-ClickHouse-Format", "RowBinaryWithNamesAndTypes")];
    reply(200, &headers, body)
}

/// An error as the server tells it.
pub fn fails(status: u16, code: u32, text: &str) -> Reply {
    let code = code.to_string();
    let body = format!("Code: {code}. DB::Exception: {text} (version 26.9.2.1)\n");
    reply(status, &[("X-ClickHouse-Exception-Code", &code)], body)
}

/// What the server says of itself: version and the profile's `readonly`.
pub fn hello(version: &str, readonly: &str) -> Reply {
    let mut body = vec![2];
    for text in ["version()", "r", "String", "String", version, readonly] {
        body.push(text.len() as u8);
        body.extend_from_slice(text.as_bytes());
    }
    rows(body)
}

/// A session, and what was asked of its server.
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
    /// A session whose hello is answered so.
    pub fn open(json: &str, hello: Reply) -> Result<Talk, Error> {
        let mut talk = Talk(talk::Talk::begin(settings(json), 0)?);
        talk.hears(0, hello)?;
        assert!(talk.is_ready());
        Ok(talk)
    }

    /// A session with the newest server, and a user who may do everything.
    pub fn usual() -> Talk {
        Talk::open(SETTINGS, hello("26.9.2.1", "0")).unwrap()
    }

    /// Asks one thing, of which the one request is answered so.
    pub fn ask(&mut self, request: Request, reply: Reply) -> Answer {
        self.0.ask(request, [reply])
    }

    /// Asks for a ping, of which the write that is tried is answered so, and what is tried to be stopped.
    pub fn ping(&mut self, written: Reply, stopped: Reply) -> Answer {
        self.0.ask(Request::Ping(LIMITS), [written, stopped])
    }

    pub fn rows_of(&mut self, reply: Reply) -> Answer {
        self.ask(query("SELECT 1", vec![], LIMITS), reply)
    }
}
