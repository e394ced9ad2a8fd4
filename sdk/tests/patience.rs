//! Time, pauses and a second session, as an author tests them without a host.

use souk_sdk::testing::{LIMITS, NOW, Origin, Session, Wire};
use souk_sdk::{
    Cell, ColumnType, Connector, Descriptor, Errand, Error, ErrorClass, Io, Need, Query, Request,
    Rows, Settings, Tcp, column,
};

/// Sends its statement as a line and answers the line that comes; `job` is asked for until it is done.
struct Patient {
    io: Io,
    wire: Tcp,
}

impl Connector for Patient {
    fn describe() -> Descriptor {
        Descriptor::new("patient", "1.0.0", Need::Tcp)
            .engine("patient", "Patient", "opaque", &[])
            .abilities(&["cancel"])
    }

    async fn open(_settings: Settings, io: Io) -> Result<Self, Error> {
        let wire = io.tcp();
        wire.write(format!("HELLO at {}\n", io.now()).as_bytes());
        Ok(Patient { io, wire })
    }

    async fn query(&self, query: Query, rows: &mut Rows) -> Result<(), Error> {
        let mut answer = self.ask(&query.text).await?;
        while answer == "WAIT" {
            self.io.sleep(250).await;
            answer = self.ask(&query.text).await?;
        }
        if answer == "KILLED" {
            return Err(Error::timeout("killed", "the statement was stopped"));
        }
        rows.columns([column("line", ColumnType::Text, "line")])?;
        rows.push([Cell::Text(&format!("{answer} at {}", self.io.now()))])
    }

    fn stop(&self) -> Option<Vec<u8>> {
        Some(b"KILL 7".to_vec())
    }

    async fn errand(&self, errand: Errand) -> Result<(), Error> {
        self.ask(&String::from_utf8_lossy(&errand.message)).await?;
        Ok(())
    }
}

impl Patient {
    async fn ask(&self, text: &str) -> Result<String, Error> {
        self.wire.write(format!("{text}\n").as_bytes());
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            self.wire.read_exact(&mut byte).await?;
            if byte == *b"\n" {
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            line.extend(byte);
        }
    }
}

fn asks(text: &str) -> Request {
    Request::Query(Query {
        text: text.to_owned(),
        parameters: Vec::new(),
        limits: LIMITS,
    })
}

/// A job is asked for with pauses in between, which take no time in a test and are seen; the time of day is that of the request.
#[test]
fn pauses_pass_at_once() -> Result<(), Error> {
    let wire = Wire::new().at(1_000).expects("HELLO at 1000\n");
    let wire = wire.expects("job\n").sends("WAIT\n");
    let wire = wire.expects("job\n").sends("WAIT\n");
    let wire = wire.expects("job\n").sends("done\n");
    let mut session = Session::<Patient>::tcp("{}", wire.in_pieces(1))?;
    session.set_now(NOW);
    assert_eq!(
        session.ask(asks("job"))?.texts(),
        [[format!("done at {NOW}")]]
    );
    assert_eq!(session.now_ms(), NOW * 1_000 + 500);
    Ok(())
}

/// Who cancels has a second session told to stop the first one, which goes on; nothing else begins before that is over.
#[test]
fn a_cancelled_request_is_stopped_by_another_session() -> Result<(), Error> {
    let wire = Wire::new().at(1).expects("HELLO at 1\n");
    let wire = wire.expects("long\n").sends("KILLED\n");
    let wire = wire.expects("short\n").sends("ok\n");
    let mut session = Session::<Patient>::tcp("{}", wire)?;
    let stopped = session.ask_and_cancel(asks("long")).unwrap_err();
    assert_eq!(
        (stopped.class, stopped.code.as_str()),
        (ErrorClass::Timeout, "killed")
    );
    assert_eq!(session.errands(), [b"KILL 7"]);
    assert_eq!(session.ask(asks("short"))?.texts(), [["ok at 1"]]);

    let wire = Wire::new().at(1).expects("HELLO at 1\n");
    let wire = wire.expects("KILL 7\n").sends("OK\n");
    Session::<Patient>::tcp("{}", wire)?.errand("KILL 7")
}

/// Where there is no second session, the source ends the request as it would have.
#[test]
fn without_a_second_session_the_source_goes_on() -> Result<(), Error> {
    let wire = Wire::new().at(1).expects("HELLO at 1\n");
    let wire = wire.expects("long\n").sends("late\n");
    let wire = wire.without_errands("no room");
    let mut session = Session::<Patient>::tcp("{}", wire)?;
    let late = session.ask_and_cancel(asks("long"))?;
    assert_eq!(late.texts(), [["late at 1"]]);
    Ok(())
}

/// An API that is polled: the same over http.
struct Polls(Io);

impl Connector for Polls {
    fn describe() -> Descriptor {
        Descriptor::new("polls", "1.0.0", Need::Http).engine("polls", "Polls", "opaque", &[])
    }

    async fn open(_settings: Settings, io: Io) -> Result<Self, Error> {
        Ok(Polls(io))
    }

    async fn query(&self, query: Query, rows: &mut Rows) -> Result<(), Error> {
        self.0.sleep(1_500).await;
        let request = souk_sdk::http::Request::get(query.text);
        self.0.http().send(request).await?.success()?;
        rows.columns([column("at", ColumnType::Int64, "")])?;
        rows.push([Cell::Int64(self.0.now() as i64)])
    }
}

#[test]
fn an_api_is_polled() -> Result<(), Error> {
    let mut session = Session::<Polls>::http("{}", Origin::new().get("/job", "{}"))?;
    let answer = session.ask(asks("/job"))?;
    assert_eq!(answer.texts(), [[(NOW + 1).to_string()]]);
    Ok(())
}
