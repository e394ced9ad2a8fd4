//! The servers that the dataset lies on, one of each source: a real one where there is one, else the one that stands for it in the tests.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use souk_tests::{
    BigQuery, ClickHouse, Company, Databricks, DuckDb, MySql, PgCluster, Snowflake, SqlServer,
    Trino, sqlserver,
};

use crate::queries;

/// How queries name the sources: what begins with `NAME: ` reads that one. PostgreSQL's have no name before them.
pub const SOURCES: [&str; 10] = [
    "",
    "file",
    "mariadb",
    "sqlserver",
    "trino",
    "databricks",
    "snowflake",
    "bigquery",
    "clickhouse",
    "duckdb",
];

/// Those that are measured where none is named: the real ones.
pub const REAL: [&str; 3] = ["", "file", "mariadb"];

/// Where the tables are on servers that keep them in SQLite.
const SCHEMA: &str = "bench";

pub enum Server {
    /// And the database there.
    Postgres(PgCluster, String),
    File(tempfile::TempDir),
    MariaDb(MySql, String),
    SqlServer(SqlServer),
    Trino(Trino),
    Databricks(Databricks),
    Snowflake(Snowflake),
    BigQuery(BigQuery),
    /// And the database there.
    ClickHouse(ClickHouse, String),
    DuckDb(DuckDb),
}

impl Server {
    /// Starts the source of this name, with the dataset.
    pub async fn start(source: &str) -> Server {
        match source {
            "file" => Server::File(file()),
            "mariadb" => {
                let server = MySql::start(&[]);
                let schema = server.database(queries::MARIADB_SCHEMA);
                Server::MariaDb(server, schema)
            }
            "sqlserver" => {
                let server = SqlServer::start().await;
                server.admin(&queries::in_sqlite("dbo", queries::SQLSERVER_COLUMNS));
                Server::SqlServer(server)
            }
            "trino" => {
                let server = Trino::start().await;
                server.admin(&attached(queries::TRINO_COLUMNS));
                Server::Trino(server)
            }
            "databricks" => {
                let server = Databricks::start().await;
                server.admin(&attached(queries::DATABRICKS_COLUMNS));
                Server::Databricks(server)
            }
            "snowflake" => {
                let server = Snowflake::start().await;
                server.admin(&attached(queries::SNOWFLAKE_COLUMNS));
                Server::Snowflake(server)
            }
            "bigquery" => {
                let server = BigQuery::start().await;
                server.admin(&attached(queries::BIGQUERY_COLUMNS));
                Server::BigQuery(server)
            }
            "duckdb" => {
                let server = DuckDb::start();
                server.admin(queries::DUCKDB_SCHEMA);
                Server::DuckDb(server)
            }
            "clickhouse" => {
                let server = ClickHouse::start();
                let database = server.database(&queries::CLICKHOUSE_SCHEMA);
                Server::ClickHouse(server, database)
            }
            _ => {
                let cluster = PgCluster::start(&[]).await;
                let database = cluster.database(queries::SCHEMA).await;
                Server::Postgres(cluster, database)
            }
        }
    }

    /// From now on each statement takes so long, where a warehouse would run it and a stand-in answers at once.
    pub fn takes(&self, at_least: Duration) {
        match self {
            Server::Databricks(server) => server.takes(at_least),
            Server::Snowflake(server) => server.takes(at_least),
            _ => {}
        }
    }

    /// One of [`SOURCES`].
    pub fn source(&self) -> &'static str {
        match self {
            Server::Postgres(..) => "",
            Server::File(_) => "file",
            Server::MariaDb(..) => "mariadb",
            Server::SqlServer(_) => "sqlserver",
            Server::Trino(_) => "trino",
            Server::Databricks(_) => "databricks",
            Server::Snowflake(_) => "snowflake",
            Server::BigQuery(_) => "bigquery",
            Server::ClickHouse(..) => "clickhouse",
            Server::DuckDb(_) => "duckdb",
        }
    }

    /// As a host names its engine.
    pub fn engine(&self) -> &'static str {
        match self {
            Server::Postgres(..) => "postgres",
            Server::File(_) => "sqlite",
            Server::MariaDb(..) => "mysql",
            server => server.source(),
        }
    }

    /// The seller's connection to it, and what an endpoint has as its source there.
    pub async fn connect(&self, seller: &Company) -> (String, Value) {
        let connection = match self {
            Server::Postgres(cluster, database) => seller.postgres(cluster, database).await,
            Server::File(directory) => {
                let bytes = std::fs::read(players(directory)).expect("the dataset");
                seller.sqlite("players.db", bytes).await
            }
            Server::MariaDb(server, schema) => seller.mysql(server, schema).await,
            Server::SqlServer(server) => seller.sqlserver(server, sqlserver::USER).await,
            Server::Trino(server) => seller.trino(server, SCHEMA).await,
            Server::Databricks(server) => seller.databricks(server, SCHEMA).await,
            Server::Snowflake(server) => seller.snowflake(server, SCHEMA).await,
            Server::BigQuery(server) => seller.bigquery(server, SCHEMA).await,
            Server::ClickHouse(server, database) => seller.clickhouse(server, database).await,
            Server::DuckDb(server) => seller.duckdb(server, "main").await,
        };
        let schema = match self {
            Server::Postgres(..) => "public",
            Server::File(_) => return (connection, json!({"table": "players"})),
            Server::MariaDb(_, schema) | Server::ClickHouse(_, schema) => schema,
            Server::SqlServer(_) => "dbo",
            Server::DuckDb(_) => "main",
            _ => SCHEMA,
        };
        (connection, json!({"schema": schema, "table": "players"}))
    }
}

/// The file of [`Server::File`].
pub fn players(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("players.db")
}

fn file() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let file = Connection::open(players(&directory)).expect("a file");
    file.execute_batch(queries::SQLITE_SCHEMA)
        .expect("the dataset");
    directory
}

fn attached(columns: &str) -> String {
    let dataset = queries::in_sqlite(SCHEMA, columns);
    format!("ATTACH ':memory:' AS {SCHEMA}; {dataset}")
}
