//! Set-up as one chain of plain calls: companies, connections, products. Everything goes through
//! the REST API, so set-up that works is itself a test.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bigquery::BigQuery;
use crate::clickhouse::ClickHouse;
use crate::client::Client;
use crate::databricks::{self, Databricks};
use crate::duckdb::{self, DuckDb};
use crate::host::TestHost;
use crate::mysql::MySql;
use crate::postgres::PgCluster;
use crate::snowflake::{self, Snowflake};
use crate::sqlserver::{self, SqlServer};
use crate::trino::{self, Trino};

/// A run that was sent holds its credits within milliseconds; a loaded machine gets a thousand times as long.
const HELD_WITHIN: Duration = Duration::from_secs(10);

/// Storage engines by slug, as `GET /storage-engines` numbers them.
pub async fn engine_id(client: &Client, slug: &str) -> i64 {
    let engines = client.get("/storage-engines").await.expect(200);
    let engine = engines
        .at("/data")
        .as_array()
        .into_iter()
        .flatten()
        .find(|engine| engine["slug"] == slug);
    engine
        .and_then(|engine| engine["id"].as_i64())
        .unwrap_or_else(|| panic!("no engine {slug} in {engines:?}"))
}

/// A company with its first administrator (role 4).
#[derive(Clone)]
pub struct Company {
    pub id: String,
    pub handle: String,
    pub user_id: String,
    pub key: String,
    pub client: Client,
}

/// A company that sells; the same thing, said aloud.
pub type Seller = Company;

impl TestHost {
    pub async fn company(&self, handle: &str) -> Company {
        let body = json!({"name": format!("{handle} Ltd"), "handle": handle, "contact_email": format!("{handle}@example.com")});
        let answer = self
            .platform()
            .post("/admin/companies", body)
            .await
            .expect(201);
        let key = answer.text("/data/api_key/key");
        Company {
            id: answer.text("/data/company/id"),
            handle: handle.to_owned(),
            user_id: answer.text("/data/user/id"),
            client: self.client(&key),
            key,
        }
    }

    /// A company with credits to spend.
    pub async fn buyer(&self, handle: &str, credits: u64) -> Company {
        let buyer = self.company(handle).await;
        if credits > 0 {
            self.grant(&buyer, credits).await;
        }
        buyer
    }

    pub async fn grant(&self, company: &Company, credits: u64) {
        let path = format!("/admin/companies/{}/credits/grants", company.id);
        self.platform()
            .post(&path, json!({"credits": credits, "reason": "test"}))
            .await
            .expect(201);
    }
}

impl Company {
    pub fn path(&self, rest: &str) -> String {
        format!("/companies/{}{rest}", self.id)
    }

    pub async fn balance(&self) -> i64 {
        self.credits().await.0
    }

    /// Credits that are left, and those that runs in flight hold.
    pub async fn credits(&self) -> (i64, i64) {
        let answer = self.client.get(&self.path("/credits")).await.expect(200);
        let number = |name: &str| answer.body["data"][name].as_i64().expect("a number");
        (number("balance_credits"), number("held_credits"))
    }

    /// Waits until runs in flight hold so many credits.
    pub async fn holds(&self, credits: i64) {
        let begun = Instant::now();
        loop {
            let (_, held) = self.credits().await;
            if held == credits {
                return;
            }
            assert!(
                begun.elapsed() < HELD_WITHIN,
                "{held} credits are held, not {credits}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Buys a product.
    pub async fn buy(&self, product_id: &str) -> crate::Answer {
        let order = json!({"product_id": product_id, "accept_terms": true});
        let bought = self.client.post(&self.path("/purchases"), order).await;
        bought.expect(201)
    }

    /// Uploads a connector of this company's own, and activates it.
    pub async fn connector(&self, wasm: &[u8]) {
        let path = self.path("/connectors?activate=true");
        let uploaded = self.client.post_wasm(&path, wasm.to_vec()).await;
        uploaded.expect(201);
    }

    /// A connection to nowhere: for the engines of guests, which never make a request.
    pub async fn nowhere(&self, engine: &str) -> String {
        let fields = json!({"credential_type": "NONE", "credentials": "{}", "base_url": "http://127.0.0.1:1"});
        self.connection(engine, fields).await
    }

    /// Saves a connection and returns its id.
    pub async fn connection(&self, engine: &str, fields: Value) -> String {
        let mut body = json!({"engine_id": engine_id(&self.client, engine).await, "name": format!("{engine} source")});
        merge(&mut body, fields);
        self.client
            .post(&self.path("/connections"), body)
            .await
            .expect(201)
            .text("/data/connection_id")
    }

    /// A connection to a ClickHouse.
    pub async fn clickhouse(&self, server: &ClickHouse, database: &str) -> String {
        let credentials = json!({"username": server.user, "password": server.password}).to_string();
        self.connection(
            "clickhouse",
            json!({"credential_type": "PASSWORD", "credentials": credentials, "base_url": server.base_url(), "database": database}),
        )
        .await
    }

    /// A connection to a SQL Server, by this login.
    pub async fn sqlserver(&self, server: &SqlServer, user: &str) -> String {
        let credentials = json!({"username": user, "password": sqlserver::PASSWORD}).to_string();
        self.connection(
            "sqlserver",
            json!({"credential_type": "PASSWORD", "credentials": credentials, "host": "127.0.0.1", "port": server.address.port(), "database": sqlserver::DATABASE,
                "ssl_mode": "verify-full", "ca_pem": server.ca_pem}),
        )
        .await
    }

    /// A connection to a Trino, in this schema of its catalog; by the password where there is TLS.
    pub async fn trino(&self, server: &Trino, schema: &str) -> String {
        let mut fields = json!({"credential_type": "NONE", "base_url": server.base_url(), "database": format!("{}.{schema}", trino::CATALOG)});
        let mut credentials = json!({"username": trino::USER});
        if let Some(pem) = &server.ca_pem {
            fields["ca_pem"] = pem.as_str().into();
            fields["credential_type"] = "PASSWORD".into();
            credentials["password"] = trino::PASSWORD.into();
        }
        fields["credentials"] = credentials.to_string().into();
        self.connection("trino", fields).await
    }

    /// A connection to a DuckDB, in this schema of its database.
    pub async fn duckdb(&self, server: &DuckDb, schema: &str) -> String {
        let credentials = json!({"api_key": duckdb::TOKEN}).to_string();
        let mut fields = json!({"credential_type": "API_KEY", "credentials": credentials, "base_url": server.base_url(), "database": format!("memory.{schema}")});
        if let Some(pem) = &server.ca_pem {
            fields["ca_pem"] = pem.as_str().into();
        }
        self.connection("duckdb", fields).await
    }

    /// A connection to a Databricks, in this schema of its catalog; as a service principal where there is TLS.
    pub async fn databricks(&self, server: &Databricks, schema: &str) -> String {
        let database = format!("{}.{schema}", server.catalog());
        let mut fields = json!({"credential_type": "API_KEY", "base_url": server.base_url(), "database": database});
        let mut credentials = json!({"warehouse_id": databricks::WAREHOUSE});
        match &server.ca_pem {
            Some(pem) => {
                fields["ca_pem"] = pem.as_str().into();
                fields["credential_type"] = "PASSWORD".into();
                credentials["username"] = databricks::CLIENT_ID.into();
                credentials["password"] = databricks::CLIENT_SECRET.into();
            }
            None => credentials["api_key"] = databricks::TOKEN.into(),
        }
        fields["credentials"] = credentials.to_string().into();
        self.connection("databricks", fields).await
    }

    /// A connection to a Snowflake, in this schema of its database; by the key where there is TLS, else by a token.
    pub async fn snowflake(&self, server: &Snowflake, schema: &str) -> String {
        let mut fields = json!({"base_url": server.base_url(), "database": format!("{}.{schema}", snowflake::DATABASE)});
        let mut credentials = json!({"warehouse": snowflake::WAREHOUSE, "role": snowflake::READER});
        match &server.ca_pem {
            Some(pem) => {
                fields["ca_pem"] = pem.as_str().into();
                fields["credential_type"] = "SERVICE_ACCOUNT".into();
                credentials["account"] = snowflake::ACCOUNT.into();
                credentials["username"] = snowflake::USER.into();
                credentials["private_key"] = snowflake::PRIVATE_KEY.into();
            }
            None => {
                fields["credential_type"] = "API_KEY".into();
                credentials["api_key"] = snowflake::ACCESS_TOKEN.into();
            }
        }
        fields["credentials"] = credentials.to_string().into();
        self.connection("snowflake", fields).await
    }

    /// A connection to a BigQuery, in which statements begin in this dataset.
    pub async fn bigquery(&self, server: &BigQuery, dataset: &str) -> String {
        let credentials = server.credentials(json!({})).to_string();
        self.connection(
            "bigquery",
            json!({"credential_type": "SERVICE_ACCOUNT", "credentials": credentials, "base_url": server.base_url(), "database": dataset}),
        )
        .await
    }

    pub async fn postgres(&self, cluster: &PgCluster, database: &str) -> String {
        let credentials =
            json!({"username": cluster.user, "password": cluster.password}).to_string();
        self.connection(
            "postgres",
            json!({"credential_type": "PASSWORD", "credentials": credentials, "host": "127.0.0.1", "port": cluster.port,
                   "database": database, "ssl_mode": "disable"}),
        )
        .await
    }

    pub async fn mysql(&self, server: &MySql, database: &str) -> String {
        let credentials = json!({"username": server.user, "password": server.password}).to_string();
        self.connection(
            "mysql",
            json!({"credential_type": "PASSWORD", "credentials": credentials, "host": "127.0.0.1", "port": server.port,
                   "database": database, "ssl_mode": "disable"}),
        )
        .await
    }

    pub async fn seller_api(&self, base_url: &str, key: &str) -> String {
        let credentials = json!({"api_key": key}).to_string();
        self.connection(
            "seller-api",
            json!({"credential_type": "API_KEY", "credentials": credentials, "base_url": base_url}),
        )
        .await
    }

    /// Uploads `bytes` as a file and connects it.
    pub async fn sqlite(&self, name: &str, bytes: Vec<u8>) -> String {
        self.file("sqlite", name, bytes).await
    }

    /// The same with an engine of files.
    pub async fn file(&self, engine: &str, name: &str, bytes: Vec<u8>) -> String {
        self.client
            .put_bytes(&self.path(&format!("/files/{name}")), bytes)
            .await
            .expect(201);
        self.connection(
            engine,
            json!({"credential_type": "NONE", "credentials": "{}", "database": name}),
        )
        .await
    }

    /// Creates an asset; returns its id.
    pub async fn asset(&self, connection: &str, fields: Value) -> String {
        let mut body = json!({"connection_id": connection, "asset_type": "CALCULATION", "name": "an asset", "result_type": "number"});
        merge(&mut body, fields);
        self.client
            .post(&self.path("/assets"), body)
            .await
            .expect(201)
            .text("/data/asset_id")
    }

    /// Creates an endpoint; returns its id.
    pub async fn endpoint(&self, connection: &str, fields: Value) -> String {
        let mut body = json!({"connection_id": connection, "name": "an endpoint"});
        merge(&mut body, fields);
        self.client
            .post(&self.path("/endpoints"), body)
            .await
            .expect(201)
            .text("/data/endpoint_id")
    }

    /// Prices and publishes an asset or endpoint.
    pub async fn publish(&self, product_id: &str, credits: u64) {
        let kind = if product_id.starts_with("end_") {
            "endpoints"
        } else {
            "assets"
        };
        let prices = self.path(&format!("/{kind}/{product_id}/prices"));
        self.client
            .post(&prices, json!({"price_credits": credits}))
            .await
            .expect(201);
        self.client
            .post(
                &self.path(&format!("/{kind}/{product_id}/publish")),
                json!({}),
            )
            .await
            .expect(200);
    }

    pub async fn execute(&self, asset_id: &str, params: Value) -> crate::Answer {
        self.client
            .post(
                &self.path(&format!("/assets/{asset_id}/execute")),
                json!({"params": params}),
            )
            .await
    }
}

fn merge(body: &mut Value, fields: Value) {
    if let (Value::Object(body), Value::Object(fields)) = (body, fields) {
        body.extend(fields);
    }
}
