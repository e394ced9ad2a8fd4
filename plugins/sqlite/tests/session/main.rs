//! What a session on a real file promises, through the contract's own types.

mod catalog;
mod limits;
mod refusals;
mod rows;

use rusqlite::Connection;
use souk_connector_sqlite::Session;
use souk_sdk::{
    Column, ColumnData, Error, Event, Limits, Machine, Query, Request, Settings, Step, Value,
};
use std::path::Path;
use tempfile::TempDir;

const LIMITS: Limits = Limits {
    rows_max: 1_000,
    bytes_max: 1 << 20,
    timeout_ms: 5_000,
};

/// A directory with `shop.db` in it.
fn shop() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let connection = Connection::open(directory.path().join("shop.db")).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, region TEXT NOT NULL, amount DECIMAL(10,2), placed_on DATE, paid BOOLEAN);
             INSERT INTO orders VALUES (1, 'north', 10, '2026-01-01', 1), (2, 'south', 2.5, '2026-01-02', 0), (3, 'north', NULL, NULL, NULL);
             CREATE VIEW north AS SELECT * FROM orders WHERE region = 'north';
             CREATE TABLE stock (sku TEXT, place TEXT, n INT, PRIMARY KEY (sku, place)) WITHOUT ROWID;
             CREATE VIRTUAL TABLE notes USING fts5(body);
             INSERT INTO notes VALUES ('a red apple'), ('a green pear');
             ANALYZE orders;
             CREATE TABLE gone (x); CREATE VIEW broken AS SELECT x FROM gone; DROP TABLE gone;",
        )
        .unwrap();
    directory
}

fn settings(database: &str) -> Settings {
    Settings {
        engine: "sqlite".into(),
        json: format!("{{\"database\":{database:?},\"other\":null}}"),
    }
}

fn open(directory: &Path, database: &str) -> Result<Session, Error> {
    let mut session = Session::open_in(directory, &settings(database))?;
    let mut step = Step::default();
    session.start(&mut step)?;
    assert_eq!(step.into_parts().1, [Event::Ready]);
    Ok(session)
}

fn query(text: &str, parameters: Vec<Value>) -> Request {
    Request::Query(Query {
        text: text.into(),
        parameters,
        limits: LIMITS,
    })
}

#[derive(Debug)]
struct Answer {
    columns: Option<Vec<Column>>,
    shape: u32,
    rows: u32,
    data: Vec<ColumnData>,
}

fn ask(session: &mut Session, request: Request) -> Result<Answer, Error> {
    let mut step = Step::default();
    session.submit(7, request, &mut step).unwrap();
    let (commands, events) = step.into_parts();
    assert_eq!(commands, []);
    let mut answer = Answer {
        columns: None,
        shape: 0,
        rows: 0,
        data: Vec::new(),
    };
    let last = events.len() - 1;
    for (at, event) in events.into_iter().enumerate() {
        match event {
            Event::Columns(shape) if at == 0 => {
                (answer.shape, answer.columns) = (shape.shape, shape.columns)
            }
            Event::Batch(rows) => {
                answer.rows += rows.batch.rows;
                answer.data = rows
                    .batch
                    .chunks
                    .into_iter()
                    .map(|chunk| chunk.data)
                    .collect();
            }
            Event::Done(7) if at == last => return Ok(answer),
            Event::Failed(failure) if at == last => return Err(failure.error),
            other => panic!("event {at}: {other:?}"),
        }
    }
    panic!("the request did not end")
}

fn strings(data: &ColumnData) -> Vec<String> {
    let ColumnData::VarLen(var) = data else {
        panic!("{data:?}")
    };
    let ends = var.offsets.windows(2);
    ends.map(|ends| {
        String::from_utf8(var.bytes[ends[0] as usize..ends[1] as usize].to_vec()).unwrap()
    })
    .collect()
}

#[test]
fn ping_tells_the_version_and_that_writes_are_refused() {
    let directory = shop();
    let mut session = open(directory.path(), "shop.db").unwrap();
    let answer = ask(&mut session, Request::Ping(LIMITS)).unwrap();
    assert!(strings(&answer.data[0])[0].starts_with("SQLite 3."));
    assert_eq!(answer.data[1], ColumnData::Bits(vec![1]));
}

/// A session goes on reading the file it opened when another is renamed over it.
#[test]
fn a_replaced_file_is_seen_by_new_sessions_only() {
    let directory = shop();
    let mut old = open(directory.path(), "shop.db").unwrap();
    let draft = directory.path().join("draft");
    Connection::open(&draft)
        .unwrap()
        .execute_batch("CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (99)")
        .unwrap();
    std::fs::rename(&draft, directory.path().join("shop.db")).unwrap();
    let count = query("SELECT max(id) FROM orders", vec![]);
    assert_eq!(
        ask(&mut old, count.clone()).unwrap().data[0],
        ColumnData::I64s(vec![3])
    );
    let mut new = open(directory.path(), "shop.db").unwrap();
    assert_eq!(
        ask(&mut new, count).unwrap().data[0],
        ColumnData::I64s(vec![99])
    );
}
