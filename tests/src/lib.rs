//! The harness: real hosts, real databases, real HTTP. Start reading at [`host::TestHost`].
//!
//! Nothing here knows a crate of the host: the tests see the product as its users do, through the
//! binary `souk`, its ready file and its REST API.

pub mod ancient_postgres;
pub mod audited;
pub mod bigquery;
pub mod breaking_api;
pub mod clickhouse;
pub mod client;
pub mod collector;
pub mod command;
pub mod contract;
pub mod cut_commits;
pub mod databricks;
pub mod duckdb;
pub mod files;
mod fronts;
pub mod guests;
pub mod host;
pub mod mysql;
pub mod mysql_logins;
pub mod pgbouncer;
pub mod platforms;
pub mod postgres;
pub mod process;
pub mod receiver;
pub mod redis;
pub mod registry;
mod remembered;
pub mod s3;
mod scanner;
pub mod seller_api;
pub mod snowflake;
pub mod spoilt;
pub mod sqlserver;
mod sweep;
mod tables;
pub mod talk;
pub mod talking_server;
pub mod thousand_tables;
pub mod tls;
pub mod torn;
pub mod trino;
mod warm;
pub mod wire;
pub mod world;

pub use bigquery::BigQuery;
pub use clickhouse::ClickHouse;
pub use client::{Answer, Client};
pub use command::{Running, souk};
pub use databricks::Databricks;
pub use duckdb::DuckDb;
pub use host::TestHost;
pub use mysql::MySql;
pub use pgbouncer::PgBouncer;
pub use platforms::{Instead, Platform, Raw, RawServer};
pub use postgres::PgCluster;
pub use receiver::{Receiver, Reply};
pub use registry::Registry;
pub use snowflake::Snowflake;
pub use sqlserver::SqlServer;
pub use trino::Trino;
pub use world::{Company, Seller};
