//! A session, and a BigQuery that answers each of its requests as a test says.
#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::{Value as Json, json};
use souk_connector_bigquery::Session;
use souk_sdk::{
    Command, Error, ErrorClass, Header, HttpFailure, HttpRequest, HttpResponse, Input, Limits,
    Machine, Pause, Query, Request, SchemaFilter, Settings, Step, Value, WireFault,
};
use souk_tests::wire::{Answer, Answers, LIMITS};

pub type Reply = Result<HttpResponse, WireFault>;

/// The time of day at which everything here happens.
pub const NOW: u64 = 1_790_000_000;

/// The key file, with these members changed.
pub fn settings(more: Json) -> Settings {
    let mut settings: Json = serde_json::from_str(souk_tests::bigquery::KEY_FILE).unwrap();
    for (name, value) in more.as_object().unwrap() {
        settings[name] = value.clone();
    }
    Settings {
        engine: "bigquery".into(),
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

/// A refusal as Google's APIs tell it.
pub fn refuses(status: u16, reason: &str, text: &str) -> Reply {
    let cause = json!({"message": text, "domain": "global", "reason": reason});
    let error = json!({"code": status, "message": text, "errors": [cause]});
    raw(status, &[], json!({"error": error}).to_string())
}

/// What a dry run says.
pub fn dry(statement_type: &str) -> Reply {
    let query = json!({"statementType": statement_type});
    reply(json!({"status": {"state": "DONE"}, "statistics": {"query": query}}))
}

pub fn job() -> Json {
    json!({"projectId": "souk-test", "jobId": "job_1", "location": "EU"})
}

/// That a job has not ended.
pub fn waits() -> Reply {
    reply(json!({"jobComplete": false, "jobReference": job()}))
}

/// A page: fields as `name TYPE`, cells as BigQuery sends them.
pub fn page(fields: Json, rows: &[Json], total: usize, token: Option<&str>) -> Json {
    let row = |cells: &Json| {
        let cells = cells.as_array().unwrap().iter();
        json!({"f": cells.map(|cell| json!({"v": cell})).collect::<Vec<_>>()})
    };
    let mut page = json!({"jobComplete": true, "jobReference": job(), "schema": {"fields": fields},
        "rows": rows.iter().map(row).collect::<Vec<_>>(), "totalRows": total.to_string()});
    if let Some(token) = token {
        page["pageToken"] = token.into();
    }
    page
}

pub fn field(name: &str, kind: &str) -> Json {
    json!({"name": name, "type": kind, "mode": "NULLABLE"})
}

/// Whole numbers, all of them in one page.
pub fn numbers(count: usize) -> Reply {
    let rows: Vec<Json> = (0..count).map(|n| json!([n.to_string()])).collect();
    reply(page(json!([field("n", "INTEGER")]), &rows, count, None))
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
        tables: vec!["a".into(), "b".into()],
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
    pub now: u64,
}

impl Talk {
    /// A session whose hello is answered so.
    pub fn open(more: Json, hello: Reply) -> Result<Talk, Error> {
        let mut talk = Talk {
            session: Session::open(settings(more))?,
            asked: Vec::new(),
            pauses: Vec::new(),
            answers: Answers::default(),
            next: 0,
            now: NOW,
        };
        talk.step(|session, step| session.start(step))?;
        talk.hears(0, hello)?;
        assert!(talk.answers.is_ready);
        Ok(talk)
    }

    pub fn usual() -> Talk {
        Talk::open(json!({}), dry("SELECT")).unwrap()
    }

    pub fn step(
        &mut self,
        act: impl FnOnce(&mut Session, &mut Step) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut step = Step::at(self.now);
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

    /// What becomes of a result. Its statement is new to the session the first time only.
    pub fn rows_of(&mut self, reply: Reply) -> Answer {
        let id = self.submit(query("SELECT 1", vec![], LIMITS));
        if self.asked[0].path.contains("/jobs?") {
            self.hears(0, dry("SELECT")).unwrap();
        }
        self.hears(0, reply).unwrap();
        self.ended(id).unwrap()
    }
}

/// The body of a request.
pub fn body(request: &HttpRequest) -> Json {
    serde_json::from_slice(&request.body).unwrap()
}
