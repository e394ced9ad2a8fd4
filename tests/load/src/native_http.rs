//! What native clients of engines over HTTP have in common: hyper's pooled client, connections that are kept, no compression (none of the servers
//! that stand for them compresses a first page), and rows read by serde into tuples that borrow from the answer. A name that has anything escaped
//! could not be borrowed: the dataset has none.

use anyhow::{Context, ensure};
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};

use crate::answers::{Page, Player};

/// Where a server is, and what it wants to see.
#[derive(Clone, Deserialize, Serialize)]
pub struct Source {
    pub base_url: String,
    /// Of every request.
    pub headers: Vec<(String, String)>,
}

pub struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
    base_url: String,
    headers: HeaderMap,
}

impl Http {
    pub fn new(source: &Source) -> anyhow::Result<Http> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let headers = source.headers.iter().map(|(name, value)| {
            let name: HeaderName = name.parse()?;
            anyhow::Ok((name, HeaderValue::from_bytes(value.as_bytes())?))
        });
        Ok(Http {
            client: Client::builder(TokioExecutor::new()).build(connector),
            base_url: source.base_url.clone(),
            headers: headers.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Of a path of the server's.
    pub async fn post(&self, path: &str, body: String) -> anyhow::Result<Bytes> {
        self.post_bytes(path, body.into()).await
    }

    pub async fn post_bytes(&self, path: &str, body: Bytes) -> anyhow::Result<Bytes> {
        let url = format!("{}{path}", self.base_url);
        self.send(Method::POST, &url, body).await
    }

    /// Of a whole address.
    pub async fn get(&self, url: &str) -> anyhow::Result<Bytes> {
        self.send(Method::GET, url, Bytes::new()).await
    }

    async fn send(&self, method: Method, url: &str, body: Bytes) -> anyhow::Result<Bytes> {
        let mut request = Request::builder()
            .method(method)
            .uri(url)
            .body(Full::new(body))?;
        *request.headers_mut() = self.headers.clone();
        let response = self.client.request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(
            status.is_success(),
            "{status}: {}",
            String::from_utf8_lossy(&body)
        );
        Ok(body)
    }
}

/// A row of an API that sends texts only: id, name, team, goals, rating, whether active.
pub type TextRow<'a> = [&'a str; 6];

pub fn add(page: &mut Page, row: &TextRow<'_>) -> anyhow::Result<()> {
    let [id, name, team, goals, rating, active] = *row;
    page.player(&Player {
        id: id.parse()?,
        name,
        team,
        goals: goals.parse()?,
        rating: rating.parse()?,
        active: active == "true",
    });
    Ok(())
}

pub fn page(rows: &[TextRow<'_>]) -> anyhow::Result<Page> {
    let mut page = Page::of(rows.len());
    rows.iter().try_for_each(|row| add(&mut page, row))?;
    Ok(page)
}

/// The number of a result of one cell.
pub fn cell(rows: &[[&str; 1]]) -> anyhow::Result<i64> {
    let [[cell]] = rows else {
        anyhow::bail!("{} rows", rows.len());
    };
    cell.parse().context("no number")
}
