//! A session, and a server that answers each of its requests as a test says: what DuckDB 1.5.5 has answered (`recorded.txt`), or worse.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use serde_json::{Value as Json, json};
use souk_connector_duckdb::Session;
use souk_sdk::{Error, HttpRequest, Request, Settings};
use souk_tests::talk;
pub use souk_tests::talk::{Reply, class_and_code, query, raw};
use souk_tests::wire::{Answer, LIMITS};

const RECORDED: &str = include_str!("../recorded.txt");

/// What a server has answered, by its name: thousands of spoilt answers are made of it.
static ANSWERS: LazyLock<HashMap<&str, Vec<u8>>> = LazyLock::new(|| {
    let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    let answer = |line: &'static str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let digits = fields[2].as_bytes().chunks(2).map(|two| {
            let two = std::str::from_utf8(two).unwrap();
            u8::from_str_radix(two, 16).unwrap()
        });
        (fields[0], digits.collect())
    };
    lines.map(answer).collect()
});

pub fn recorded(name: &str) -> Vec<u8> {
    let found = ANSWERS.get(name);
    found
        .unwrap_or_else(|| panic!("{name} is not recorded"))
        .clone()
}

pub fn names() -> Vec<&'static str> {
    let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split('\t').next().unwrap()).collect()
}

pub fn reply(name: &str) -> Reply {
    raw(200, &[], recorded(name))
}

/// A recorded answer that says that there is more.
pub fn goes_on(name: &str) -> Vec<u8> {
    let body = recorded(name);
    // Before the chunks (field 4) stands nothing, where there is no more.
    let chunks = [0x04, 0x00, 0x01, 0x01, 0x2c, 0x01];
    let at = body.windows(6).position(|part| part == chunks).unwrap();
    [&body[..at], &[0x03, 0x00, 0x01], &body[at..]].concat()
}

/// The recorded rows as the answer of that number.
pub fn fetched(number: u8) -> Reply {
    let mut body = recorded("fetched");
    let at = body.len() - 3;
    assert_eq!(body[at], 1);
    body[at] = number;
    raw(200, &[], body)
}

/// What the parser says of [`Talk::select`] where a database of another engine is attached that may be written to: the last word but one is another one.
pub fn parsed_beside_a_foreign() -> Reply {
    let body = recorded("parsed_one");
    let word = b"\x05false";
    let last_of = |body: &[u8]| {
        let at = body.windows(word.len()).rposition(|part| part == word);
        at.unwrap()
    };
    let at = last_of(&body[..last_of(&body)]);
    let rest = &body[at + word.len()..];
    raw(200, &[], [&body[..at], b"\x04true", rest].concat())
}

/// An error in DuckDB's words.
pub fn refuses(message: &str) -> Reply {
    let mut body = vec![1, 0, 100, 3, 0];
    body.extend([0xff; 9]);
    body.extend([1, 0xff, 0xff, 1, 0]);
    assert!(message.len() < 128);
    body.push(message.len() as u8);
    body.extend(message.as_bytes());
    body.extend([0xff, 0xff]);
    raw(200, &[], body)
}

pub fn settings(more: Json) -> Settings {
    let mut settings = json!({"base_url": "https://duck.example.com", "api_key": "secrettoken"});
    for (name, value) in more.as_object().unwrap() {
        settings[name] = value.clone();
    }
    Settings {
        engine: "duckdb".into(),
        json: settings.to_string(),
    }
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
    pub fn open(more: Json) -> Result<Talk, Error> {
        let talk = Talk(talk::Talk::begin(settings(more), 0)?);
        assert!(talk.is_ready() && talk.asked.is_empty());
        Ok(talk)
    }

    pub fn usual() -> Talk {
        Talk::open(json!({})).unwrap()
    }

    /// A statement as it is asked for in [`parsed`](Talk::asking): it has no placeholder.
    pub fn select() -> Request {
        query("SELECT 1", vec![], LIMITS)
    }

    /// A session that has asked a statement, in its transaction.
    pub fn asking() -> (Talk, u32) {
        let mut talk = Talk::usual();
        let id = talk.submit(Talk::select());
        for name in ["connected", "parsed_one"] {
            talk.hears(0, reply(name)).unwrap();
        }
        assert_eq!(text(&talk.asked[0]), asked_within("SELECT 1"));
        (talk, id)
    }

    /// A session that has asked for the second part of a statement's rows.
    pub fn fetching() -> (Talk, u32) {
        let (mut talk, id) = Talk::asking();
        talk.hears(0, raw(200, &[], goes_on("filtered_ints")))
            .unwrap();
        assert_eq!(kind(&talk.asked[0]), 7);
        (talk, id)
    }

    /// What becomes of a statement that is answered so.
    pub fn rows_of(reply_of: Reply) -> Answer {
        let (mut talk, id) = Talk::asking();
        talk.hears(0, reply_of).unwrap();
        talk.hears(0, reply("ended")).unwrap();
        talk.ended(id).unwrap()
    }
}

/// A statement behind what begins its transaction.
pub fn asked_within(statement: &str) -> String {
    format!("BEGIN TRANSACTION READ ONLY;\n{statement}")
}

/// What a message is.
pub fn kind(request: &HttpRequest) -> u8 {
    request.body[2]
}

pub const CONNECT: u8 = 1;
pub const DISCONNECT: u8 = 11;

/// The statement that a request asks, where it is short.
pub fn text(request: &HttpRequest) -> &str {
    let body = &request.body;
    // The head has the id of the connection and no number of a query; then comes a field of one byte of length, or two.
    let at = 5 + 33 + 2 + 10 + 2 + 2;
    let begin = at + if body[at] & 0x80 == 0 { 1 } else { 2 };
    std::str::from_utf8(&body[begin..body.len() - 2]).unwrap()
}
