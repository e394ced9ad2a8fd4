//! Spark in SQLite's place: what Databricks is made of says what a statement means (`tests/engines/spark`). It is there under
//! `tests/run --all-engines` only.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::refusals::Failure;
use super::values::{Cell, Kind, Table};
use crate::process::spawn_tied;

/// The catalog that its tables are in.
pub const CATALOG: &str = "spark_catalog";
/// The directory that has it; `tests/run --all-engines` says where that is.
const HOME: &str = "SOUK_SPARK_HOME";
/// What tests that need it write: `#[ignore = "…"]`.
pub const WHY_IGNORED: &str = "needs Spark, 500 MB, and Java 17: tests/run --all-engines";

pub struct Spark {
    talk: Mutex<(ChildStdin, Lines<BufReader<ChildStdout>>)>,
    server: Child,
    /// Its tables and what it writes beside.
    _directory: TempDir,
}

/// What it answers: names and types of columns, and rows of texts: the API's, or as souk spells values.
pub struct Read {
    pub columns: Vec<(String, String)>,
    pub rows: Vec<Vec<Option<String>>>,
}

impl Spark {
    pub fn start() -> Spark {
        let home = std::env::var_os(HOME);
        let home = home.unwrap_or_else(|| panic!("{HOME} is not set: {WHY_IGNORED}"));
        let home = PathBuf::from(home);
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("python3");
        command
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("engines/spark/spark.py"))
            .arg(directory.path())
            .env("PYTHONPATH", &home)
            .env("SPARK_HOME", home.join("deps"))
            // A program of Spark's own reads moments on its machine's clock.
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut server = spawn_tied(command, libc::SIGKILL).expect("python starts");
        let input = server.stdin.take().expect("its input");
        let mut lines = BufReader::new(server.stdout.take().expect("its output")).lines();
        let ready = lines.next();
        assert!(
            matches!(ready, Some(Ok(_))),
            "Spark does not start: python3 tests/engines/spark/spark.py says why"
        );
        Spark {
            talk: Mutex::new((input, lines)),
            server,
            _directory: directory,
        }
    }

    /// Runs statements, each of which ends with a `;` at the end of its line.
    pub fn admin(&self, sql: &str) {
        let statements = sql.split(";\n").filter(|text| !text.trim().is_empty());
        let statements: Vec<&str> = statements.collect();
        self.told_of(&json!({"admin": statements}));
    }

    /// What it answers a program of its own that is in this schema.
    pub fn told(&self, sql: &str, schema: &str) -> Read {
        self.told_of(&json!({"told": sql, "schema": schema}))
    }

    fn told_of(&self, asked: &Value) -> Read {
        let told = self.ask(asked);
        told.unwrap_or_else(|failure| panic!("{asked}: {}", failure.message()))
    }

    /// Whether its parser takes a text where a query must stand, and knows all that is in it.
    pub fn describes(&self, text: &str, schema: &str) -> bool {
        let asked = json!({"schema": schema});
        self.outcome(&format!("DESCRIBE QUERY {text}"), &asked)
            .is_ok()
    }

    /// What the API answers to a request's body.
    pub fn outcome(&self, text: &str, asked: &Value) -> Result<Table, Failure> {
        let (catalog, schema) = (&asked["catalog"], &asked["schema"]);
        let parameters = &asked["parameters"];
        let read = self.ask(
            &json!({"run": text, "catalog": catalog, "schema": schema, "parameters": parameters}),
        )?;
        let columns = read.columns.into_iter();
        let cell = |cell: Option<String>| cell.map_or(Cell::Null, Cell::Text);
        let rows = read.rows.into_iter();
        Ok(Table {
            columns: columns.map(|(name, kind)| (name, Kind(kind))).collect(),
            rows: rows
                .map(|row| row.into_iter().map(cell).collect())
                .collect(),
        })
    }

    fn ask(&self, asked: &Value) -> Result<Read, Failure> {
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        let (input, lines) = &mut *talk;
        writeln!(input, "{asked}").expect("it reads");
        let line = lines.next().expect("it answers").expect("a line");
        let mut answer: Value = serde_json::from_str(&line).expect("an answer");
        let failure: Option<(String, String, String)> =
            serde_json::from_value(answer["failure"].take()).expect("a failure");
        match failure {
            Some((condition, state, text)) => Err(Failure::new(condition, state, text)),
            None => Ok(Read {
                columns: serde_json::from_value(answer["columns"].take()).expect("columns"),
                rows: serde_json::from_value(answer["rows"].take()).expect("rows"),
            }),
        }
    }
}

impl Drop for Spark {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
