//! Uploads and other long bodies: who has a place, and who waits for whom.

use crate::world::{Answer, Company, World, request};
use axum::body::Body;
use bytes::Bytes;
use futures_util::future;
use futures_util::stream::{self, StreamExt};
use http::{Method, Request};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
        world.company("four").await,
    ];
    let mut held = Vec::new();
    // The last ones are short, and each its company's first.
    let mut all = 0;
    for (place, bytes) in [(0, COMPANY_MAX), (1, COMPANY_MAX / 2), (3, COMPANY_MAX / 2)] {
        let keyed = upload(&companies[place], bytes).header("idempotency-key", "k");
        held.push(send(&world, keyed.body(trickle()).unwrap()));
        all += bytes as u64;
        until(|| world.state.upload_bytes() == all).await;
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

/// An upload that trickles is given up when others have more than half of all places, and its client is told what to do; then it is in nobody's way
/// any more, and those that are left go on.
#[tokio::test]
async fn a_slow_upload_makes_way() {
    let world = World::new().await;
    let mut uploads = Vec::new();
    for (name, mib) in [("one", 1), ("another", 1), ("large", 4)] {
        let company = world.company(name).await;
        let request = upload(&company, mib << 20).body(trickle()).unwrap();
        uploads.push(send(&world, request));
    }
    let large = uploads.pop().unwrap();
    let first = tokio::time::timeout(PATIENCE, future::select_all(uploads)).await;
    let (answer, _, left) = first.expect("an answer");
    let refused = answer.unwrap().expect_error(400, "INVALID_REQUEST");
    let message = refused.at("/error/message").to_string();
    assert!(message.contains("too slowly"), "{message}");
    assert!(!large.is_finished());
    for upload in left.into_iter().chain([large]) {
        upload.abort();
    }
}

/// 20 KiB of a body whose length nobody knows, and never any more of it. Counts when more is waited for.
fn stalled(key: &str, path: &str, waited_for: &Arc<AtomicUsize>) -> Request<Body> {
    let waited_for = waited_for.clone();
    let first = Bytes::from(vec![b' '; 20 << 10]);
    let rest = stream::once(async move {
        waited_for.fetch_add(1, Ordering::Relaxed);
        std::future::pending().await
    });
    let body = stream::iter([Ok::<_, Infallible>(first)]).chain(rest);
    request(Method::POST, key, path)
        .header("content-type", "application/json")
        .body(Body::from_stream(body))
        .unwrap()
}

/// Bodies that never come to an end take so much memory of their company's, or of all who have no key, and none of anybody else's.
#[tokio::test]
async fn slow_bodies_are_bounded() {
    const AT_ONCE: usize = 64;
    let world = World::new().await;
    let (slow, quick) = (world.company("slow").await, world.company("quick").await);
    let assets = slow.path("/assets");
    for (key, path) in [
        (slow.key.as_str(), assets.as_str()),
        ("", "/webhooks/payments/manual"),
    ] {
        let waited_for = Arc::new(AtomicUsize::new(0));
        let one = || stalled(key, path, &waited_for);
        let is_waited_for = |count: usize| waited_for.load(Ordering::Relaxed) == count;
        let bodies: Vec<_> = (0..AT_ONCE).map(|_| send(&world, one())).collect();
        until(|| is_waited_for(AT_ONCE)).await;
        let refused = world.send(one()).await;
        let refused = refused.expect_error(503, "SERVICE_UNAVAILABLE");
        assert_eq!(refused.header("retry-after"), "1");
        // For a moment, until its client has read why.
        assert!(is_waited_for(AT_ONCE + 1));

        // What is short needs no room, and others have their own.
        let short = world.post(&slow.key, &assets, json!({}));
        short.await.expect_error(400, "VALIDATION_ERROR");
        let others = stalled(&quick.key, &quick.path("/assets"), &waited_for);
        let others = send(&world, others);
        until(|| is_waited_for(AT_ONCE + 2)).await;
        for body in &bodies {
            assert!(!body.is_finished());
            body.abort();
        }
        // Whoever hangs up gives its room back.
        let again = send(&world, one());
        until(|| is_waited_for(AT_ONCE + 3)).await;
        again.abort();
        others.abort();
    }
}

/// Without a key a long body comes soon, since all without one have the same room; a company's own may take its time.
#[tokio::test]
async fn a_long_body_without_a_key_comes_soon() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let waited_for = Arc::default();
    let kept = send(
        &world,
        stalled(&acme.key, &acme.path("/assets"), &waited_for),
    );
    let given_up = stalled("", "/webhooks/payments/manual", &waited_for);
    let answer = tokio::time::timeout(PATIENCE, send(&world, given_up)).await;
    let refused = answer.expect("an answer").unwrap();
    let refused = refused.expect_error(400, "INVALID_REQUEST");
    let message = refused.at("/error/message").to_string();
    assert!(message.contains("did not come within 10 s"), "{message}");
    assert!(!kept.is_finished());
    kept.abort();
}
