//! A REST client of the host itself, with which the demo is seeded: if the demo stands, the API works.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Method, Request};
use serde_json::Value;
use souk_outbound::{Bounds, Client, EgressPolicy, Own, Reach};

/// Publishing tests an asset, which may compile a connector first.
const TIMEOUT: Duration = Duration::from_secs(60);
/// No answer of ours that seeding needs comes near it.
const ANSWER_BYTES_MAX: usize = 1 << 20;

const BOUNDS: Bounds = Bounds {
    connect: TIMEOUT,
    head_bytes: 64 << 10,
    // Seeding does one thing after the other.
    idle_per_host: 1,
    idle_total: 1,
    idle: None,
};

#[derive(Clone)]
pub struct Rest {
    client: Arc<Client>,
    base_url: String,
    api_key: String,
}

impl Rest {
    pub fn new(base_url: String, api_key: String) -> Rest {
        let reach = Reach {
            egress: EgressPolicy::unrestricted(),
            egress_plain: EgressPolicy::unrestricted(),
            trust: None,
            account: Own,
        };
        Rest {
            client: Arc::new(Client::new(reach, BOUNDS)),
            base_url,
            api_key,
        }
    }

    pub fn with_key(&self, api_key: &str) -> Rest {
        Rest {
            api_key: api_key.to_owned(),
            ..self.clone()
        }
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        self.send(Method::GET, path, "application/json", Bytes::new())
            .await
    }

    pub async fn post(&self, path: &str, body: Value) -> Result<Value> {
        self.send(
            Method::POST,
            path,
            "application/json",
            body.to_string().into(),
        )
        .await
    }

    pub async fn put_file(&self, path: &str, content: Vec<u8>) -> Result<Value> {
        self.send(
            Method::PUT,
            path,
            "application/octet-stream",
            content.into(),
        )
        .await
    }

    /// The answer's JSON; any status but a success is an error that quotes it.
    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<Value> {
        let what = format!("{method} {path}");
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base_url))
            .header("x-api-key", &self.api_key)
            .header("content-type", content_type)
            .body(Full::new(body))?;
        let exchange = async {
            let answer = self.client.send(request, TIMEOUT, ANSWER_BYTES_MAX).await?;
            let (status, body) = (answer.head.status, answer.body?);
            ensure!(
                status.is_success(),
                "{status}: {}",
                String::from_utf8_lossy(&body)
            );
            Ok(if body.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(&body)?
            })
        };
        exchange.await.context(what)
    }
}

/// The text at a JSON pointer.
pub fn text(value: &Value, pointer: &str) -> Result<String> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found
        .map(str::to_owned)
        .with_context(|| format!("no {pointer} in {value}"))
}
