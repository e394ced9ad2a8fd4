//! How near the sandbox comes to native tokio-postgres: one thread, one current-thread runtime, the
//! same statements, the same JSON, interleaved rounds. Native is one shared, pipelined client with
//! prepared statements.
//!
//! `cargo run --release -p souk-sandbox --example bench_pg` (add `profile` to run the sandbox alone for
//! ten seconds, for `perf record`).

use std::{
    cell::RefCell,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use souk_outbound::{EgressPolicy, TlsMode};
use souk_sandbox::{
    Compiler, Grant, Limits, Options, PoolLimits, Query, Request, Sandbox, Scope, Source, Value,
    json::{self, Field},
};
use souk_tests::PgCluster;
use tokio_postgres::{Client, Row, Statement, types::ToSql};

const SCHEMA: &str = "
    CREATE TABLE players (
        id bigint PRIMARY KEY, name text NOT NULL, team text NOT NULL,
        goals integer NOT NULL, rating double precision NOT NULL, active boolean NOT NULL);
    INSERT INTO players
    SELECT i, 'Player ' || i, 'Team ' || (i % 100), i % 40, (i % 100) / 10.0, i % 3 <> 0
    FROM generate_series(1, 10000) AS i;
    CREATE INDEX players_team ON players (team);
    ANALYZE players";
const QUERIES: [(&str, &str, Parameter); 4] = [
    (
        "single",
        "SELECT id, name, team, goals, rating, active FROM players WHERE id = $1",
        Parameter::Number(77),
    ),
    (
        "aggregate",
        "SELECT sum(goals) AS goals FROM players WHERE team = $1",
        Parameter::Text("Team 7"),
    ),
    (
        "50 rows",
        "SELECT id, name, team, goals, rating, active FROM players ORDER BY id LIMIT $1",
        Parameter::Number(50),
    ),
    (
        "1000 rows",
        "SELECT id, name, team, goals, rating, active FROM players ORDER BY id LIMIT $1",
        Parameter::Number(1000),
    ),
];
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(400);

#[derive(Clone, Copy)]
enum Parameter {
    Number(i64),
    Text(&'static str),
}

impl Parameter {
    fn native(&self) -> &(dyn ToSql + Sync) {
        match self {
            Parameter::Number(number) => number,
            Parameter::Text(text) => text,
        }
    }

    fn value(&self) -> Value {
        match self {
            Parameter::Number(number) => Value::Int64(*number),
            Parameter::Text(text) => Value::Text((*text).into()),
        }
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let cluster = runtime.block_on(PgCluster::start(&[]));
    let database = runtime.block_on(cluster.database(SCHEMA));
    let local = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&local, bench(&cluster, &database));
}

async fn bench(cluster: &PgCluster, database: &str) {
    let directory = tempfile::TempDir::new().unwrap();
    let egress = EgressPolicy::public_only().allow_network("127.0.0.0/8".parse().unwrap());
    let sandbox =
        Sandbox::new(Options::new(directory.path(), egress, Compiler::InProcess)).unwrap();
    let (_, wasm) = souk_plugins::bundle()
        .iter()
        .find(|(name, _)| *name == "postgres")
        .expect("the postgres connector");
    let info = sandbox.load(*wasm, Scope::Platform).await.unwrap();
    sandbox
        .activate(&Scope::Platform, &info.name, &info.version)
        .await
        .unwrap();
    let source = Arc::new(Source {
        company: "com_bench".into(),
        connection: "con_bench".into(),
        revision: 1,
        engine: "postgres".into(),
        settings_json: format!(
            r#"{{"host":"127.0.0.1","port":{},"database":"{database}","username":"{}","password":"{}","ssl_mode":"disable"}}"#,
            cluster.port, cluster.user, cluster.password
        ),
        grant: Grant::Tcp {
            host: "127.0.0.1".into(),
            port: cluster.port,
            tls: TlsMode::Disable,
            ca_pem: None,
        },
        limits: PoolLimits {
            sessions_max: 8,
            queue_max: 1000,
        },
    });
    if std::env::args().any(|argument| argument == "profile") {
        let (_, sql, parameter) = QUERIES[0];
        let text: Arc<str> = sql.into();
        let end = Instant::now() + Duration::from_secs(10);
        let done = load(16, end, || souk(&sandbox, &source, &text, parameter)).await;
        println!("{} a second", done.len() / 10);
        return;
    }
    let native = Rc::new(cluster.client(database).await);
    for (name, sql, parameter) in QUERIES {
        let statement = native.prepare(sql).await.unwrap();
        let text: Arc<str> = sql.into();
        let (ours, theirs) = (
            souk(&sandbox, &source, &text, parameter).await,
            tokio_postgres(&native, &statement, parameter).await,
        );
        assert_eq!(
            ours,
            theirs,
            "{name}: {} {}",
            String::from_utf8_lossy(&ours),
            String::from_utf8_lossy(&theirs)
        );
        for clients in [1, 16, 64] {
            let mut rates = [Vec::new(), Vec::new()];
            let mut medians = [Vec::new(), Vec::new()];
            for round in 0..ROUNDS {
                for turn in 0..2 {
                    let kind = (turn + round) % 2;
                    let begun = Instant::now();
                    let mut took = match kind {
                        0 => {
                            load(clients, begun + ROUND, || {
                                tokio_postgres(&native, &statement, parameter)
                            })
                            .await
                        }
                        _ => {
                            load(clients, begun + ROUND, || {
                                souk(&sandbox, &source, &text, parameter)
                            })
                            .await
                        }
                    };
                    rates[kind].push(took.len() as f64 / begun.elapsed().as_secs_f64());
                    took.sort();
                    medians[kind].push(took[took.len() / 2].as_secs_f64() * 1e6);
                }
            }
            let mut ratios: Vec<f64> = rates[1]
                .iter()
                .zip(&rates[0])
                .map(|(ours, theirs)| ours / theirs)
                .collect();
            println!(
                "{name:10} {clients:3} clients: native {:7.0}/s {:6.0} us | souk {:7.0}/s {:6.0} us | throughput {:.2}",
                median(&mut rates[0]),
                median(&mut medians[0]),
                median(&mut rates[1]),
                median(&mut medians[1]),
                median(&mut ratios)
            );
        }
    }
    for info in sandbox.connectors() {
        println!(
            "{} {}: {} sessions, {} calls, {} traps",
            info.name, info.version, info.sessions.open, info.calls_total, info.traps_total
        );
    }
}

/// `clients` tasks that ask again and again until `end`; the time of each answer.
async fn load<F, Fut>(clients: usize, end: Instant, ask: F) -> Vec<Duration>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Vec<u8>>,
{
    let took = RefCell::new(Vec::new());
    let client = || async {
        while Instant::now() < end {
            let begun = Instant::now();
            std::hint::black_box(ask().await);
            took.borrow_mut().push(begun.elapsed());
        }
    };
    futures_util::future::join_all((0..clients).map(|_| client())).await;
    took.into_inner()
}

async fn souk(
    sandbox: &Sandbox,
    source: &Arc<Source>,
    text: &Arc<str>,
    parameter: Parameter,
) -> Vec<u8> {
    let request = Request::Query(Query {
        text: text.clone(),
        parameters: vec![parameter.value()],
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

async fn tokio_postgres(client: &Client, statement: &Statement, parameter: Parameter) -> Vec<u8> {
    let rows = client
        .query(statement, &[parameter.native()])
        .await
        .unwrap();
    let mut body = Vec::with_capacity(rows.len() * 128 + 64);
    body.push(b'[');
    for (position, row) in rows.iter().enumerate() {
        if position > 0 {
            body.push(b',');
        }
        write_row(&mut body, row);
    }
    body.push(b']');
    body
}

fn write_row(body: &mut Vec<u8>, row: &Row) {
    if row.len() == 1 {
        body.extend_from_slice(b"{\"goals\":");
        body.extend_from_slice(itoa::Buffer::new().format(row.get::<_, i64>(0)).as_bytes());
    } else {
        body.extend_from_slice(b"{\"id\":");
        body.extend_from_slice(itoa::Buffer::new().format(row.get::<_, i64>(0)).as_bytes());
        body.extend_from_slice(b",\"name\":");
        json::write_string(body, row.get::<_, &str>(1).as_bytes());
        body.extend_from_slice(b",\"team\":");
        json::write_string(body, row.get::<_, &str>(2).as_bytes());
        body.extend_from_slice(b",\"goals\":");
        body.extend_from_slice(itoa::Buffer::new().format(row.get::<_, i32>(3)).as_bytes());
        body.extend_from_slice(b",\"rating\":");
        body.extend_from_slice(zmij::Buffer::new().format(row.get::<_, f64>(4)).as_bytes());
        body.extend_from_slice(b",\"active\":");
        body.extend_from_slice(if row.get::<_, bool>(5) {
            b"true"
        } else {
            b"false"
        });
    }
    body.push(b'}');
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
