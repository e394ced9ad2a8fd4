//! A session over HTTP that is a state machine, and a source that answers each of its requests as a test says.

use souk_sdk::{
    Command, Error, ErrorClass, Header, HttpFailure, HttpRequest, HttpResponse, Input, Limits,
    Machine, Pause, Query, Request, Settings, Step, Value, WireFault,
};

use crate::wire::{Answer, Answers};

/// What a request is answered.
pub type Reply = Result<HttpResponse, WireFault>;

/// A response, to whichever request. It says how long it is, as a server does.
pub fn raw(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Reply {
    let body = body.into();
    let length = body.len().to_string();
    let header = |(name, value): &(&str, &str)| Header {
        name: (*name).into(),
        value: (*value).into(),
    };
    let own = [("content-length", length.as_str())];
    Ok(HttpResponse {
        id: 0,
        status,
        headers: headers.iter().chain(&own).map(header).collect(),
        body,
    })
}

pub fn query(text: &str, parameters: Vec<Value>, limits: Limits) -> Request {
    Request::Query(Query {
        text: text.into(),
        parameters,
        limits,
    })
}

pub fn class_and_code(error: &Error) -> (ErrorClass, &str) {
    (error.class, error.code.as_str())
}

/// The value of a request's header.
pub fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().find(|header| header.name == name);
    found.map(|header| header.value.as_str())
}

pub struct Talk<M> {
    pub session: M,
    /// Requests that wait for a reply.
    pub asked: Vec<HttpRequest>,
    /// Pauses that are not over.
    pub pauses: Vec<Pause>,
    /// The time of day at which everything happens.
    pub now: u64,
    answers: Answers,
    next: u32,
}

impl<M: Machine> Talk<M> {
    /// A session that has begun; what it has asked by then waits.
    pub fn begin(settings: Settings, now: u64) -> Result<Talk<M>, Error> {
        let mut talk = Talk {
            session: M::open(settings)?,
            asked: Vec::new(),
            pauses: Vec::new(),
            now,
            answers: Answers::default(),
            next: 0,
        };
        talk.step(|session, step| session.start(step))?;
        Ok(talk)
    }

    pub fn is_ready(&self) -> bool {
        self.answers.is_ready
    }

    pub fn step(
        &mut self,
        act: impl FnOnce(&mut M, &mut Step) -> Result<(), Error>,
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
}
