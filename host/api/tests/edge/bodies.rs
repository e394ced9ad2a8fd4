//! A request is taken to its end, whatever becomes of it: of one that was answered before it had arrived, the connection is closed, and the
//! client's next request on it is lost.

use crate::world::{World, request};
use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::Method;
use serde_json::Value;
use souk_api::openapi::document;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An empty object, and whether it was read to its end.
fn watched() -> (Body, Arc<AtomicBool>) {
    let is_read = Arc::new(AtomicBool::new(false));
    let note = is_read.clone();
    let end = stream::once(async move {
        note.store(true, Ordering::Relaxed);
        Ok::<_, Infallible>(Bytes::new())
    });
    let first = stream::iter([Ok(Bytes::from_static(b"{}"))]);
    (Body::from_stream(first.chain(end)), is_read)
}

/// What changes something, and how: of uploads, which are read while they come, there is no end to wait for.
fn operations() -> Vec<(Method, String)> {
    let document = document(&souk_api::all());
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let content = &operation["requestBody"]["content"];
            if verb != "get" && (content.is_null() || content["application/json"] != Value::Null) {
                let method = verb.to_ascii_uppercase().parse().unwrap();
                all.push((method, path.clone()));
            }
        }
    }
    assert!(all.len() > 90, "{}", all.len());
    all
}

/// By enumeration: of operations that take no body, of refusals before and behind the gate, and of what is missing.
#[tokio::test]
async fn a_body_that_nobody_wants_is_taken() {
    let world = World::new().await;
    let company = world.company("acme").await;
    let mut unread = Vec::new();
    for (method, path) in operations() {
        let at = path.replace("{company_id}", &company.id);
        let parts = at.split('/').map(|part| match part.starts_with('{') {
            true => "unknown",
            false => part,
        });
        let at = parts.collect::<Vec<_>>().join("/");
        let own = match at.starts_with("/companies/") {
            true => &company.key,
            false => &world.platform,
        };
        for key in [own.as_str(), ""] {
            let (body, is_read) = watched();
            let sent = request(method.clone(), key, &at).header("content-type", "application/json");
            let answer = world.send(sent.body(body).unwrap()).await;
            if !is_read.load(Ordering::Relaxed) {
                unread.push(format!("{method} {path}: {}", answer.status));
            }
        }
    }
    assert!(unread.is_empty(), "{unread:#?}");
}
