//! Answers that clients do not read.

use crate::world::{Answer, Company, World, request};
use axum::body::Body;
use http::Method;
use serde_json::json;
use tower::ServiceExt;

/// More than the world's companies may leave unread.
async fn large_list(world: &World, company: &Company) -> String {
    for _ in 0..12 {
        let description = "x".repeat(100 << 10);
        world
            .asset_with(company, |asset| asset.description = description)
            .await;
    }
    company.path("/assets")
}

/// A company whose clients leave too much unread gets no new answers that may be large, until they have read; others do not notice.
#[tokio::test]
async fn unread_answers_are_bounded_per_company() {
    let world = World::new().await;
    let (acme, other) = (world.company("acme").await, world.company("other").await);
    let list = large_list(&world, &acme).await;
    let get = request(Method::GET, &acme.key, &list);
    let unread = world
        .router
        .clone()
        .oneshot(get.body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(unread.status(), 200);
    assert!(world.state.unread_bytes() > 1 << 20);

    let refused = world
        .get(&acme.key, &acme.path("/credits"))
        .await
        .expect_error(429, "TOO_MANY_UNREAD_ANSWERS");
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.at("/error/details/unread_bytes_max"), 1 << 20);
    // Nothing was spent, what changes something goes on, and so do others.
    assert_eq!(
        refused.header("x-ratelimit-remaining"),
        refused
            .header("x-ratelimit-limit")
            .parse::<u32>()
            .map(|limit| (limit - 1).to_string())
            .unwrap()
    );
    world
        .post(&acme.key, &acme.path("/api-keys"), json!({"name": "x"}))
        .await
        .expect(201);
    world
        .get(&other.key, &other.path("/credits"))
        .await
        .expect(200);

    drop(Answer::of(unread).await);
    assert_eq!(world.state.unread_bytes(), 0);
    world
        .get(&acme.key, &acme.path("/credits"))
        .await
        .expect(200);
}

/// All who have no key are counted together, and so are those who read the reference: beyond the bound they are refused what may be large of the
/// one or of the other, and nobody else notices.
#[tokio::test]
async fn unread_answers_of_nobody_are_bounded() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let post = json!({"title": "Large", "body_markdown": "€".repeat(50_000)});
    let post = world.post(&acme.key, &acme.path("/posts"), post).await;
    let post = acme.path(&format!("/posts/{}", post.expect(201).text("/data/id")));
    let published = format!("{post}/publish");
    world
        .post(&acme.key, &published, json!({}))
        .await
        .expect(200);
    let leave_unread = async |path: &str| {
        let mut unread = Vec::new();
        while world.state.unread_bytes() <= 64 << 20 {
            let get = request(Method::GET, "", path).body(Body::empty()).unwrap();
            let answer = world.router.clone().oneshot(get).await.unwrap();
            assert_eq!(answer.status(), 200, "{path}");
            unread.push(answer);
        }
        unread
    };
    let cases: [(&str, &[&str], &[&str]); 2] = [
        (
            "/openapi.json",
            &["/openapi.json", "/openapi-3.0.json", "/docs"],
            &["/posts", "/posts/large"],
        ),
        (
            "/posts/large",
            &["/posts", "/posts/large"],
            &["/openapi.json", "/openapi-3.0.json"],
        ),
    ];
    for (large, refused, served) in cases {
        let unread = leave_unread(large).await;
        for path in refused {
            let refused = world.get("", path).await;
            let refused = refused.expect_error(503, "SERVICE_UNAVAILABLE");
            assert_eq!(refused.header("retry-after"), "1", "{path}");
        }
        for path in served {
            let answer = world.get("", path).await;
            assert_eq!(answer.status, 200, "{path} while {large} is not read");
        }
        world.get("", "/healthz").await.expect(200);
        world.get("", "/readyz").await.expect(200);
        let views = world.post("", "/posts/pst_unknown/views", json!({})).await;
        views.expect_error(404, "POST_NOT_FOUND");
        world
            .get(&acme.key, &acme.path("/credits"))
            .await
            .expect(200);
        drop(unread);
        assert_eq!(world.state.unread_bytes(), 0);
        world.get("", large).await.expect(200);
    }
}
