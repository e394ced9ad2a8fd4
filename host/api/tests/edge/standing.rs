//! Callers who lose what they may while their request is on its way: what they began does not go on.

use crate::world::{Answer, Company, World, request};
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http::{Method, Request};
use serde_json::json;
use souk_store::StoreError;
use std::convert::Infallible;
use tokio::sync::oneshot;

/// A request of which one byte comes, and the rest once it was waited for and something else is done.
struct Slow {
    request: Request<Body>,
    is_waited_for: oneshot::Receiver<()>,
    go_on: oneshot::Sender<()>,
}

impl Slow {
    fn of(head: http::request::Builder, body: &str) -> Slow {
        let (first, rest) = body.split_at(1);
        let [first, rest] = [first, rest].map(|part| Bytes::copy_from_slice(part.as_bytes()));
        let (wait, is_waited_for) = oneshot::channel();
        let (go_on, goes_on) = oneshot::channel();
        let first = stream::iter([Ok::<_, Infallible>(first)]);
        let rest = stream::once(async move {
            wait.send(()).unwrap();
            goes_on.await.unwrap();
            Ok(rest)
        });
        Slow {
            request: head.body(Body::from_stream(first.chain(rest))).unwrap(),
            is_waited_for,
            go_on,
        }
    }

    async fn send(self, world: &World, meanwhile: impl Future<Output = ()>) -> Answer {
        let change = async {
            self.is_waited_for.await.unwrap();
            meanwhile.await;
            self.go_on.send(()).unwrap();
        };
        let (answer, ()) = tokio::join!(world.send(self.request), change);
        answer
    }
}

fn post(key: &str, path: &str) -> http::request::Builder {
    request(Method::POST, key, path).header("content-type", "application/json")
}

/// A key of its own: its id, and itself.
async fn key(world: &World, company: &Company) -> (String, String) {
    let body = json!({"name": "k", "role_id": 4});
    let made = world
        .post(&company.key, &company.path("/api-keys"), body)
        .await
        .expect(201);
    (made.text("/data/id"), made.text("/data/key"))
}

const MORE: &str = r#"{"name": "for good", "role_id": 4}"#;

/// A key that is revoked while its request's body is waited for does nothing more, and an upload is not there.
#[tokio::test]
async fn a_revoked_key_does_not_go_on() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let keys = acme.path("/api-keys");
    let revoke = async |id: String| {
        let path = format!("{keys}/{id}/revoke");
        world.post(&acme.key, &path, json!({})).await.expect(200);
    };
    for idempotency in [None, Some("once")] {
        let (id, stolen) = key(&world, &acme).await;
        let mut head = post(&stolen, &keys);
        if let Some(idempotency) = idempotency {
            head = head.header("idempotency-key", idempotency);
        }
        let answer = Slow::of(head, MORE).send(&world, revoke(id)).await;
        answer.expect_error(410, "API_KEY_DEACTIVATED");
    }
    let (id, stolen) = key(&world, &acme).await;
    let file = acme.path("/files/a.db");
    let head = request(Method::PUT, &stolen, &file);
    let answer = Slow::of(head, "a file").send(&world, revoke(id)).await;
    answer.expect_error(410, "API_KEY_DEACTIVATED");
    world
        .get(&acme.key, &file)
        .await
        .expect_error(404, "FILE_NOT_FOUND");
    // Who lost nothing only waited.
    let (_, slow) = key(&world, &acme).await;
    let answer = Slow::of(post(&slow, &keys), MORE).send(&world, async {});
    answer.await.expect(201);
}

/// A session that ends, or whose user gets a lower role, does not act by what it was when its request began.
#[tokio::test]
async fn a_lower_role_does_not_go_on() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let keys = acme.path("/api-keys");
    for (change, status, code) in [
        (json!({"role_id": 1}), 403, "INSUFFICIENT_ROLE"),
        // Which would be enough for what is asked, but not for what it is asked as.
        (json!({"role_id": 3}), 403, "INSUFFICIENT_ROLE"),
        (json!({"status": "disabled"}), 401, "SESSION_EXPIRED"),
    ] {
        let eve = world.browser(&acme, 4).await;
        let user = acme.path(&format!("/users/{}", eve.user));
        let head = post("", &keys)
            .header("cookie", &eve.cookie)
            .header("x-csrf-token", &eve.csrf);
        let lower = async {
            world.patch(&acme.key, &user, change).await.expect(200);
        };
        let answer = Slow::of(head, MORE).send(&world, lower).await;
        answer.expect_error(status, code);
    }
}

/// What makes a key asks for its caller behind its turn to write: the gate knew them as they were.
#[tokio::test]
async fn whoever_goes_makes_no_key_at_the_last_moment() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    // Nobody is told, as if it were done by the transaction just before.
    let write = async |sql: &'static str, id: &str| {
        let written = world.db.write(async |write| -> Result<(), StoreError> {
            let query = sqlx::query(sql).bind(id);
            query.execute(&mut **write).await.unwrap();
            Ok(())
        });
        written.await.unwrap();
    };
    let (keys, endpoint) = (acme.path("/api-keys"), world.endpoint(&acme).await);
    let of_endpoint = acme.path(&format!("/endpoints/{endpoint}/keys"));
    let (id, stolen) = key(&world, &acme).await;
    let rotate = format!("{keys}/{id}/rotate");
    world.get(&stolen, "/users/me").await.expect(200);
    let revoke = "UPDATE api_keys SET deactivated_at = created_at WHERE id = $1";
    write(revoke, &id).await;
    let other = key(&world, &acme).await;
    let other = format!("{keys}/{}/rotate", other.0);
    for path in [&keys, &of_endpoint, &other] {
        let answer = world.post(&stolen, path, json!({"name": "for good"})).await;
        answer.expect_error(410, "API_KEY_DEACTIVATED");
    }
    let answer = world.post(&stolen, &rotate, json!({})).await;
    answer.expect_error(409, "INVALID_STATE");

    let eve = world.browser(&acme, 4).await;
    let more = json!({"name": "for good"});
    let changes = [
        (
            "UPDATE users SET role = 1 WHERE id = $1",
            403,
            "INSUFFICIENT_ROLE",
        ),
        (
            "UPDATE users SET status = 'disabled' WHERE id = $1",
            401,
            "SESSION_EXPIRED",
        ),
    ];
    for (sql, status, code) in changes {
        eve.get(&world, "/users/me").await.expect(200);
        write(sql, &eve.user).await;
        let answer = eve.ask(&world, Method::POST, &keys, more.clone()).await;
        answer.expect_error(status, code);
    }
}
