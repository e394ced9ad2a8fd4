//! Uploads: who has a place, and who waits for whom.

use crate::world::{Answer, Company, World, request};
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http::{Method, Request};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tower::ServiceExt;

/// What the world's companies may hold, each; all together may hold twice that.
const COMPANY_MAX: usize = 4 << 20;
/// Longer than any machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The upload of a connector. One that is refused does not send its body.
fn upload(company: &Company, bytes: usize) -> http::request::Builder {
    request(Method::POST, &company.key, &company.path("/connectors"))
        .header("content-type", "application/wasm")
        .header("content-length", bytes)
        .header("expect", "100-continue")
}

/// A byte now and then, for ever.
fn trickle() -> Body {
    Body::from_stream(stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Some((Ok::<_, Infallible>(Bytes::from_static(b"x")), ()))
    }))
}

fn send(world: &World, request: Request<Body>) -> JoinHandle<Answer> {
    let router = world.router.clone();
    tokio::spawn(async move { Answer::of(router.oneshot(request).await.unwrap()).await })
}

async fn until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap();
}

/// An upload takes its place before a byte of it is read, with an `Idempotency-Key` as without; a company without room is told that it
/// is its own uploads, and one that finds the host full that it is not.
#[tokio::test]
async fn an_upload_without_a_place_is_refused_unread() {
    let world = World::new().await;
    let companies = [
        world.company("one").await,
        world.company("two").await,
        world.company("three").await,
    ];
    let mut held = Vec::new();
    for (company, place) in companies.iter().zip(1..=2) {
        let keyed = upload(company, COMPANY_MAX).header("idempotency-key", "k");
        held.push(send(&world, keyed.body(trickle()).unwrap()));
        until(|| world.state.upload_bytes() == (place * COMPANY_MAX) as u64).await;
    }
    for (company, status) in [(&companies[0], 429), (&companies[2], 503)] {
        for key in ["", "another"] {
            let read = Arc::new(AtomicBool::new(false));
            let seen = read.clone();
            let body = trickle().into_data_stream();
            let body = Body::from_stream(body.inspect(move |_| seen.store(true, Ordering::SeqCst)));
            let mut request = upload(company, 1);
            if !key.is_empty() {
                request = request.header("idempotency-key", key);
            }
            let answer = world.send(request.body(body).unwrap()).await;
            let refused = answer.expect_error(status, "TOO_MANY_UPLOADS");
            assert_eq!(refused.header("retry-after"), "1");
            assert!(!read.load(Ordering::SeqCst));
        }
    }
    // Whoever hangs up gives its place back.
    for upload in &held {
        upload.abort();
    }
    until(|| world.state.upload_bytes() == 0).await;
    let answer = world.send(upload(&companies[2], 3).body(Body::from("no!")).unwrap());
    answer.await.expect_error(400, "CONNECTOR_INVALID");
    assert_eq!(world.state.upload_bytes(), 0);
}

/// Uploads that never come to an end keep nobody else waiting: only what has arrived waits for its turn.
#[tokio::test]
async fn a_slow_upload_holds_nobody_up() {
    let world = World::new().await;
    let (slow, quick) = (world.company("slow").await, world.company("quick").await);
    let uploads: Vec<_> = (1..=3)
        .map(|_| send(&world, upload(&slow, 1 << 20).body(trickle()).unwrap()))
        .collect();
    until(|| world.state.upload_bytes() == 3 << 20).await;
    let answer = world.send(upload(&quick, 3).body(Body::from("no!")).unwrap());
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    answer
        .expect("an answer before the slow ones end")
        .expect_error(400, "CONNECTOR_INVALID");
    for upload in uploads {
        assert!(!upload.is_finished());
        upload.abort();
    }
}
