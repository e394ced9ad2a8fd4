//! The native handler for Trino: its client protocol over hyper, as its clients have it. A statement of its own, in no transaction, whose values stand
//! behind it, and whose answers are followed to the last one.

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answers::{Page, Player};
use crate::native::{Client, router, serve};
use crate::native_http::{Http, Source};
use souk_load::queries::{self, Query, Texts};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "R: Deserialize<'de>"))]
struct Results<R> {
    next_uri: Option<String>,
    #[serde(default = "Vec::new")]
    data: Vec<R>,
    error: Option<Box<RawValue>>,
}

type Row<'a> = (i64, &'a str, &'a str, i64, f64, bool);

struct Trino {
    http: Http,
    texts: Texts,
}

impl Client for Trino {
    async fn players(&self, query: Query, value: i64) -> anyhow::Result<Page> {
        let mut page = Page::of(1);
        let mut body = self.begin(self.texts.of(query), &value.to_string()).await?;
        loop {
            let results: Results<Row<'_>> = serde_json::from_slice(&body)?;
            ensure!(results.error.is_none(), "{:?}", results.error);
            results.data.iter().for_each(|row| add(&mut page, row));
            match results.next_uri {
                Some(next) => body = self.http.get(&next).await?,
                None => return Ok(page),
            }
        }
    }

    async fn goals(&self) -> anyhow::Result<i64> {
        let team = format!("'{}'", queries::TEAM);
        let mut body = self.begin(&self.texts.aggregate, &team).await?;
        let mut goals = None;
        loop {
            let results: Results<(i64,)> = serde_json::from_slice(&body)?;
            ensure!(results.error.is_none(), "{:?}", results.error);
            goals = results.data.first().map(|(goals,)| *goals).or(goals);
            match results.next_uri {
                Some(next) => body = self.http.get(&next).await?,
                None => return goals.context("no sum"),
            }
        }
    }
}

impl Trino {
    async fn begin(&self, sql: &str, value: &str) -> anyhow::Result<axum::body::Bytes> {
        let text = format!("EXECUTE IMMEDIATE '{sql}' USING {value}");
        self.http.post("/v1/statement", text).await
    }
}

fn add(page: &mut Page, &(id, name, team, goals, rating, active): &Row<'_>) {
    page.player(&Player {
        id,
        name,
        team,
        goals,
        rating,
        active,
    });
}

pub fn run(source: &str, listener: std::net::TcpListener, threads: usize) -> anyhow::Result<()> {
    let source: Source = serde_json::from_str(source)?;
    serve(listener, threads, move || {
        let http = Http::new(&source);
        async move {
            Ok(router(Trino {
                http: http?,
                texts: Texts::with("?"),
            }))
        }
    })
}
