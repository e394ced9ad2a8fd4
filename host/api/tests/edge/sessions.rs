//! Sessions: users act with a cookie that no other site can use, until they leave or what they came as ends.

use crate::browser::Browser;
use crate::world::{Company, World, now, request};
use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use souk_api::Access;
use souk_domain::ids::{CompanyId, UserId};
use souk_domain::sessions::{IDLE_MAX, LIFE_MAX, Token};
use souk_domain::time::Timestamp;
use souk_store::sessions::{self, NewSession};
use std::time::Duration;

impl World {
    /// A session that began at an instant and was used at another, straight in the store.
    async fn session_of(
        &self,
        browser: &Browser,
        company: &Company,
        at: Timestamp,
        seen: Timestamp,
    ) -> Browser {
        let token = Token::generate();
        let (company, user) = (
            CompanyId::parse(&company.id).unwrap(),
            UserId::parse(&browser.user).unwrap(),
        );
        let new = NewSession {
            company_id: &company,
            user_id: &user,
            auth_provider: "invitation",
            address: "192.0.2.1",
            user_agent: Some("curl"),
        };
        let begun = self
            .db
            .write(async |write| -> Result<_, souk_store::StoreError> {
                let session = sessions::insert(write, &new, &token.digest(), at).await?;
                sessions::seen(write, &session.id, seen).await?;
                Ok(session)
            });
        Browser {
            session: begun.await.unwrap().id.to_string(),
            cookie: format!("__Host-session={}", token.expose()),
            csrf: token.csrf(),
            user: browser.user.clone(),
        }
    }
}

/// A cookie alone changes nothing, whatever is asked; and on the data route it is nothing at all.
#[tokio::test]
async fn another_site_cannot_use_the_cookie() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (ann, bob) = (world.browser(&acme, 4).await, world.browser(&acme, 4).await);
    let routes = souk_api::all();
    let mut guarded = 0;
    for operation in routes.operations() {
        let path = operation
            .path
            .replace("{company_id}", &acme.id)
            .replace(['{', '}'], "");
        let send = async |csrf: Option<&str>| {
            let request = request(operation.verb.name().parse().unwrap(), "", &path)
                .header("cookie", &ann.cookie);
            let request = match csrf {
                Some(csrf) => request.header("x-csrf-token", csrf),
                None => request,
            };
            world.send(request.body(Body::empty()).unwrap()).await
        };
        match operation.access {
            Access::Public => {}
            Access::Data => {
                send(Some(&ann.csrf))
                    .await
                    .expect_error(401, "MISSING_API_KEY");
            }
            Access::Key { .. }
                if operation.verb != souk_api::operation::Verb::Get
                    || operation.billed
                    || operation.runs_connector =>
            {
                guarded += 1;
                for wrong in [None, Some(&*bob.csrf), Some("")] {
                    send(wrong).await.expect_error(403, "CSRF_TOKEN_REQUIRED");
                }
            }
            Access::Key { .. } => {
                let code = send(None).await;
                assert_ne!(
                    code.at("/error/code"),
                    "CSRF_TOKEN_REQUIRED",
                    "{}",
                    operation.id
                );
            }
        }
    }
    assert!(guarded > 50, "{guarded}");
    // A key goes before a cookie, and needs no token.
    let both = request(Method::POST, &acme.key, &acme.path("/users"))
        .header("cookie", &ann.cookie)
        .header("content-type", "application/json")
        .body(Body::from(r#"{"email": "eve@example.org"}"#));
    world.send(both.unwrap()).await.expect(201);
    for wrong in [
        "__Host-session=short".to_owned(),
        format!("{}; {}", ann.cookie, ann.cookie),
        format!("__Host-session={}", Token::generate().expose()),
    ] {
        let request = request(Method::GET, "", "/users/me").header("cookie", wrong);
        world
            .send(request.body(Body::empty()).unwrap())
            .await
            .expect_error(401, "SESSION_EXPIRED");
    }
}

/// A session ends when it is not used, and when it is old however much it is used.
#[tokio::test]
async fn a_session_ends_by_itself() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let ann = world.browser(&acme, 3).await;
    let minute = Duration::from_secs(60);
    let ago = |ago: Duration| now().before(ago);
    let idle = world
        .session_of(&ann, &acme, ago(IDLE_MAX + minute), ago(IDLE_MAX + minute))
        .await;
    let old = world
        .session_of(&ann, &acme, ago(LIFE_MAX + minute), now())
        .await;
    for over in [&idle, &old] {
        over.get(&world, "/users/me")
            .await
            .expect_error(401, "SESSION_EXPIRED");
    }
    let used = world
        .session_of(&ann, &acme, ago(LIFE_MAX - minute), ago(IDLE_MAX - minute))
        .await;
    let me = used.get(&world, "/users/me").await.expect(200);
    let ends = Timestamp::parse(&me.text("/data/session/expires_at")).unwrap();
    assert!(ends > now() && ends < now().after(minute * 2), "{ends}");
    // Its use was noted, and those that are over are listed no more.
    let path = acme.path(&format!("/users/{}/sessions", ann.user));
    let listed = used.get(&world, &path).await.expect(200);
    assert_eq!(listed.at("/meta/total"), 2);
    let first = listed.at("/data/0");
    assert_eq!(
        (&first["id"], &first["is_current"]),
        (&json!(used.session), &json!(true))
    );
    assert_eq!(
        (&first["address"], &first["user_agent"]),
        (&json!("192.0.2.1"), &json!("curl"))
    );
    let seen = Timestamp::parse(first["last_seen_at"].as_str().unwrap()).unwrap();
    assert!(seen > ago(minute), "{seen}");
    let swept = world
        .db
        .write(async |write| sessions::sweep(write, now()).await);
    assert!(swept.await.unwrap());
    let mut read = world.db.read().await.unwrap();
    let left = sqlx::query("SELECT id FROM sessions")
        .fetch_all(&mut *read)
        .await
        .unwrap();
    assert_eq!(left.len(), 2);
}

/// What becomes of a user holds for its sessions from the next request on.
#[tokio::test]
async fn sessions_follow_their_user() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let ann = world.browser(&acme, 4).await;
    let other = world.session_of(&ann, &acme, now(), now()).await;
    let (user, log) = (
        acme.path(&format!("/users/{}", ann.user)),
        acme.path("/audit-log"),
    );
    ann.get(&world, &log).await.expect(200);
    world
        .patch(&acme.key, &user, json!({"role_id": 3}))
        .await
        .expect(200);
    ann.get(&world, &log)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");

    // One's own sessions, and nobody else's without role 4.
    let sessions = format!("{user}/sessions");
    let listed = ann.get(&world, &sessions).await.expect(200);
    assert_eq!(listed.at("/meta/total"), 2);
    let eve = world.browser(&acme, 3).await;
    eve.get(&world, &sessions)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    let one = format!("{sessions}/{}", other.session);
    eve.ask(&world, Method::DELETE, &one, Value::Null)
        .await
        .expect_error(403, "INSUFFICIENT_ROLE");
    other.get(&world, "/users/me").await.expect(200);
    ann.ask(&world, Method::DELETE, &one, Value::Null)
        .await
        .expect(204);
    ann.ask(&world, Method::DELETE, &one, Value::Null)
        .await
        .expect_error(404, "SESSION_NOT_FOUND");
    other
        .get(&world, "/users/me")
        .await
        .expect_error(401, "SESSION_EXPIRED");
    let unknown = acme.path("/users/usr_unknown/sessions");
    world
        .get(&acme.key, &unknown)
        .await
        .expect_error(404, "USER_NOT_FOUND");

    // Signed out here, or everywhere.
    let here = world.session_of(&ann, &acme, now(), now()).await;
    let only = json!({"all_sessions": false});
    world
        .post(&acme.key, "/users/logout", only.clone())
        .await
        .expect_error(400, "VALIDATION_ERROR");
    here.ask(&world, Method::POST, "/users/logout", only)
        .await
        .expect(204);
    here.get(&world, "/users/me").await.expect(401);
    ann.get(&world, "/users/me").await.expect(200);
    let reader = world.browser(&acme, 1).await;
    let second = world.session_of(&reader, &acme, now(), now()).await;
    reader
        .ask(&world, Method::POST, "/users/logout", json!({}))
        .await
        .expect(204);
    second
        .get(&world, "/users/me")
        .await
        .expect_error(401, "SESSION_EXPIRED");

    for (change, undo) in [("disabled", "active")] {
        world
            .patch(&acme.key, &user, json!({"status": change}))
            .await
            .expect(200);
        ann.get(&world, "/users/me")
            .await
            .expect_error(401, "SESSION_EXPIRED");
        world
            .patch(&acme.key, &user, json!({"status": undo}))
            .await
            .expect(200);
        ann.get(&world, "/users/me")
            .await
            .expect_error(401, "SESSION_EXPIRED");
    }
    let again = world.session_of(&ann, &acme, now(), now()).await;
    again.get(&world, "/users/me").await.expect(200);
    world.delete(&acme.key, &user).await.expect(204);
    again
        .get(&world, "/users/me")
        .await
        .expect_error(401, "SESSION_EXPIRED");
    let suspended = world.browser(&acme, 2).await;
    world.suspend(&acme).await;
    suspended
        .get(&world, "/users/me")
        .await
        .expect_error(403, "COMPANY_SUSPENDED");
}

/// An analyst reads, and has favorites and a name of its own; those of others are not for it.
#[tokio::test]
async fn an_analyst_who_is_signed_in_writes_its_own() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (endpoint, reader) = (world.endpoint(&acme).await, world.browser(&acme, 1).await);
    let own = acme.path(&format!("/users/{}", reader.user));
    let others = acme.path(&format!("/users/{}", acme.user_id));
    let mark = json!({"endpoint_id": endpoint});
    let favorites = |user: &str| format!("{user}/favorites");
    let marked = reader
        .ask(&world, Method::POST, &favorites(&own), mark.clone())
        .await
        .expect(201);
    let one = marked.header("location").to_owned();
    reader
        .ask(&world, Method::PATCH, &one, json!({"note": "n"}))
        .await
        .expect(200);
    reader
        .ask(&world, Method::DELETE, &one, Value::Null)
        .await
        .expect(204);
    let marked = world
        .post(&acme.key, &favorites(&others), mark.clone())
        .await
        .expect(201);
    let one = marked.header("location").to_owned();
    for (method, path, body) in [
        (Method::POST, favorites(&others), mark),
        (Method::PATCH, one.clone(), json!({"note": "n"})),
        (Method::DELETE, one, Value::Null),
        (Method::PATCH, others, json!({"name": "x"})),
        (Method::POST, acme.path("/api-keys"), json!({"name": "k"})),
    ] {
        let refused = reader.ask(&world, method, &path, body).await;
        refused.expect_error(403, "INSUFFICIENT_ROLE");
    }
    reader
        .ask(&world, Method::PATCH, &own, json!({"name": "Rea"}))
        .await
        .expect(200);
}
