//! Whoever notices that something is wrong, the answer is the envelope with all headers.

use crate::world::{Answer, World, request};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::Method;
use http_body_util::BodyExt;
use serde_json::json;
use souk_api::describe::{Describe, Description};
use souk_api::{Access, Operation, Routes};
use tower::ServiceExt;

/// What no operation takes, with and without a key.
#[tokio::test]
async fn unknown_routes_and_methods_are_404_and_405() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    world
        .get("", "/no/such/route")
        .await
        .expect_error(404, "ROUTE_NOT_FOUND");
    world
        .get(&acme.key, "/no/such/route")
        .await
        .expect_error(404, "ROUTE_NOT_FOUND");
    let refused = world
        .send(
            request(Method::PUT, &acme.key, &acme.path("/api-keys"))
                .body(Body::empty())
                .unwrap(),
        )
        .await;
    let refused = refused.expect_error(405, "METHOD_NOT_ALLOWED");
    assert_eq!(
        (
            refused.header("allow"),
            refused.text("/error/details/allow")
        ),
        ("GET, HEAD, POST", "GET, HEAD, POST".to_owned())
    );
}

/// A HEAD never runs what costs something; what does not is answered as a GET is.
#[tokio::test]
async fn head_of_what_is_billed_is_405() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let refused = world
        .send(
            request(Method::HEAD, &acme.key, "/analyze/acme/assets/nothing")
                .body(Body::empty())
                .unwrap(),
        )
        .await;
    assert_eq!(
        (refused.status.as_u16(), refused.header("allow")),
        (405, "POST, GET")
    );
    refused.check_headers();
    let answered = world
        .send(
            request(Method::HEAD, &acme.key, &acme.path("/api-keys"))
                .body(Body::empty())
                .unwrap(),
        )
        .await;
    assert_eq!(answered.status.as_u16(), 200);
    answered.check_headers();
}

/// Bodies: syntax, type, media type, shape, size.
#[tokio::test]
async fn unreadable_bodies_are_refused() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let keys = acme.path("/api-keys");
    let send = async |kind: &str, body: String| {
        world
            .send(
                request(Method::POST, &acme.key, &keys)
                    .header("content-type", kind)
                    .body(Body::from(body))
                    .unwrap(),
            )
            .await
    };
    send("application/json", "{\"name\":".into())
        .await
        .expect_error(400, "INVALID_REQUEST");
    send("application/json", "[]".into())
        .await
        .expect_error(400, "VALIDATION_ERROR");
    send("application/json", "{}".into())
        .await
        .expect_error(400, "VALIDATION_ERROR");
    send("text/plain", "name".into())
        .await
        .expect_error(415, "UNSUPPORTED_MEDIA_TYPE");
    let wrong = send("application/json", "{\"name\": 7}".into())
        .await
        .expect_error(400, "VALIDATION_ERROR");
    assert_eq!(wrong.field(), "name");
    send(
        "application/json; charset=utf-8",
        "{\"name\": \"fine\", \"unknown\": 1}".into(),
    )
    .await
    .expect(201);
}

/// Both a declared and an undeclared length are bounded.
#[tokio::test]
async fn large_bodies_are_413() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let text = format!("{{\"name\": \"{}\"}}", "x".repeat(1 << 20));
    let declared = request(Method::POST, &acme.key, &acme.path("/api-keys"))
        .header("content-type", "application/json");
    let declared = declared
        .header("content-length", text.len())
        .body(Body::from(text.clone()))
        .unwrap();
    world
        .send(declared)
        .await
        .expect_error(413, "PAYLOAD_TOO_LARGE");
    let chunks = futures_util::stream::iter([Ok::<_, std::io::Error>(bytes::Bytes::from(text))]);
    let streamed = request(Method::POST, &acme.key, &acme.path("/api-keys"))
        .header("content-type", "application/json");
    world
        .send(streamed.body(Body::from_stream(chunks)).unwrap())
        .await
        .expect_error(413, "PAYLOAD_TOO_LARGE");
}

/// Query parameters: unknown and malformed ones are named.
#[tokio::test]
async fn unknown_query_parameters_are_refused() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let refused = world
        .get(&acme.key, &acme.path("/api-keys?nope=1"))
        .await
        .expect_error(400, "INVALID_PARAMETER");
    assert_eq!(refused.field(), "nope");
    let refused = world
        .get(&acme.key, &acme.path("/api-keys?per_page=101"))
        .await
        .expect_error(400, "INVALID_PARAMETER");
    assert_eq!(refused.field(), "per_page");
    world
        .get(&acme.key, &acme.path("/credits?x=1"))
        .await
        .expect_error(400, "INVALID_PARAMETER");
}

/// An id that cannot be one is 400, one that is not there 404.
#[tokio::test]
async fn malformed_ids_are_400() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let malformed = world
        .get(&acme.key, &acme.path("/api-keys/a%20b"))
        .await
        .expect_error(400, "INVALID_PATH_PARAMETER");
    assert_eq!(
        malformed.at("/error/details/errors/0/message"),
        "an id has 1 to 255 characters of a-z, A-Z, 0-9, _ and -"
    );
    world
        .get(&acme.key, &acme.path("/api-keys/key_unknown"))
        .await
        .expect_error(404, "API_KEY_NOT_FOUND");
}

/// A body may repeat the path's company and user, not contradict them, whether or not its operation has a use for them; what else is wrong
/// is told beside that.
#[tokio::test]
async fn a_body_does_not_contradict_its_path() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let me = world.get(&acme.key, "/users/me").await.expect(200);
    let me = me.text("/data/user/id");
    let made = world
        .post(
            &acme.key,
            &acme.path("/api-keys"),
            json!({"name": "x", "company_id": acme.id}),
        )
        .await
        .expect(201);
    let key = acme.path(&format!("/api-keys/{}", made.text("/data/id")));
    let user = acme.path(&format!("/users/{me}"));
    let revoke = format!("{key}/revoke");
    let both = json!({"name": "A", "company_id": "cmp_other", "user_id": "usr_other"});
    for (method, path, body, fields) in [
        (
            Method::PATCH,
            &key,
            json!({"company_id": "cmp_other"}),
            vec!["company_id"],
        ),
        (
            Method::PATCH,
            &key,
            json!({"company_id": 7}),
            vec!["company_id"],
        ),
        // Bodies that have no place for it.
        (
            Method::POST,
            &revoke,
            json!({"company_id": "cmp_other"}),
            vec!["company_id"],
        ),
        (Method::PATCH, &user, both, vec!["company_id", "user_id"]),
    ] {
        let sent = request(method, &acme.key, path).header("content-type", "application/json");
        let sent = sent.body(Body::from(body.to_string())).unwrap();
        let refused = world.send(sent).await;
        let refused = refused.expect_error(400, "PATH_BODY_MISMATCH");
        assert_eq!(refused.fields(), fields, "{path} {}", refused.body);
    }
    for body in [
        r#"{"company_id": "cmp_other", "name": ""}"#,
        r#"{"company_id": null, "user_id": "usr_other", "role_id": "x"}"#,
    ] {
        let sent =
            request(Method::PATCH, &acme.key, &user).header("content-type", "application/json");
        let refused = world.send(sent.body(Body::from(body)).unwrap()).await;
        let refused = refused.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(refused.fields().len(), 2, "{}", refused.body);
    }
    let twice = format!(
        r#"{{"company_id": "cmp_other", "company_id": "{}"}}"#,
        acme.id
    );
    let sent = request(Method::POST, &acme.key, &revoke).header("content-type", "application/json");
    let refused = world.send(sent.body(Body::from(twice)).unwrap()).await;
    refused.expect_error(400, "PATH_BODY_MISMATCH");
    let same = json!({"name": "A", "company_id": acme.id, "user_id": me});
    world.patch(&acme.key, &user, same).await.expect(200);
}

/// A panic costs one answer, not the connection, and says nothing of itself.
#[tokio::test]
async fn a_panic_is_500() {
    async fn panics() -> &'static str {
        panic!("secret")
    }
    let world = World::new().await;
    let operation = Operation::get("panics", "/panics").access(Access::Public);
    let router = Routes::new()
        .add(operation, panics)
        .into_router(world.state.clone());
    let response = router
        .oneshot(
            request(Method::GET, "", "/panics")
                .body(Body::empty())
                .unwrap(),
        )
        .await
        .unwrap();
    let answer = Answer::of(response)
        .await
        .expect_error(500, "INTERNAL_ERROR");
    assert!(!answer.body.to_string().contains("secret"));
}

/// What an extractor or a library answers by itself is the envelope too.
#[tokio::test]
async fn foreign_refusals_are_wrapped() {
    struct Library;
    impl Describe for Library {
        fn describe(_: &mut Description) {}
    }
    impl IntoResponse for Library {
        fn into_response(self) -> Response {
            http::StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response()
        }
    }
    async fn library() -> Library {
        Library
    }
    let world = World::new().await;
    let operation = Operation::get("library", "/library").access(Access::Public);
    let router = Routes::new()
        .add(operation, library)
        .into_router(world.state.clone());
    let response = router
        .oneshot(
            request(Method::GET, "", "/library")
                .body(Body::empty())
                .unwrap(),
        )
        .await
        .unwrap();
    Answer::of(response)
        .await
        .expect_error(415, "UNSUPPORTED_MEDIA_TYPE");
}

/// The reference is whole: whatever its page links to comes from the same host.
#[tokio::test]
async fn the_reference_needs_no_other_host() {
    let world = World::new().await;
    let get = async |path: &str| {
        let request = request(Method::GET, "", path).body(Body::empty()).unwrap();
        let response = world.router.clone().oneshot(request).await.unwrap();
        let kind = response.headers()["content-type"].to_str().unwrap();
        let (status, kind) = (response.status().as_u16(), kind.to_owned());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, kind, String::from_utf8_lossy(&bytes).into_owned())
    };
    let root = world.get("", "/").await.expect(200);
    let docs = root.at("/data/docs").as_str().unwrap().to_owned();
    let (status, kind, page) = get(&docs).await;
    assert_eq!((status, kind.as_str()), (200, "text/html"));
    assert!(page.contains("<base href=\"docs/\""), "{page}");
    let linked: Vec<&str> = ["href=\"", "src=\""]
        .iter()
        .flat_map(|before| page.split(before).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .filter(|link| *link != "docs/")
        .collect();
    assert!(linked.len() >= 5, "{linked:?}");
    for link in linked {
        let file = link.trim_start_matches("./");
        assert!(!file.contains('/'), "{link}");
        let (status, _, body) = get(&format!("/docs/{file}")).await;
        assert_eq!((status, body.is_empty()), (200, false), "{link}");
    }
    let (_, _, script) = get("/docs/swagger-initializer.js").await;
    assert!(script.contains("\"/openapi.json\""), "{script}");
    for missing in ["/docs/nothing.js", "/docs/..%2Fopenapi.json"] {
        assert_eq!(get(missing).await.0, 404, "{missing}");
    }
}

/// A browser is shown a page that runs nothing and leads to what is there; whoever else asks where things are gets JSON.
#[tokio::test]
async fn the_root_is_a_page_for_browsers() {
    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let world = World::new().await;
    let get = async |path: &str, accept: &str| {
        let request = request(Method::GET, "", path).header("accept", accept);
        let request = request.body(Body::empty()).unwrap();
        let response = world.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let header = |name: &str| parts.headers[name].to_str().unwrap().to_owned();
        (
            parts.status.as_u16(),
            header("content-type"),
            parts.headers.clone(),
            text,
        )
    };
    let (status, kind, headers, page) = get("/", BROWSER).await;
    assert_eq!((status, kind.as_str()), (200, "text/html; charset=utf-8"));
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    let links = page.split("href=\"").skip(1);
    let links: Vec<&str> = links.filter_map(|rest| rest.split('"').next()).collect();
    assert!(
        links.contains(&"docs") && links.contains(&"openapi.json"),
        "{links:?}"
    );
    for link in links {
        assert_eq!(get(&format!("/{link}"), BROWSER).await.0, 200, "{link}");
    }
    for accept in ["*/*", "application/json", "application/json, text/html"] {
        let (_, kind, headers, body) = get("/", accept).await;
        assert_eq!(
            (kind.as_str(), headers["vary"].to_str().unwrap()),
            ("application/json", "accept")
        );
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["data"]["docs"], "/docs");
    }
}

/// The system routes need no key; what needs one is never cached.
#[tokio::test]
async fn system_routes_are_open() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        let answer = world.get("", path).await.expect(200);
        answer.check_headers();
        assert_eq!(answer.header("cache-control"), "");
    }
    assert_eq!(
        world
            .get(&acme.key, &acme.path("/credits"))
            .await
            .expect(200)
            .header("cache-control"),
        "no-store"
    );
}

/// What an asset has no use for is checked all the same: a chart's settings of a calculation, say.
#[tokio::test]
async fn parts_that_are_not_used_are_checked_too() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let body = json!({
        "name": "x", "asset_type": "CALCULATION", "connection_id": "con_unknown", "sql_logic": "SELECT 1",
        "visualization": 1, "prediction": [],
    });
    let refused = world.post(&acme.key, &acme.path("/assets"), body).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    for part in ["visualization", "prediction", "connection_id"] {
        assert!(refused.fields().contains(&part), "{}", refused.body);
    }
    // Privacy's own column is not released by them.
    let body = json!({
        "visualization": {"x": "team", "y": "people"}, "prediction": {"value_column": "people"},
        "privacy": {"min_group_size": 5, "privacy_unit_column": "people"},
    });
    let refused = world.post(&acme.key, &acme.path("/assets"), body).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    for part in ["visualization.y", "prediction.value_column"] {
        assert!(refused.fields().contains(&part), "{}", refused.body);
    }
    assert!(!refused.fields().contains(&"visualization.x"));
}

/// A client is told of all that is wrong at once: of what a type refuses, of what its operation refuses after that, of what is missing, down
/// to the members of members.
#[tokio::test]
async fn whatever_is_wrong_is_told_at_once() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let user = world.get(&acme.key, "/users/me").await.expect(200);
    let alerts = format!("/users/{}/alerts", user.text("/data/user/id"));
    let wrong = [
        (
            "/users",
            json!({"name": "", "email": 1, "role_id": 9, "job_function_id": 0}),
            vec!["email", "job_function_id", "name", "role_id"],
        ),
        (
            "/connections",
            json!({"host": 5, "name": "", "credential_type": "FOO", "port": 0, "statement_timeout_ms": 1}),
            vec![
                "credential_type",
                "credentials",
                "engine_id",
                "host",
                "name",
                "port",
                "statement_timeout_ms",
            ],
        ),
        (
            &alerts,
            json!({"name": "", "condition": {"field": "x"}, "consecutive_breaches": 0, "notify_by_mail": 1}),
            vec![
                "asset_id",
                "condition.field",
                "condition.operator",
                "consecutive_breaches",
                "name",
                "notify_by_mail",
            ],
        ),
        (
            "/webhooks",
            json!({"url": "nowhere", "event_types": ["never", "alert.error", "nor.this"]}),
            vec!["event_types[0]", "event_types[2]", "url"],
        ),
    ];
    for (path, body, fields) in wrong {
        let refused = world.post(&acme.key, &acme.path(path), body).await;
        let refused = refused.expect_error(400, "VALIDATION_ERROR");
        let mut named = refused.fields();
        named.sort_unstable();
        assert_eq!(named, fields, "{path}: {}", refused.body);
    }
    let body = json!({
        "handle": "-", "website": "nowhere", "industry_id": 1, "country": "12", "contact_email": "nobody", "credits_low_threshold": -1,
    });
    let refused = world.patch(&acme.key, &acme.path(""), body).await;
    let refused = refused.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(refused.fields().len(), 6, "{}", refused.body);
    let query = "/sales?group_by=x&metrics=credits&start_date=never";
    let refused = world.get(&acme.key, &acme.path(query)).await;
    let refused = refused.expect_error(400, "INVALID_PARAMETER");
    assert_eq!(refused.fields().len(), 3, "{}", refused.body);
    let query = "/request-usage?month=2026-13&format=xml";
    let refused = world.get(&acme.key, &acme.path(query)).await;
    let refused = refused.expect_error(400, "INVALID_PARAMETER");
    assert_eq!(refused.fields().len(), 2, "{}", refused.body);
}
