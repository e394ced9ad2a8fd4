//! A session, and a server that answers each of its requests as a test says.
#![allow(dead_code, reason = "each test file uses its part")]

use souk_connector_clickhouse::Session;
use souk_sdk::{
    Command, Error, Header, HttpFailure, HttpRequest, HttpResponse, Input, Limits, Machine, Query,
    Request, Settings, Step, Value, WireFault,
};
use souk_tests::wire::{Answer, Answers, LIMITS};

pub type Reply = Result<HttpResponse, WireFault>;

pub fn settings(json: &str) -> Settings {
    Settings {
        engine: "clickhouse".into(),
        json: json.into(),
    }
}

pub const SETTINGS: &str =
    r#"{"username":"souk","password":"pässw'ord","database":"shop","statement_timeout_ms":5000}"#;

/// A response of the server's.
pub fn reply(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Reply {
    let header = |(name, value): &(&str, &str)| Header {
        name: (*name).into(),
        value: (*value).into(),
    };
    Ok(HttpResponse {
        id: 0,
        status,
        headers: headers.iter().map(header).collect(),
        body: body.into(),
    })
}

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

pub fn query(text: &str, parameters: Vec<Value>, limits: Limits) -> Request {
    Request::Query(Query {
        text: text.into(),
        parameters,
        limits,
    })
}

pub struct Talk {
    pub session: Session,
    /// Requests that wait for a reply.
    pub asked: Vec<HttpRequest>,
    answers: Answers,
    next: u32,
}

impl Talk {
    /// A session whose hello is answered so.
    pub fn open(json: &str, hello: Reply) -> Result<Talk, Error> {
        let mut talk = Talk {
            session: Session::open(settings(json))?,
            asked: Vec::new(),
            answers: Answers::default(),
            next: 0,
        };
        talk.step(|session, step| session.start(step))?;
        talk.hears(0, hello)?;
        assert!(talk.answers.is_ready);
        Ok(talk)
    }

    /// A session with the newest server, and a user who may do everything.
    pub fn usual() -> Talk {
        Talk::open(SETTINGS, hello("26.9.2.1", "0")).unwrap()
    }

    pub fn step(
        &mut self,
        act: impl FnOnce(&mut Session, &mut Step) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut step = Step::default();
        act(&mut self.session, &mut step)?;
        let (commands, events) = step.into_parts();
        for command in commands {
            match command {
                Command::Request(request) => self.asked.push(request),
                other => panic!("{other:?}"),
            }
        }
        events
            .into_iter()
            .for_each(|event| self.answers.take(event));
        Ok(())
    }

    pub fn submit(&mut self, request: Request) -> u32 {
        self.next += 1;
        let id = self.next;
        self.step(|session, step| session.submit(id, request, step))
            .unwrap();
        id
    }

    /// Answers the request at this place of those that wait.
    pub fn hears(&mut self, place: usize, reply: Reply) -> Result<(), Error> {
        let id = self.asked.remove(place).id;
        let input = match reply {
            Ok(response) => Input::Response(HttpResponse { id, ..response }),
            Err(fault) => Input::RequestFailed(HttpFailure {
                id,
                fault,
                message: "as the test says".into(),
            }),
        };
        self.step(|session, step| session.receive(input, step))
    }

    pub fn ended(&mut self, id: u32) -> Option<Answer> {
        self.answers.ended(id)
    }

    /// Asks one thing, of which the one request is answered so.
    pub fn ask(&mut self, request: Request, reply: Reply) -> Answer {
        let id = self.submit(request);
        if !self.asked.is_empty() {
            self.hears(0, reply).unwrap();
        }
        self.ended(id).unwrap()
    }

    pub fn rows_of(&mut self, reply: Reply) -> Answer {
        self.ask(query("SELECT 1", vec![], LIMITS), reply)
    }
}
