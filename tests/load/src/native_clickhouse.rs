//! The native handler for ClickHouse: its HTTP interface over hyper, rows as `RowBinaryWithNamesAndTypes`, values bound at the server. It is what the
//! official crate `clickhouse` does, without that: it switches on a feature of `bytes`, for which everything would be built anew.

use anyhow::{Context, ensure};
use axum::body::Bytes;

use crate::answers::{Page, Player};
use crate::native::{Client, router, serve};
use crate::native_http::{Http, Source};
use souk_load::queries::{self, Query, Texts};

/// Where statements go, but for their value.
pub fn address(base_url: &str, database: &str) -> String {
    format!("{base_url}/?database={database}&default_format=RowBinaryWithNamesAndTypes")
}

/// What whoever answers pages of strangers' statements sends with each: that it only reads, and how long, and what it may answer.
const BOUNDS: &str = "&readonly=1&max_execution_time=10&max_result_rows=2&max_result_bytes=346030080&result_overflow_mode=throw\
    &cancel_http_readonly_queries_on_client_close=1";

struct ClickHouse {
    http: Http,
    texts: Texts,
    /// The sum has a text as its value.
    aggregate: String,
}

impl Client for ClickHouse {
    async fn players(&self, query: Query, value: i64) -> anyhow::Result<Page> {
        let bounds = if let Query::Page = query { BOUNDS } else { "" };
        let value = format!("{value}{bounds}");
        let body = self.ask(self.texts.of(query), &value).await?;
        let mut rows = Rows::of(&body)?;
        let mut page = Page::of(1);
        while !rows.0.is_empty() {
            page.player(&Player {
                id: i64::from_le_bytes(rows.fixed()?),
                name: rows.text()?,
                team: rows.text()?,
                goals: i32::from_le_bytes(rows.fixed()?).into(),
                rating: f64::from_le_bytes(rows.fixed()?),
                active: rows.fixed::<1>()? != [0],
            });
        }
        Ok(page)
    }

    async fn goals(&self) -> anyhow::Result<i64> {
        let body = self.ask(&self.aggregate, "Team%207").await?;
        Ok(i64::from_le_bytes(Rows::of(&body)?.fixed()?))
    }
}

impl ClickHouse {
    /// `value`: encoded for a URL.
    async fn ask(&self, sql: &str, value: &str) -> anyhow::Result<Bytes> {
        let value = format!("&param_value={value}");
        self.http.post(&value, sql.to_owned()).await
    }
}

/// What is left to read of an answer.
struct Rows<'a>(&'a [u8]);

impl<'a> Rows<'a> {
    /// Behind the names and the types.
    fn of(body: &'a [u8]) -> anyhow::Result<Rows<'a>> {
        let mut rows = Rows(body);
        for _ in 0..2 * rows.length()? {
            rows.text()?;
        }
        Ok(rows)
    }

    fn fixed<const N: usize>(&mut self) -> anyhow::Result<[u8; N]> {
        let (value, rest) = self.0.split_first_chunk().context("a row is cut off")?;
        self.0 = rest;
        Ok(*value)
    }

    fn text(&mut self) -> anyhow::Result<&'a str> {
        let length = self.length()?;
        let split = self.0.split_at_checked(length);
        let (text, rest) = split.context("a text is cut off")?;
        self.0 = rest;
        Ok(std::str::from_utf8(text)?)
    }

    /// LEB128.
    fn length(&mut self) -> anyhow::Result<usize> {
        let mut length = 0;
        for place in 0.. {
            let [byte] = self.fixed()?;
            ensure!(place < 4, "a length is too long");
            length |= usize::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(length)
    }
}

pub fn run(source: &str, listener: std::net::TcpListener, threads: usize) -> anyhow::Result<()> {
    let source: Source = serde_json::from_str(source)?;
    serve(listener, threads, move || {
        let http = Http::new(&source);
        async move {
            Ok(router(ClickHouse {
                http: http?,
                texts: Texts::with("{value:Int64}").without_order(),
                aggregate: queries::AGGREGATE.replace("$1", "{value:String}"),
            }))
        }
    })
}
