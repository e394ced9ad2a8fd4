//! Files that nobody should have made: what is in them is answered or refused, never a panic, and soon.

use rusqlite::Connection;
use souk_connector_sqlite::Session;
use souk_sdk::{
    ColumnData, Error, ErrorClass, Event, Limits, Machine, Query, Request, SchemaFilter, Settings,
    Step,
};
use souk_tests::spoilt::Spoiler;
use std::path::Path;
use std::time::{Duration, Instant};

/// How many ways the file is spoilt in.
const ROUNDS: usize = 2_000;
const LIMITS: Limits = Limits {
    rows_max: 1_000,
    bytes_max: 1 << 20,
    timeout_ms: 1_000,
};
/// All requests of a round take some milliseconds together.
const WITHIN: Duration = Duration::from_secs(20);

/// Trees of all kinds on small pages, of which there are many so: tables with numbers and without, an index, rows of several pages, a full-text
/// table, an R-Tree, and what ANALYZE keeps.
const SHOP: &str = "PRAGMA page_size = 512;
    CREATE TABLE orders (id INTEGER PRIMARY KEY, region TEXT NOT NULL, amount DECIMAL(10,2), placed_on DATE, paid BOOLEAN, raw BLOB);
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 200)
    INSERT INTO orders SELECT n, CASE n % 2 WHEN 0 THEN 'north' ELSE 'south' END, n / 4.0, date('2026-01-01', n || ' days'), n % 2, zeroblob(n % 40) FROM s;
    INSERT INTO orders VALUES (1000, 'far', NULL, NULL, NULL, zeroblob(3000));
    CREATE INDEX by_region ON orders (region, amount);
    CREATE VIEW north AS SELECT * FROM orders WHERE region = 'north';
    CREATE TABLE stock (sku TEXT, place TEXT, n INT, PRIMARY KEY (sku, place)) WITHOUT ROWID;
    INSERT INTO stock SELECT 'sku ' || id, region, id FROM orders WHERE id < 50;
    CREATE VIRTUAL TABLE notes USING fts5(body);
    INSERT INTO notes SELECT 'a red apple ' || id FROM orders WHERE id < 20;
    CREATE VIRTUAL TABLE places USING rtree(id, west, east);
    INSERT INTO places SELECT id, id, id + 1 FROM orders WHERE id < 50;
    ANALYZE;";

fn requests() -> Vec<Request> {
    let queries = [
        "SELECT * FROM orders",
        "SELECT region, count(*), sum(amount) FROM orders GROUP BY region",
        "SELECT id FROM orders WHERE region = 'north' ORDER BY amount DESC",
        "SELECT * FROM stock WHERE sku > 'sku 2'",
        "SELECT body FROM notes WHERE notes MATCH 'apple'",
        "SELECT id FROM places WHERE east > 5",
        "SELECT * FROM north",
    ];
    let mut requests = vec![Request::Ping(LIMITS), catalog()];
    requests.extend(queries.map(query));
    requests
}

fn query(text: &str) -> Request {
    Request::Query(Query {
        text: text.into(),
        parameters: vec![],
        limits: LIMITS,
    })
}

fn catalog() -> Request {
    Request::Schema(SchemaFilter {
        schemas: vec![],
        tables: vec![],
        include_fields: true,
        limits: LIMITS,
    })
}

/// A session on `shop.db`.
fn open(directory: &Path) -> Result<Session, Error> {
    let settings = Settings {
        engine: "sqlite".into(),
        json: r#"{"database":"shop.db"}"#.into(),
    };
    let mut session = Session::open_in(directory, &settings)?;
    session.start(&mut Step::default())?;
    Ok(session)
}

/// The columns of the answer, which has one batch at most.
fn ask(session: &mut Session, request: Request) -> Result<Vec<ColumnData>, Error> {
    let mut step = Step::default();
    session.submit(1, request, &mut step).unwrap();
    let mut columns = Vec::new();
    for event in step.into_parts().1 {
        match event {
            Event::Columns(_) => {}
            Event::Batch(rows) => {
                let chunks = rows.batch.chunks.into_iter();
                columns = chunks.map(|chunk| chunk.data).collect();
            }
            Event::Done(1) => return Ok(columns),
            Event::Failed(failure) => return Err(failure.error),
            other => panic!("{other:?}"),
        }
    }
    panic!("it did not end");
}

/// Bytes changed, cut out, put in and doubled, thousands of ways. Nobody is blamed but the file, and it stays as it is.
#[test]
fn no_file_makes_it_panic() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(SHOP).unwrap();
    drop(connection);
    let whole = std::fs::read(&path).unwrap();
    let look = |file: &[u8]| {
        std::fs::write(&path, file).unwrap();
        let begun = Instant::now();
        let answers = match open(directory.path()) {
            Ok(mut session) => requests()
                .into_iter()
                .map(|request| ask(&mut session, request).err())
                .collect(),
            Err(error) => vec![Some(error)],
        };
        assert!(begun.elapsed() < WITHIN, "{:?}", begun.elapsed());
        assert!(std::fs::read(&path).unwrap() == file, "it was changed");
        answers
    };
    assert!(look(&whole).iter().all(Option::is_none));
    // Kinds of pages, and numbers of a byte and of two.
    let mut spoiler = Spoiler::new(b"\0\x01\x02\x05\x0a\x0d\x7f\x80\xff");
    let (mut read, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        let file = spoiler.spoilt(std::slice::from_ref(&whole)).concat();
        let errors: Vec<Error> = look(&file).into_iter().flatten().collect();
        for error in &errors {
            let blames = [ErrorClass::Internal, ErrorClass::InvalidRequest];
            assert!(!blames.contains(&error.class), "{error:?}");
        }
        match errors.is_empty() {
            true => read += 1,
            false => refused += 1,
        }
    }
    println!("{read} were read, {refused} not, or not whole");
    assert!(read > 100 && refused > 100);
}

/// A name that is no text, as programs leave it that write in a code page, can stand in no statement: it is in no catalog, and keeps nothing else
/// from being there.
#[test]
fn names_that_are_no_text_spoil_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE fine (id INTEGER PRIMARY KEY, v TEXT); CREATE TABLE groXe (a INT);
             CREATE TABLE goods (a INTEGER, groXe INT, PRIMARY KEY (a, groXe)); INSERT INTO goods VALUES (7, 8); ANALYZE",
        )
        .unwrap();
    drop(connection);
    let mut file = std::fs::read(&path).unwrap();
    let places: Vec<usize> = file
        .windows(5)
        .enumerate()
        .filter_map(|(at, bytes)| (bytes == b"groXe").then_some(at))
        .collect();
    for at in places {
        // In ISO 8859-1.
        file[at + 3] = 0xdf;
    }
    std::fs::write(&path, file).unwrap();
    let mut session = open(directory.path()).unwrap();
    let columns = ask(&mut session, catalog()).unwrap();
    assert_eq!(texts(&columns[1]), ["fine", "fine", "goods"]);
    assert_eq!(texts(&columns[4]), ["id", "v", "a"]);
    // A part of a key may be NULL, also where another part is not told.
    assert_eq!(columns[6], ColumnData::Bits(vec![0b110]));
    // What has no name to be asked by is read all the same.
    let goods = ask(&mut session, query("SELECT * FROM goods")).unwrap();
    assert_eq!(goods, [7, 8].map(|n| ColumnData::I64s(vec![n])));
}

fn texts(column: &ColumnData) -> Vec<&str> {
    let ColumnData::VarLen(values) = column else {
        panic!("{column:?}");
    };
    let ends = values.offsets.windows(2);
    let pieces = ends.map(|ends| &values.bytes[ends[0] as usize..ends[1] as usize]);
    pieces
        .map(|bytes| std::str::from_utf8(bytes).unwrap())
        .collect()
}
