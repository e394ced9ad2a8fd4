//! Native handlers as processes: this program once more, told which of them it is. One client of a source has a file of its own, `native_….rs`.

use std::io::BufRead;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use clap::ValueEnum;
use serde_json::json;
use souk_load::generator;
use souk_load::market;
use souk_load::queries;
use souk_load::servers::{Server, players};
use souk_tests::{databricks, duckdb, snowflake, sqlserver, trino};

use crate::native_http;
use crate::{
    native_bigquery, native_clickhouse, native_databricks, native_duckdb, native_mysql,
    native_postgres, native_snowflake, native_sqlite, native_sqlserver, native_trino,
};

#[derive(Clone, Copy, ValueEnum)]
pub enum Mode {
    Pooled,
    Local,
    Sqlite,
    Mysql,
    Sqlserver,
    Trino,
    Databricks,
    Snowflake,
    Bigquery,
    Clickhouse,
    Duckdb,
}

pub struct Native {
    /// As it competes.
    pub name: &'static str,
    /// It is asked for pages as well.
    pub has_pages: bool,
    process: Child,
    pub address: String,
}

impl Native {
    /// The native handlers of a server.
    pub fn start_of(server: &Server) -> anyhow::Result<Vec<Native>> {
        let of = |mode, source: String| -> anyhow::Result<Vec<Native>> {
            Ok(vec![Native::start("native", mode, &source)?])
        };
        match server {
            Server::Postgres(cluster, database) => {
                let url = cluster.url(database);
                Ok(vec![
                    Native::start("native pooled", Mode::Pooled, &url)?,
                    Native::start("native local", Mode::Local, &url)?,
                ])
            }
            Server::File(directory) => {
                let path = players(directory);
                of(Mode::Sqlite, path.to_string_lossy().into_owned())
            }
            Server::MariaDb(server, schema) => of(Mode::Mysql, server.url(schema)),
            Server::SqlServer(server) => {
                let source = native_sqlserver::Source {
                    port: server.address.port(),
                    ca_pem: server.ca_pem.clone(),
                    user: sqlserver::USER.to_owned(),
                    password: sqlserver::PASSWORD.to_owned(),
                    database: sqlserver::DATABASE.to_owned(),
                };
                of(Mode::Sqlserver, json!(source).to_string())
            }
            Server::Trino(server) => of(
                Mode::Trino,
                over_http(
                    server.base_url(),
                    &[
                        ("x-trino-user", trino::USER),
                        ("x-trino-catalog", trino::CATALOG),
                        ("x-trino-schema", "bench"),
                    ],
                ),
            ),
            Server::Databricks(server) => {
                let shown = format!("Bearer {}", databricks::TOKEN);
                let headers = [
                    ("authorization", &*shown),
                    ("content-type", "application/json"),
                ];
                of(Mode::Databricks, over_http(server.base_url(), &headers))
            }
            Server::Snowflake(server) => {
                let shown = format!("Bearer {}", snowflake::ACCESS_TOKEN);
                let headers = [
                    ("authorization", &*shown),
                    (
                        "x-snowflake-authorization-token-type",
                        "PROGRAMMATIC_ACCESS_TOKEN",
                    ),
                    ("user-agent", "native"),
                    ("accept", "application/json"),
                    ("content-type", "application/json"),
                ];
                of(Mode::Snowflake, over_http(server.base_url(), &headers))
            }
            Server::BigQuery(server) => {
                let shown = format!("Bearer {}", server.token());
                let headers = [
                    ("authorization", &*shown),
                    ("content-type", "application/json"),
                ];
                of(Mode::Bigquery, over_http(server.base_url(), &headers))
            }
            Server::DuckDb(server) => {
                let headers = [
                    ("content-type", "application/vnd.duckdb"),
                    (native_duckdb::TOKEN, duckdb::TOKEN),
                ];
                of(Mode::Duckdb, over_http(server.base_url(), &headers))
            }
            Server::ClickHouse(server, database) => {
                let headers = [
                    ("x-clickhouse-user", server.user),
                    ("x-clickhouse-key", server.password),
                ];
                let base_url = native_clickhouse::address(&server.base_url(), database);
                of(Mode::Clickhouse, over_http(base_url, &headers))
            }
        }
    }

    fn start(name: &'static str, mode: Mode, source: &str) -> anyhow::Result<Native> {
        let shown = mode.to_possible_value().context("a mode")?;
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--native", shown.get_name(), "--source", source])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let stdout = process
            .stdout
            .take()
            .context("the native server's output")?;
        std::io::BufReader::new(stdout).read_line(&mut line)?;
        Ok(Native {
            name,
            has_pages: !matches!(mode, Mode::Pooled | Mode::Local | Mode::Sqlite),
            process,
            address: line.trim().to_owned(),
        })
    }

    pub fn process(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn over_http(base_url: String, headers: &[(&str, &str)]) -> String {
    let headers = headers.iter();
    let source = native_http::Source {
        base_url,
        headers: headers
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    };
    json!(source).to_string()
}

/// What a native handler is asked, by what a query is of its source.
pub fn requests(what: &str) -> Vec<Vec<u8>> {
    match what {
        "single row" => queries::ids()
            .map(|id| generator::request("GET", &format!("/single?id={id}"), &[], ""))
            .collect(),
        "aggregate" => vec![generator::request("GET", "/aggregate", &[], "")],
        market::GROUP_BY => vec![generator::request("GET", "/groups", &[], "")],
        "50 rows" => vec![generator::request("GET", "/rows?limit=50", &[], "")],
        "1,000 rows" => vec![generator::request("GET", "/rows?limit=1000", &[], "")],
        _ => Vec::new(),
    }
}

/// The same where it answers with a page of a feed, as souk does: it asks for one row more, to know whether there are more, and at ClickHouse sends
/// what bounds such a statement there.
pub fn pages(what: &str) -> Vec<Vec<u8>> {
    match what {
        "single row" => queries::ids()
            .map(|id| generator::request("GET", &format!("/page?id={id}"), &[], ""))
            .collect(),
        "50 rows" => vec![generator::request("GET", "/page-of-rows?limit=50", &[], "")],
        "1,000 rows" => vec![generator::request(
            "GET",
            "/page-of-rows?limit=1000",
            &[],
            "",
        )],
        _ => Vec::new(),
    }
}

/// Serves on a free port of the loopback interface and prints its address.
pub fn run(mode: Mode, source: &str, threads: usize) -> anyhow::Result<()> {
    let listener = std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    println!("{}", listener.local_addr()?);
    match mode {
        Mode::Pooled => native_postgres::run_pooled(source, listener, threads),
        Mode::Local => native_postgres::run_local(source, listener, threads),
        Mode::Sqlite => native_sqlite::run(source, listener, threads),
        Mode::Mysql => native_mysql::run(source, listener, threads),
        Mode::Sqlserver => native_sqlserver::run(source, listener, threads),
        Mode::Trino => native_trino::run(source, listener, threads),
        Mode::Databricks => native_databricks::run(source, listener, threads),
        Mode::Snowflake => native_snowflake::run(source, listener, threads),
        Mode::Bigquery => native_bigquery::run(source, listener, threads),
        Mode::Clickhouse => native_clickhouse::run(source, listener, threads),
        Mode::Duckdb => native_duckdb::run(source, listener, threads),
    }
}
