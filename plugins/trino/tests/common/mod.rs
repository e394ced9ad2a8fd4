//! A session, and a coordinator that answers each of its requests as a test says.
#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::{Value as Json, json};
use souk_connector_trino::Session;
use souk_sdk::{
    Command, Error, ErrorClass, Header, HttpFailure, HttpRequest, HttpResponse, Input, Limits,
    Machine, Pause, Query, Request, SchemaFilter, Settings, Step, Value, WireFault,
};
use souk_tests::wire::{Answer, Answers, LIMITS};

pub type Reply = Result<HttpResponse, WireFault>;

/// Where the coordinator is, and where what is asked there goes on.
pub const ORIGIN: &str = "https://trino.example.com:8443";
pub const PATH: &str = "/v1/statement/executing/20261125_120000_00001_souk1/ya1b2/";
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

pub fn raw(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Reply {
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

pub fn query(text: &str, parameters: Vec<Value>, limits: Limits) -> Request {
    Request::Query(Query {
        text: text.into(),
        parameters,
        limits,
    })
}

pub fn catalog(include_fields: bool) -> Request {
    Request::Schema(SchemaFilter {
        schemas: vec![],
        tables: vec!["a".into(), "it's".into()],
        include_fields,
        limits: LIMITS,
    })
}

pub fn class_and_code(error: &Error) -> (ErrorClass, &str) {
    (error.class, error.code.as_str())
}

pub struct Talk {
    pub session: Session,
    /// Requests that wait for a reply.
    pub asked: Vec<HttpRequest>,
    /// Pauses that are not over.
    pub pauses: Vec<Pause>,
    answers: Answers,
    next: u32,
}

impl Talk {
    pub fn open(more: Json) -> Result<Talk, Error> {
        let mut talk = Talk {
            session: Session::open(settings(more))?,
            asked: Vec::new(),
            pauses: Vec::new(),
            answers: Answers::default(),
            next: 0,
        };
        talk.step(|session, step| session.start(step))?;
        assert!(talk.answers.is_ready && talk.asked.is_empty());
        Ok(talk)
    }

    pub fn usual() -> Talk {
        Talk::open(json!({})).unwrap()
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
                Command::Wake(pause) => self.pauses.push(pause),
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

    pub fn cancel(&mut self, id: u32) {
        self.step(|session, step| session.cancel(id, step)).unwrap();
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

    /// The pause is over; how long it was.
    pub fn wakes(&mut self) -> u32 {
        let pause = self.pauses.remove(0);
        self.step(|session, step| session.receive(Input::Woken(pause.id), step))
            .unwrap();
        pause.ms
    }

    pub fn ended(&mut self, id: u32) -> Option<Answer> {
        self.answers.ended(id)
    }

    /// Asks one thing, of which the requests are answered so, one after the other.
    pub fn ask(&mut self, request: Request, replies: impl IntoIterator<Item = Reply>) -> Answer {
        let id = self.submit(request);
        for reply in replies {
            if !self.asked.is_empty() {
                self.hears(0, reply).unwrap();
            }
        }
        self.ended(id).unwrap()
    }

    /// What becomes of a statement's answers, its transaction beginning and ending as usual.
    pub fn rows_of(&mut self, replies: impl IntoIterator<Item = Reply>) -> Answer {
        let id = self.submit(query("SELECT 1", vec![], LIMITS));
        self.hears(0, begun()).unwrap();
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

pub fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().find(|header| header.name == name);
    found.map(|header| header.value.as_str())
}
