//! The native handler for BigQuery: its REST API over hyper. One request waits for a statement's end, and is answered with its rows. The token was
//! signed before, as one is once an hour.

use axum::body::Bytes;
use serde::Deserialize;
use serde_json::json;
use souk_tests::bigquery::PROJECT;

use crate::answers::Page;
use crate::native::{Client, router, serve};
use crate::native_http::{Http, Source, add, cell};
use souk_load::queries::{self, Query, Texts};

#[derive(Deserialize)]
#[serde(bound(deserialize = "C: Deserialize<'de>"))]
struct Answer<C> {
    rows: Vec<Row<C>>,
}

/// `C`: so many cells as there are columns.
#[derive(Deserialize)]
struct Row<C> {
    f: C,
}

#[derive(Deserialize)]
struct Cell<'a> {
    v: &'a str,
}

struct BigQuery {
    http: Http,
    path: String,
    texts: Texts,
}

impl Client for BigQuery {
    async fn players(&self, query: Query, value: i64) -> anyhow::Result<Page> {
        let value = value.to_string();
        let body = self.ask(self.texts.of(query), "INT64", &value).await?;
        let answer: Answer<[Cell<'_>; 6]> = serde_json::from_slice(&body)?;
        let mut page = Page::of(answer.rows.len());
        for row in &answer.rows {
            add(&mut page, &row.f.each_ref().map(|cell| cell.v))?;
        }
        Ok(page)
    }

    async fn goals(&self) -> anyhow::Result<i64> {
        let body = self
            .ask(&self.texts.aggregate, "STRING", queries::TEAM)
            .await?;
        let answer: Answer<[Cell<'_>; 1]> = serde_json::from_slice(&body)?;
        let rows = answer.rows.iter();
        let rows: Vec<[&str; 1]> = rows.map(|row| [row.f[0].v]).collect();
        cell(&rows)
    }
}

impl BigQuery {
    async fn ask(&self, sql: &str, kind: &str, value: &str) -> anyhow::Result<Bytes> {
        let body = json!({
            "query": sql, "useLegacySql": false, "timeoutMs": 30_000,
            "defaultDataset": {"projectId": PROJECT, "datasetId": "bench"},
            "parameterMode": "POSITIONAL",
            "queryParameters": [{"parameterType": {"type": kind}, "parameterValue": {"value": value}}],
        });
        self.http.post(&self.path, body.to_string()).await
    }
}

pub fn run(source: &str, listener: std::net::TcpListener, threads: usize) -> anyhow::Result<()> {
    let source: Source = serde_json::from_str(source)?;
    serve(listener, threads, move || {
        let http = Http::new(&source);
        async move {
            Ok(router(BigQuery {
                http: http?,
                path: format!("/bigquery/v2/projects/{PROJECT}/queries?prettyPrint=false"),
                texts: Texts::with("?"),
            }))
        }
    })
}
