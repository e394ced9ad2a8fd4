//! How near the sandboxed SQLite comes to native rusqlite: one thread, the same file and statements, the same JSON, interleaved rounds.
//! No HTTP on either side; native writes bytes straight from SQLite's row.
//!
//! `cargo run --release -p souk-sandbox --example bench_file` (add `profile` to run the sandbox's 1,000 rows alone for ten
//! seconds, for `perf record`; `SOUK_CONNECTOR=FILE` takes another build of the connector).

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags};
use souk_outbound::EgressPolicy;
use souk_sandbox::{
    Compiler, Grant, Limits, Options, PoolLimits, Query, Request, Sandbox, Scope, Source, Value,
    json::{self, Field},
};

const SCHEMA: &str = "
    CREATE TABLE players (
        id integer PRIMARY KEY, name text NOT NULL, team text NOT NULL,
        goals integer NOT NULL, rating real NOT NULL, active boolean NOT NULL);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
    INSERT INTO players
    SELECT i, 'Player ' || i, 'Team ' || (i % 40), i % 40, (i % 100) / 10.0, i % 3 <> 0 FROM n;
    CREATE INDEX players_team ON players (team);
    ANALYZE";
const ROWS: &str = "SELECT id, name, team, goals, rating, active FROM players ORDER BY id LIMIT $1";
const COUNT: &str = "SELECT count(*), sum(length(name) + length(team) + goals + rating + active) FROM (SELECT id, name, team, goals, rating, active FROM players ORDER BY id LIMIT $1)";
const SUM: &str = "SELECT sum(goals) FROM players WHERE team = 'Team ' || $1";
const QUERIES: [(&str, &str, i64); 5] = [
    ("single row", ROWS, 1),
    ("50 rows", ROWS, 50),
    ("1,000 rows", ROWS, 1_000),
    ("of 1,000 rows", COUNT, 1_000),
    ("sum of 5,000", SUM, 7),
];
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(200);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, bench());
}

async fn bench() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("files/players.db");
    std::fs::create_dir(directory.path().join("files")).unwrap();
    Connection::open(&file)
        .unwrap()
        .execute_batch(SCHEMA)
        .unwrap();
    let cache = std::env::var("SOUK_CACHE").map_or(directory.path().join("cache"), Into::into);
    let options = Options::new(&cache, EgressPolicy::public_only(), Compiler::InProcess);
    let sandbox = Sandbox::new(options).unwrap();
    let wasm = match std::env::var("SOUK_CONNECTOR") {
        Ok(path) => std::fs::read(path).unwrap(),
        Err(_) => bundled().to_vec(),
    };
    let info = sandbox.load(wasm, Scope::Platform).await.unwrap();
    sandbox
        .activate(&Scope::Platform, &info.name, &info.version)
        .await
        .unwrap();
    let source = source(directory.path());

    if std::env::args().any(|argument| argument == "profile") {
        let end = Instant::now() + Duration::from_secs(10);
        let mut answers = 0;
        while Instant::now() < end {
            std::hint::black_box(souk(&sandbox, &source, &ROWS.into(), 1_000).await);
            answers += 1;
        }
        println!("{} a second", answers / 10);
        return;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags).unwrap();
    for (name, sql, parameter) in QUERIES {
        let text: Arc<str> = sql.into();
        let (ours, theirs) = (
            souk(&sandbox, &source, &text, parameter).await,
            native(&connection, sql, parameter),
        );
        if sql == ROWS {
            assert!(ours == theirs, "{name} differs");
        }
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            for turn in 0..2 {
                let kind = (turn + round) % 2;
                let (begun, mut answers) = (Instant::now(), 0u32);
                while begun.elapsed() < ROUND {
                    std::hint::black_box(match kind {
                        0 => native(&connection, sql, parameter),
                        _ => souk(&sandbox, &source, &text, parameter).await,
                    });
                    answers += 1;
                }
                times[kind].push(begun.elapsed().as_secs_f64() * 1e6 / f64::from(answers));
            }
        }
        let mut ratios: Vec<f64> = times[0].iter().zip(&times[1]).map(|(n, s)| n / s).collect();
        println!(
            "{name:14}: native {:7.1} us | souk {:7.1} us | speed {:.2}",
            median(&mut times[0]),
            median(&mut times[1]),
            median(&mut ratios)
        );
    }
}

fn bundled() -> &'static [u8] {
    let mut bundle = souk_plugins::bundle().iter();
    let (_, wasm) = bundle.find(|(name, _)| *name == "sqlite").unwrap();
    wasm
}

fn source(directory: &Path) -> Arc<Source> {
    Arc::new(Source {
        company: "com_bench".into(),
        connection: "con_bench".into(),
        revision: 1,
        engine: "sqlite".into(),
        settings_json: r#"{"database":"players.db"}"#.into(),
        grant: Grant::Directory(directory.join("files")),
        limits: PoolLimits {
            sessions_max: 8,
            queue_max: 1000,
        },
    })
}

async fn souk(sandbox: &Sandbox, source: &Arc<Source>, text: &Arc<str>, parameter: i64) -> Vec<u8> {
    let request = Request::Query(Query {
        text: text.clone(),
        parameters: vec![Value::Int64(parameter)],
        limits: Limits::new(10_000, 16 << 20),
    });
    let output = sandbox
        .run(source, request, Instant::now() + Duration::from_secs(30))
        .await
        .unwrap();
    let mut body = Vec::with_capacity(output.bytes * 3 + 256);
    json::write_rows(&mut body, &output, &Field::all(&output), 0..output.rows);
    body
}

fn native(connection: &Connection, sql: &str, parameter: i64) -> Vec<u8> {
    let mut statement = connection.prepare_cached(sql).unwrap();
    let columns = statement.column_count();
    let mut rows = statement.query([parameter]).unwrap();
    let mut body = Vec::with_capacity(parameter as usize * 96 + 64);
    body.push(b'[');
    while let Some(row) = rows.next().unwrap() {
        if columns == 6 {
            write_row(&mut body, row);
        } else {
            body.extend_from_slice(itoa::Buffer::new().format(integer(row, 0)).as_bytes());
        }
    }
    if body.last() == Some(&b',') {
        body.pop();
    }
    body.push(b']');
    body
}

fn write_row(body: &mut Vec<u8>, row: &rusqlite::Row<'_>) {
    body.extend_from_slice(b"{\"id\":");
    body.extend_from_slice(itoa::Buffer::new().format(integer(row, 0)).as_bytes());
    body.extend_from_slice(b",\"name\":");
    json::write_string(body, row.get_ref(1).unwrap().as_bytes().unwrap());
    body.extend_from_slice(b",\"team\":");
    json::write_string(body, row.get_ref(2).unwrap().as_bytes().unwrap());
    body.extend_from_slice(b",\"goals\":");
    body.extend_from_slice(itoa::Buffer::new().format(integer(row, 3)).as_bytes());
    body.extend_from_slice(b",\"rating\":");
    let rating = row.get::<_, f64>(4).unwrap();
    body.extend_from_slice(zmij::Buffer::new().format(rating).as_bytes());
    body.extend_from_slice(match row.get::<_, bool>(5).unwrap() {
        true => b",\"active\":true},",
        false => b",\"active\":false},",
    });
}

fn integer(row: &rusqlite::Row<'_>, column: usize) -> i64 {
    row.get(column).unwrap()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
