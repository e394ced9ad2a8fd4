//! Breaks the order of events or commands, in the way that a word of the statement names:
//! `SELECT done_twice FROM t`. Without one it answers as it should.

use souk_guests::{Behaviour, words};
use souk_sdk::{
    Batch, Column, ColumnBuilder, ColumnType, Error, HttpRequest, Query, Settings, Step, column,
};

struct BreaksProtocol;

souk_guests::export!(BreaksProtocol);

impl Behaviour for BreaksProtocol {
    const NAME: &'static str = "breaks-protocol";

    fn open(_settings: &Settings) -> Result<Self, Error> {
        Ok(BreaksProtocol)
    }

    fn query(&mut self, id: u32, query: Query, step: &mut Step) -> Result<(), Error> {
        let has = |name| words(&query).any(|word| word == name);
        if has("unknown_id") {
            step.done(id.wrapping_add(1_000));
            return Ok(());
        }
        if has("session_error") {
            return Err(Error::internal("session_error", "the session cannot go on"));
        }
        if has("send_without_wire") {
            step.send(b"there is no wire to send this on");
            return Ok(());
        }
        if has("request_elsewhere") {
            step.request(elsewhere());
            return Ok(());
        }
        if has("ready_twice") {
            step.ready();
        }
        if has("batch_before_columns") {
            step.batch(id, batch()?);
            step.done(id);
            return Ok(());
        }
        if has("unknown_shape") {
            step.columns(id, 77, None);
        } else {
            step.columns(id, 0, Some(columns()));
        }
        if has("columns_twice") {
            step.columns(id, 0, Some(columns()));
        }
        step.batch(
            id,
            if has("missing_chunk") {
                Batch {
                    rows: 1,
                    chunks: vec![],
                }
            } else {
                batch()?
            },
        );
        step.done(id);
        if has("done_twice") {
            step.done(id);
        }
        if has("batch_after_done") {
            step.batch(id, batch()?);
        }
        Ok(())
    }
}

fn columns() -> Vec<Column> {
    vec![column("id", ColumnType::Int64, "int8")]
}

fn batch() -> Result<Batch, Error> {
    let mut numbers = ColumnBuilder::new(ColumnType::Int64);
    numbers.i64(1)?;
    Ok(Batch {
        rows: 1,
        chunks: vec![numbers.finish()],
    })
}

/// A path that, joined carelessly, is another origin.
fn elsewhere() -> HttpRequest {
    HttpRequest {
        id: 1,
        method: "GET".into(),
        path: "@elsewhere.example/".into(),
        headers: vec![],
        body: vec![],
        timeout_ms: 1_000,
        response_bytes_max: 1_000,
    }
}
