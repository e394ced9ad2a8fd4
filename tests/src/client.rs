//! A REST client as a user would write it: a base URL, a key, JSON in and out.

pub use reqwest::Method;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::sync::Mutex;

use crate::contract::{self, Seen};

/// A host has so long for a component of 50 MB while others use the machine.
const COMPILED_WITHIN: std::time::Duration = std::time::Duration::from_secs(480);

#[derive(Clone)]
pub struct Client {
    pub base_url: String,
    pub key: Option<String>,
    http: reqwest::Client,
}

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// `Value::Null` for an empty body, a string for what is no JSON.
    pub body: Value,
}

/// Hosts of another build, whose answers another document describes.
static OF_OTHER_BUILDS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Answers of this host are not held against `openapi.json`.
pub(crate) fn is_of_another_build(base_url: &str) {
    let mut others = OF_OTHER_BUILDS.lock().expect("never poisoned");
    others.push(base_url.to_owned());
}

/// Its address may be another host's soon.
pub(crate) fn has_ended(base_url: &str) {
    let mut others = OF_OTHER_BUILDS.lock().expect("never poisoned");
    others.retain(|other| other != base_url);
}

fn is_excused(url: &reqwest::Url) -> bool {
    let others = OF_OTHER_BUILDS.lock().expect("never poisoned");
    others.contains(&url.origin().ascii_serialization())
}

impl Client {
    pub fn new(base_url: &str, key: Option<&str>) -> Client {
        crate::tls::use_ring();
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(std::time::Duration::from_secs(120))
            .build()
            .expect("a client");
        Client {
            base_url: base_url.to_owned(),
            key: key.map(str::to_owned),
            http,
        }
    }

    pub fn with_key(&self, key: &str) -> Client {
        Client {
            key: Some(key.to_owned()),
            ..self.clone()
        }
    }

    pub fn without_key(&self) -> Client {
        Client {
            key: None,
            ..self.clone()
        }
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let url = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("{}{path}", self.base_url)
        };
        let request = self.http.request(method, url);
        match &self.key {
            Some(key) => request.header("x-api-key", key),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::DELETE, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::PATCH, path).json(&body)).await
    }

    pub async fn put_bytes(&self, path: &str, body: Vec<u8>) -> Answer {
        Answer::of(
            self.request(Method::PUT, path)
                .header("content-type", "application/octet-stream")
                .body(body),
        )
        .await
    }

    pub async fn post_wasm(&self, path: &str, body: Vec<u8>) -> Answer {
        Answer::of(
            self.request(Method::POST, path)
                .header("content-type", "application/wasm")
                .timeout(COMPILED_WITHIN)
                .body(body),
        )
        .await
    }

    pub async fn post_with(&self, path: &str, headers: &[(&str, &str)], body: Value) -> Answer {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(
                HeaderName::from_bytes(name.as_bytes()).expect("a header name"),
                HeaderValue::from_str(value).expect("a header value"),
            );
        }
        Answer::of(self.request(Method::POST, path).headers(map).json(&body)).await
    }
}

impl Answer {
    /// Sends, and holds the answer against `openapi.json`.
    pub async fn of(request: reqwest::RequestBuilder) -> Answer {
        let (client, request) = request.build_split();
        let request = request.expect("a request");
        let (method, url) = (request.method().clone(), request.url().clone());
        let response = client.execute(request).await.expect("the host answers");
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.bytes().await.expect("a whole body");
        if !is_excused(&url) {
            contract::check(&Seen {
                method: method.as_str(),
                path: url.path(),
                status: status.as_u16(),
                content_type: headers
                    .get("content-type")
                    .and_then(|kind| kind.to_str().ok())
                    .unwrap_or_default(),
                body: &bytes,
            });
        }
        let body = match bytes.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
        };
        Answer {
            status,
            headers,
            body,
        }
    }

    /// The value at a JSON pointer; `Null` when absent.
    pub fn at(&self, pointer: &str) -> &Value {
        self.body.pointer(pointer).unwrap_or(&Value::Null)
    }

    pub fn text(&self, pointer: &str) -> String {
        match self.at(pointer) {
            Value::String(text) => text.clone(),
            other => panic!("{pointer} is {other}, not a string, in {self:?}"),
        }
    }

    /// The fields that a refusal names, in its order.
    pub fn fields(&self) -> Vec<&str> {
        let errors = self.at("/error/details/errors").as_array();
        let errors = errors.into_iter().flatten();
        errors.filter_map(|error| error["field"].as_str()).collect()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
    }

    /// Asserts the status and returns the answer, so that set-up reads as one chain.
    #[track_caller]
    pub fn expect(self, status: u16) -> Answer {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self
    }

    /// Asserts status and error code of the envelope.
    #[track_caller]
    pub fn expect_error(self, status: u16, code: &str) -> Answer {
        let answer = self.expect(status);
        assert_eq!(answer.at("/error/code"), code, "{}", answer.body);
        assert!(answer.at("/error/message").is_string(), "{}", answer.body);
        assert!(
            answer.at("/error/details/request_id").is_string(),
            "{}",
            answer.body
        );
        answer
    }
}
