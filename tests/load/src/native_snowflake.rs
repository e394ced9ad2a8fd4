//! The native handler for Snowflake: its SQL API over hyper. One request waits for a statement's end, and is answered with its rows.

use axum::body::Bytes;
use serde::Deserialize;
use serde_json::json;
use souk_tests::snowflake::{DATABASE, READER, WAREHOUSE};

use crate::answers::Page;
use crate::native::{Client, router, serve};
use crate::native_http::{Http, Source, TextRow, cell, page};
use souk_load::queries::{self, Query, Texts};

#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>"))]
struct Answer<R> {
    data: Vec<R>,
}

struct Snowflake {
    http: Http,
    texts: Texts,
}

impl Client for Snowflake {
    async fn players(&self, query: Query, value: i64) -> anyhow::Result<Page> {
        let value = value.to_string();
        let body = self.ask(self.texts.of(query), "FIXED", &value).await?;
        let answer: Answer<TextRow<'_>> = serde_json::from_slice(&body)?;
        page(&answer.data)
    }

    async fn goals(&self) -> anyhow::Result<i64> {
        let body = self
            .ask(&self.texts.aggregate, "TEXT", queries::TEAM)
            .await?;
        let answer: Answer<[&str; 1]> = serde_json::from_slice(&body)?;
        cell(&answer.data)
    }
}

impl Snowflake {
    async fn ask(&self, sql: &str, kind: &str, value: &str) -> anyhow::Result<Bytes> {
        let body = json!({
            "statement": sql, "database": DATABASE, "schema": "bench", "warehouse": WAREHOUSE, "role": READER,
            "bindings": {"1": {"type": kind, "value": value}},
        });
        self.http.post("/api/v2/statements", body.to_string()).await
    }
}

pub fn run(source: &str, listener: std::net::TcpListener, threads: usize) -> anyhow::Result<()> {
    let source: Source = serde_json::from_str(source)?;
    serve(listener, threads, move || {
        let http = Http::new(&source);
        async move {
            Ok(router(Snowflake {
                http: http?,
                texts: Texts::with("?"),
            }))
        }
    })
}
