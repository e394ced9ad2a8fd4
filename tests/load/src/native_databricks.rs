//! The native handler for Databricks: the SQL Statement Execution API over hyper. One request waits for a statement's end, and is answered with its
//! rows.

use anyhow::Context;
use axum::body::Bytes;
use serde::Deserialize;
use serde_json::json;
use souk_tests::databricks::{CATALOG, WAREHOUSE};

use crate::answers::Page;
use crate::native::{Client, router, serve};
use crate::native_http::{Http, Source, TextRow, cell, page};
use souk_load::queries::{self, Query, Texts};

#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct Answer<R> {
    result: Option<Chunk<R>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct Chunk<R> {
    #[serde(default = "Vec::new")]
    data_array: Vec<R>,
}

struct Databricks {
    http: Http,
    texts: Texts,
}

impl Client for Databricks {
    async fn players(&self, query: Query, value: i64) -> anyhow::Result<Page> {
        // Rows are counted in INT.
        let kind = match query {
            Query::Single | Query::Page => "BIGINT",
            Query::Rows => "INT",
        };
        let value = value.to_string();
        let body = self.ask(self.texts.of(query), kind, &value).await?;
        page(&read::<TextRow<'_>>(&body)?)
    }

    async fn goals(&self) -> anyhow::Result<i64> {
        let body = self
            .ask(&self.texts.aggregate, "STRING", queries::TEAM)
            .await?;
        cell(&read(&body)?)
    }
}

impl Databricks {
    async fn ask(&self, sql: &str, kind: &str, value: &str) -> anyhow::Result<Bytes> {
        let body = json!({
            "statement": sql, "warehouse_id": WAREHOUSE, "catalog": CATALOG, "schema": "bench",
            "parameters": [{"name": "value", "type": kind, "value": value}],
            "disposition": "INLINE", "format": "JSON_ARRAY", "wait_timeout": "30s",
        });
        let path = "/api/2.0/sql/statements";
        self.http.post(path, body.to_string()).await
    }
}

fn read<'a, R: Deserialize<'a>>(body: &'a Bytes) -> anyhow::Result<Vec<R>> {
    let answer: Answer<R> = serde_json::from_slice(body)?;
    Ok(answer.result.context("no result")?.data_array)
}

pub fn run(source: &str, listener: std::net::TcpListener, threads: usize) -> anyhow::Result<()> {
    let source: Source = serde_json::from_str(source)?;
    serve(listener, threads, move || {
        let http = Http::new(&source);
        async move {
            Ok(router(Databricks {
                http: http?,
                texts: Texts::with(":value"),
            }))
        }
    })
}
