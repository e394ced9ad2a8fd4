//! A real PostgreSQL, and a host's part in small: a socket that carries out what the session says.
#![allow(dead_code, reason = "each test file uses its part")]

use souk_connector_postgres::Session;
use souk_sdk::{
    Chunk, Column, ColumnData, Command, Error, Event, Input, Limits, Machine, Query, Request,
    Settings, Step, Value,
};
use souk_tests::PgCluster;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_postgres::SimpleQueryMessage;

pub const LIMITS: Limits = Limits {
    rows_max: 100_000,
    bytes_max: 64 << 20,
    timeout_ms: 10_000,
};

/// Who logs in how.
const ACCESS: &str = "host all md5er 127.0.0.1/32 md5\nhost all clear 127.0.0.1/32 password\nhost all all 127.0.0.1/32 scram-sha-256\n";

pub struct Cluster {
    pub port: u16,
    server: PgCluster,
    /// The harness is asynchronous, these tests are not.
    runtime: Runtime,
}

impl Cluster {
    /// One server without TLS for all tests of a file. It is stopped when the test process has ended.
    pub fn get() -> &'static Cluster {
        static CLUSTER: OnceLock<Cluster> = OnceLock::new();
        CLUSTER.get_or_init(|| Cluster::start("ssl=off"))
    }

    pub fn start(ssl: &str) -> Cluster {
        // Beside the cluster, because its directory is made by the harness. Read once, when the server starts.
        let mut access = tempfile::Builder::new().tempfile_in("/tmp").unwrap();
        access.write_all(ACCESS.as_bytes()).unwrap();
        let readable = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(access.path(), readable).unwrap();
        let access_file = format!("hba_file={}", access.path().display());
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(PgCluster::start(&[ssl, &access_file]));
        let cluster = Cluster {
            port: server.port,
            server,
            runtime,
        };
        cluster.admin(SEED);
        cluster
    }

    /// Runs SQL as the superuser; returns the first value, if there is one.
    pub fn admin(&self, sql: &str) -> String {
        let answer = self.runtime.block_on(async {
            let client = self.server.client("postgres").await;
            client.simple_query(sql).await
        });
        let first = answer
            .unwrap()
            .into_iter()
            .find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(String::from),
                _ => None,
            });
        first.unwrap_or_default()
    }

    /// The authority that signed the server's certificate.
    pub fn ca_pem(&self) -> &str {
        &self.server.ca_pem
    }

    pub fn settings(&self, user: &str, password: &str) -> Settings {
        let json = format!(
            r#"{{"username":"{user}","password":"{password}","database":"postgres","ssl_mode":"disable","statement_timeout_ms":5000}}"#
        );
        Settings {
            engine: "postgres".into(),
            json,
        }
    }

    pub fn wire(&self) -> Wire {
        Wire::open(self.port, self.settings("reader", "readerpw")).unwrap()
    }
}

/// `reader` owns its tables: it could write if it were let.
const SEED: &str = "
    CREATE ROLE reader LOGIN PASSWORD 'readerpw';
    CREATE ROLE stranger LOGIN PASSWORD 'strangerpw';
    SET password_encryption = 'md5';
    CREATE ROLE md5er LOGIN PASSWORD 'md5pw';
    CREATE ROLE clear LOGIN PASSWORD 'clearpw';
    CREATE SCHEMA shop AUTHORIZATION reader;
    GRANT USAGE ON SCHEMA shop TO md5er;
    SET ROLE reader;
    CREATE TYPE shop.mood AS ENUM ('sad', 'happy');
    CREATE TABLE shop.items (id int PRIMARY KEY, name varchar(20) NOT NULL, price numeric(10,2), moods shop.mood[]);
    INSERT INTO shop.items SELECT i, 'item ' || i, i / 4.0, '{sad,happy}' FROM generate_series(1, 1000) i;
    CREATE VIEW shop.dear AS SELECT id, price FROM shop.items WHERE price > 100;
    CREATE TABLE shop.victims (n int);
    CREATE FUNCTION shop.write() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO shop.victims VALUES (1); RETURN 1; END $$;
    CREATE PROCEDURE shop.sneak() LANGUAGE plpgsql AS $$ BEGIN
        PERFORM set_config('default_transaction_read_only', 'off', false); COMMIT; INSERT INTO shop.victims VALUES (2); END $$;
    CREATE FUNCTION shop.run(sql text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE sql; RETURN 1; END $$;
    RESET ROLE;
    ANALYZE shop.items;
";

/// A finished request.
#[derive(Debug, Default)]
pub struct Answer {
    pub columns: Vec<Column>,
    pub chunks: Vec<Vec<Chunk>>,
    pub rows: u32,
    pub end: Option<Result<(), Error>>,
}

impl Answer {
    pub fn ok(self) -> Answer {
        assert_eq!(self.end, Some(Ok(())));
        self
    }

    pub fn error(self) -> Error {
        self.end.unwrap().unwrap_err()
    }

    /// Value `row` of a column as text, for results of one batch.
    pub fn cell(&self, column: usize, row: usize) -> String {
        let chunk = &self.chunks[0][column];
        if chunk
            .validity
            .as_ref()
            .is_some_and(|bits| bits[row / 8] >> (row % 8) & 1 == 0)
        {
            return "NULL".into();
        }
        match &chunk.data {
            ColumnData::Bits(bits) => (bits[row / 8] >> (row % 8) & 1 == 1).to_string(),
            ColumnData::I32s(values) => values[row].to_string(),
            ColumnData::I64s(values) => values[row].to_string(),
            ColumnData::F64s(values) => format!("{:?}", values[row]),
            ColumnData::VarLen(values) => {
                let range = values.offsets[row] as usize..values.offsets[row + 1] as usize;
                String::from_utf8_lossy(&values.bytes[range]).into_owned()
            }
        }
    }
}

/// A session on a real socket.
pub struct Wire {
    pub session: Session,
    socket: TcpStream,
    port: u16,
    next: u32,
    shapes: HashMap<u32, Vec<Column>>,
    pub answers: HashMap<u32, Answer>,
    pub asides: usize,
    ready: bool,
    /// How many bytes are handed to the session at once.
    pub piece: usize,
    closed: bool,
}

impl Wire {
    pub fn open(port: u16, settings: Settings) -> Result<Wire, Error> {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.set_nodelay(true).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut wire = Wire {
            session: Session::open(settings)?,
            socket,
            port,
            next: 0,
            shapes: HashMap::new(),
            answers: HashMap::new(),
            asides: 0,
            ready: false,
            piece: usize::MAX,
            closed: false,
        };
        wire.step(|session, step| session.start(step))?;
        while !wire.ready {
            wire.pump()?;
        }
        Ok(wire)
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
                Command::Send(bytes) => self.socket.write_all(&bytes).unwrap(),
                Command::Aside(bytes) => {
                    self.asides += 1;
                    let mut aside = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
                    aside.write_all(&bytes).unwrap();
                    let _ = aside.read(&mut [0]);
                }
                other => panic!("{other:?}"),
            }
        }
        for event in events {
            match event {
                Event::Ready => self.ready = true,
                Event::Columns(shape) => {
                    if let Some(columns) = shape.columns {
                        self.shapes.insert(shape.shape, columns);
                    }
                    let columns = self.shapes[&shape.shape].clone();
                    self.answers.entry(shape.id).or_default().columns = columns;
                }
                Event::Batch(rows) => {
                    let answer = self.answers.get_mut(&rows.id).unwrap();
                    assert_eq!(rows.batch.chunks.len(), answer.columns.len());
                    answer.rows += rows.batch.rows;
                    answer.chunks.push(rows.batch.chunks);
                }
                Event::Done(id) => self.answers.get_mut(&id).unwrap().end = Some(Ok(())),
                Event::Failed(failure) => {
                    self.answers.entry(failure.id).or_default().end = Some(Err(failure.error))
                }
            }
        }
        Ok(())
    }

    /// Reads once and feeds what came.
    pub fn pump(&mut self) -> Result<(), Error> {
        let mut buffer = vec![0; 256 << 10];
        let n = self.socket.read(&mut buffer).unwrap();
        if n == 0 {
            assert!(!std::mem::replace(&mut self.closed, true), "closed twice");
            return self.step(|session, step| session.receive(Input::Closed, step));
        }
        for piece in buffer[..n].chunks(self.piece.min(n)) {
            self.step(|session, step| session.receive(Input::Bytes(piece.to_vec()), step))?;
        }
        Ok(())
    }

    pub fn submit(&mut self, request: Request) -> u32 {
        self.next += 1;
        let id = self.next;
        self.step(|session, step| session.submit(id, request, step))
            .unwrap();
        id
    }

    pub fn ask(&mut self, sql: &str, parameters: Vec<Value>) -> u32 {
        self.submit(Request::Query(Query {
            text: sql.into(),
            parameters,
            limits: LIMITS,
        }))
    }

    pub fn wait(&mut self, id: u32) -> Result<Answer, Error> {
        while self
            .answers
            .get(&id)
            .is_none_or(|answer| answer.end.is_none())
        {
            self.pump()?;
        }
        Ok(self.answers.remove(&id).unwrap())
    }

    pub fn query(&mut self, sql: &str, parameters: Vec<Value>) -> Answer {
        let id = self.ask(sql, parameters);
        self.wait(id).unwrap()
    }

    /// The one value of a one-row, one-column result.
    pub fn scalar(&mut self, sql: &str) -> String {
        self.query(sql, vec![]).ok().cell(0, 0)
    }
}
