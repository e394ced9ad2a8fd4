//! A secret that is another's, a database that is not there, a port at which nobody listens: a test says which of them it is, in the words of
//! `docs/engines.md`, of whatever engine; and no answer shows the secret.

use serde_json::{Value, json};
use souk_tests::clickhouse::recorded::{self, Recorded};
use souk_tests::process::free_port;
use souk_tests::seller_api::{API_KEY, SellerApi};
use souk_tests::world::engine_id;
use souk_tests::{
    Answer, BigQuery, Company, Databricks, DuckDb, MySql, PgCluster, Snowflake, SqlServer, Trino,
    bigquery, clickhouse, databricks, duckdb, snowflake, sqlserver, trino,
};

use crate::{host, unique};

/// Of who is not let in, and of who is not there.
const REFUSED: &str = "is not opened by the credentials";
const CLOSED: &str = "refuses connections";
/// Of a database: as most say it, and of its parts.
const NO_DATABASE: &str = "the database does not exist";
const NO_CATALOG: &str = "has no catalog of the name that the connection's database begins with";
const NO_SCHEMA: &str = "has no schema of the name that the connection's database ends with";
/// A password, or a token, of somebody else.
const ANOTHERS: &str = "0f-somebody-else";

/// A source that is there, and how it is connected.
struct Source {
    engine: &'static str,
    /// But for the credentials.
    fields: Value,
    credentials: Value,
    /// The member of the credentials that is secret.
    secret: &'static str,
    /// Databases that are not there, and what is said of each.
    nowhere: &'static [(&'static str, &'static str)],
}

impl Source {
    /// With somebody else's secret.
    fn strange(&self) -> Value {
        let mut credentials = self.credentials.clone();
        let key_file: Value = serde_json::from_str(bigquery::KEY_FILE).expect("JSON");
        credentials[self.secret] = match (self.secret, self.engine) {
            ("private_key", "bigquery") => snowflake::PRIVATE_KEY.into(),
            ("private_key", _) => key_file["private_key"].clone(),
            _ => ANOTHERS.into(),
        };
        credentials
    }

    /// At a port that nobody has.
    fn closed(&self) -> Value {
        let (mut fields, port) = (self.fields.clone(), free_port());
        match fields["base_url"].is_null() {
            true => fields["port"] = port.into(),
            false => fields["base_url"] = format!("https://127.0.0.1:{port}").into(),
        }
        fields
    }

    async fn told(self) {
        let engine = self.engine;
        let seller = host().await.company(&unique("stranger")).await;
        let (fields, own, strange) = (&self.fields, &self.credentials, self.strange());
        let mut tried = vec![
            (fields.clone(), own, None),
            (fields.clone(), &strange, Some(REFUSED)),
            (self.closed(), own, Some(CLOSED)),
        ];
        for (database, says) in self.nowhere {
            let mut fields = fields.clone();
            fields["database"] = (*database).into();
            tried.push((fields, own, Some(*says)));
        }
        for (fields, credentials, says) in tried {
            let answers = connected(&seller, engine, fields, credentials).await;
            let [_, tested, shown] = &answers;
            let is_good = says.is_none();
            assert_eq!(tested.at("/data/success"), is_good, "{}", tested.body);
            let status = if is_good { "active" } else { "failed" };
            assert_eq!(shown.at("/data/status"), status, "{engine}");
            if let Some(says) = says {
                let error = tested.text("/data/error");
                assert!(error.contains(says), "{engine}, {says}: {error}");
            }
            for answer in answers {
                let told = answer.body.to_string();
                for secret in [own, &strange] {
                    let secret = secret[self.secret].as_str().expect("a text");
                    let shows = |line: &str| told.contains(&in_json(line));
                    assert!(!secret.lines().any(shows), "{engine}: {told}");
                }
            }
        }
    }
}

/// What is answered where it is saved, tested and read.
async fn connected(
    seller: &Company,
    engine: &str,
    mut fields: Value,
    credentials: &Value,
) -> [Answer; 3] {
    fields["engine_id"] = engine_id(&seller.client, engine).await.into();
    fields["name"] = engine.into();
    fields["credentials"] = credentials.to_string().into();
    let path = seller.path("/connections");
    let saved = seller.client.post(&path, fields).await.expect(201);
    let path = format!("{path}/{}", saved.text("/data/connection_id"));
    let tested = seller.client.post(&format!("{path}/test"), json!({})).await;
    let shown = seller.client.get(&path).await.expect(200);
    [saved, tested.expect(200), shown]
}

/// As it stands within a text of JSON.
fn in_json(line: &str) -> String {
    let quoted = Value::from(line).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Engines with a wire of their own.
#[tokio::test]
async fn what_is_wrong_with_a_connection_is_told_over_a_wire() {
    let (cluster, server) = (PgCluster::shared().await, MySql::shared());
    let sqlserver = SqlServer::start().await;
    let postgres = Source {
        engine: "postgres",
        fields: json!({"credential_type": "PASSWORD", "host": "127.0.0.1", "port": cluster.port,
            "database": cluster.database("SELECT 1").await, "ssl_mode": "disable"}),
        credentials: json!({"username": cluster.user, "password": cluster.password}),
        secret: "password",
        nowhere: &[("nowhere", NO_DATABASE)],
    };
    let mysql = Source {
        engine: "mysql",
        fields: json!({"credential_type": "PASSWORD", "host": "127.0.0.1", "port": server.port,
            "database": server.database(""), "ssl_mode": "disable"}),
        credentials: json!({"username": server.user, "password": server.password}),
        secret: "password",
        nowhere: &[("nowhere", NO_DATABASE)],
    };
    let sqlserver = Source {
        engine: "sqlserver",
        fields: json!({"credential_type": "PASSWORD", "host": "127.0.0.1", "port": sqlserver.address.port(),
            "database": sqlserver::DATABASE, "ssl_mode": "verify-full", "ca_pem": sqlserver.ca_pem}),
        credentials: json!({"username": sqlserver::USER, "password": sqlserver::PASSWORD}),
        secret: "password",
        nowhere: &[("nowhere", "has no database of the connection's name")],
    };
    for source in [postgres, mysql, sqlserver] {
        source.told().await;
    }
}

/// Engines over HTTP, and APIs.
#[tokio::test]
async fn what_is_wrong_with_a_connection_is_told_over_http() {
    let (recorded, api) = (Recorded::start().await, SellerApi::start().await);
    // What was recorded is of one database.
    let clickhouse = Source {
        engine: "clickhouse",
        fields: json!({"credential_type": "PASSWORD", "base_url": recorded.base_url(), "database": recorded::SCHEMA}),
        credentials: json!({"username": clickhouse::USER, "password": clickhouse::PASSWORD}),
        secret: "password",
        nowhere: &[],
    };
    let seller_api = Source {
        engine: "seller-api",
        fields: json!({"credential_type": "API_KEY", "base_url": api.base_url()}),
        credentials: json!({"api_key": API_KEY}),
        secret: "api_key",
        nowhere: &[],
    };
    let server = BigQuery::start().await;
    server.admin("ATTACH ':memory:' AS league");
    let bigquery = Source {
        engine: "bigquery",
        fields: json!({"credential_type": "SERVICE_ACCOUNT", "base_url": server.base_url(), "database": "league"}),
        credentials: server.credentials(json!({})),
        secret: "private_key",
        nowhere: &[("nowhere", "the dataset does not exist")],
    };
    let duck = DuckDb::start();
    let duckdb = Source {
        engine: "duckdb",
        fields: json!({"credential_type": "API_KEY", "base_url": duck.base_url(), "database": "memory"}),
        credentials: json!({"api_key": duckdb::TOKEN}),
        secret: "api_key",
        nowhere: &[(
            "pond",
            "has no database or schema of the name that the connection has as its database",
        )],
    };
    for source in [clickhouse, seller_api, bigquery, duckdb] {
        source.told().await;
    }
}

/// Trino, by a password.
#[tokio::test]
async fn what_is_wrong_with_a_connection_is_told_of_trino() {
    let server = Trino::start_tls().await;
    server.admin("ATTACH ':memory:' AS league");
    let source = Source {
        engine: "trino",
        fields: json!({"credential_type": "PASSWORD", "base_url": server.base_url(), "database": "memory.league", "ca_pem": server.ca_pem}),
        credentials: json!({"username": trino::USER, "password": trino::PASSWORD}),
        secret: "password",
        nowhere: &[("pond.league", NO_CATALOG), ("memory.nowhere", NO_SCHEMA)],
    };
    source.told().await;
}

/// Snowflake, by a key and by a token.
#[tokio::test]
async fn what_is_wrong_with_a_connection_is_told_of_snowflake() {
    let server = Snowflake::start_tls().await;
    server.admin("ATTACH ':memory:' AS LEAGUE");
    let key = json!({"account": snowflake::ACCOUNT, "username": snowflake::USER, "private_key": snowflake::PRIVATE_KEY});
    let token = json!({"api_key": snowflake::ACCESS_TOKEN});
    for (kind, secret, mut credentials) in [
        ("SERVICE_ACCOUNT", "private_key", key),
        ("API_KEY", "api_key", token),
    ] {
        credentials["warehouse"] = snowflake::WAREHOUSE.into();
        credentials["role"] = snowflake::READER.into();
        let source = Source {
            engine: "snowflake",
            fields: json!({"credential_type": kind, "base_url": server.base_url(), "database": "SHOP.LEAGUE", "ca_pem": server.ca_pem}),
            credentials,
            secret,
            nowhere: &[
                ("POND.LEAGUE", "has no database of the connection's name"),
                ("SHOP.NOWHERE", NO_SCHEMA),
            ],
        };
        source.told().await;
    }
}

/// Databricks, as a service principal and by a token.
#[tokio::test]
async fn what_is_wrong_with_a_connection_is_told_of_databricks() {
    let server = Databricks::start_tls().await;
    server.admin("ATTACH ':memory:' AS league");
    let principal =
        json!({"username": databricks::CLIENT_ID, "password": databricks::CLIENT_SECRET});
    let token = json!({"api_key": databricks::TOKEN});
    for (kind, secret, mut credentials) in [
        ("PASSWORD", "password", principal),
        ("API_KEY", "api_key", token),
    ] {
        credentials["warehouse_id"] = databricks::WAREHOUSE.into();
        let source = Source {
            engine: "databricks",
            fields: json!({"credential_type": kind, "base_url": server.base_url(), "database": "memory.league", "ca_pem": server.ca_pem}),
            credentials,
            secret,
            nowhere: &[("pond.league", NO_CATALOG), ("memory.nowhere", NO_SCHEMA)],
        };
        source.told().await;
    }
}
