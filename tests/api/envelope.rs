//! What holds for every answer: the error envelope, the rate-limit headers, the request id, and the
//! order of checks.

use reqwest::Method;
use serde_json::json;
use souk_tests::Answer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{host, league, unique};

#[track_caller]
fn assert_headers(answer: &Answer) {
    for name in [
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ] {
        let value = answer.header(name);
        assert!(
            value.parse::<u64>().is_ok(),
            "{name} is {value:?} on {} {}",
            answer.status,
            answer.body
        );
    }
    assert!(
        answer.header("x-request-id").starts_with("req_"),
        "{:?}",
        answer.headers
    );
}

/// Whatever goes wrong, and whoever notices it, the answer is the envelope with the limit's headers.
#[tokio::test]
async fn every_refusal_is_the_envelope_with_rate_limit_headers() {
    let host = host().await;
    let company = host.company(&unique("envelope")).await;
    let anonymous = host.anonymous();
    let keys = company.path("/api-keys");

    let refusals = [
        anonymous
            .get("/no/such/route")
            .await
            .expect_error(404, "ROUTE_NOT_FOUND"),
        anonymous
            .get(&keys)
            .await
            .expect_error(401, "MISSING_API_KEY"),
        anonymous
            .with_key("nonsense")
            .get(&keys)
            .await
            .expect_error(401, "INVALID_API_KEY"),
        company
            .client
            .get("/no/such/route")
            .await
            .expect_error(404, "ROUTE_NOT_FOUND"),
        Answer::of(company.client.request(Method::PUT, &keys))
            .await
            .expect_error(405, "METHOD_NOT_ALLOWED"),
        Answer::of(
            company
                .client
                .request(Method::POST, &keys)
                .header("content-type", "application/json")
                .body("{\"name\":"),
        )
        .await
        .expect_error(400, "INVALID_REQUEST"),
        Answer::of(
            company
                .client
                .request(Method::POST, &keys)
                .header("content-type", "text/plain")
                .body("name"),
        )
        .await
        .expect_error(415, "UNSUPPORTED_MEDIA_TYPE"),
        company
            .client
            .post(&keys, json!({"name": 7}))
            .await
            .expect_error(400, "VALIDATION_ERROR"),
        company
            .client
            .post(&keys, json!({"name": "x".repeat(2 << 20)}))
            .await
            .expect_error(413, "PAYLOAD_TOO_LARGE"),
        company
            .client
            .get(&format!("{keys}?no_such_parameter=1"))
            .await
            .expect_error(400, "INVALID_PARAMETER"),
        company
            .client
            .get(&format!("{keys}/key_unknown"))
            .await
            .expect_error(404, "API_KEY_NOT_FOUND"),
    ];
    for refusal in &refusals {
        assert_headers(refusal);
        assert_eq!(refusal.header("content-type"), "application/json");
    }
    assert!(!refusals[4].header("allow").is_empty());
    assert!(refusals[2].header("www-authenticate").starts_with("ApiKey"));
    assert_headers(&company.client.get(&keys).await.expect(200));
}

/// What is no HTTP, or too much of it, gets the envelope too, and counts against the address that sent it.
#[tokio::test]
async fn a_request_that_cannot_be_read_is_the_envelope() {
    let host = host().await;
    let company = host.company(&unique("unreadable")).await;
    let raw = async |head: String| {
        let address = host.base_url.trim_start_matches("http://");
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("open");
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("an answer");
        text
    };
    let many: String = (0..200).map(|n| format!("x-{n}: 1\r\n")).collect();
    let before = host.anonymous().get("/companies/me").await;
    let before: u64 = before
        .header("x-ratelimit-remaining")
        .parse()
        .expect("left");
    for (head, status, code) in [
        ("nonsense\r\n\r\n".to_owned(), 400, "INVALID_REQUEST"),
        (
            "GET /healthz HTTP/1.1\r\nno colon\r\n\r\n".to_owned(),
            400,
            "INVALID_REQUEST",
        ),
        (
            "GET /healthz HTTP/9.9\r\n\r\n".to_owned(),
            400,
            "INVALID_REQUEST",
        ),
        (
            format!("GET /healthz HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(40_000)),
            431,
            "HEADERS_TOO_LARGE",
        ),
        (
            format!("GET /healthz?{} HTTP/1.1\r\n\r\n", "y".repeat(70_000)),
            431,
            "HEADERS_TOO_LARGE",
        ),
        (
            format!("GET /healthz HTTP/1.1\r\n{many}\r\n"),
            431,
            "HEADERS_TOO_LARGE",
        ),
    ] {
        let shown = &head[..head.len().min(40)];
        let answer = raw(head.clone()).await;
        let (lines, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(
            lines.starts_with(&format!("HTTP/1.1 {status} ")),
            "{shown}: {answer}"
        );
        let header = |name: &str| {
            let mut found = lines.lines().filter_map(|line| line.split_once(": "));
            let found = found.find(|(it, _)| it.eq_ignore_ascii_case(name));
            found.unwrap_or_else(|| panic!("no {name} in {lines}")).1
        };
        for name in [
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
        ] {
            assert!(header(name).parse::<u64>().is_ok(), "{shown}: {answer}");
        }
        assert_eq!(header("content-length"), body.len().to_string());
        assert_eq!(header("content-type"), "application/json");
        assert_eq!(header("connection"), "close");
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(body["error"]["code"], code, "{shown}: {answer}");
        let id = &body["error"]["details"]["request_id"];
        assert_eq!(id, header("x-request-id"), "{shown}: {answer}");
    }
    // Other tests of this run share the address, so the number may have gone down by more.
    let after = host.anonymous().get("/companies/me").await;
    let after: u64 = after.header("x-ratelimit-remaining").parse().expect("left");
    assert!(after + 7 <= before, "{before} were left, {after} are");

    // What a client can see of a long head that is not too long, and of an ordinary refusal, is as it was.
    let long = company
        .client
        .request(Method::GET, &company.path("/api-keys"));
    let long = long.header("x-long", "y".repeat(30_000));
    assert_headers(&Answer::of(long).await.expect(200));
}

/// axum runs GET handlers for HEAD; here that would bill a request that carries no answer.
#[tokio::test]
async fn head_is_refused_and_never_billed() {
    let league = league().await;
    let (_, slug) = league.matches(2).await;
    let buyer = host().await.buyer(&unique("head"), 10).await;
    let path = format!("/endpoints/v1/{}/{slug}", league.seller.handle);
    let answer = Answer::of(buyer.client.request(Method::HEAD, &path)).await;
    assert_eq!(answer.status.as_u16(), 405);
    assert_headers(&answer);
    assert_eq!(buyer.balance().await, 10);
}

/// Another company is refused alike whether it exists or not.
#[tokio::test]
async fn foreign_and_unknown_companies_answer_alike() {
    let host = host().await;
    let (one, other) = (
        host.company(&unique("one")).await,
        host.company(&unique("other")).await,
    );
    let foreign = one
        .client
        .get(&other.path("/api-keys"))
        .await
        .expect_error(403, "COMPANY_ACCESS_DENIED");
    let unknown = one
        .client
        .get("/companies/cmp_doesnotexist/api-keys")
        .await
        .expect_error(403, "COMPANY_ACCESS_DENIED");
    assert_eq!(foreign.at("/error/message"), unknown.at("/error/message"));
}

/// The gate comes before the body: who may not do this at all learns nothing of validation.
#[tokio::test]
async fn the_gate_comes_before_the_body() {
    let company = host().await.company(&unique("gate")).await;
    let reader = company
        .client
        .post(
            &company.path("/api-keys"),
            json!({"name": "reader", "permissions": ["read"]}),
        )
        .await
        .expect(201);
    let reader = company.client.with_key(&reader.text("/data/key"));
    let request = reader
        .request(Method::POST, &company.path("/connections"))
        .header("content-type", "application/json")
        .body("{not json");
    let refusal = Answer::of(request).await;
    assert_eq!(refusal.status.as_u16(), 403, "{}", refusal.body);
}

/// The hourly limit of an operation ends in 429, with the time to wait; 403s consume nothing.
#[tokio::test]
async fn key_creation_is_limited_to_ten_an_hour() {
    let company = host().await.company(&unique("limit")).await;
    let path = company.path("/api-keys");
    for left in (0..10).rev() {
        let answer = company
            .client
            .post(&path, json!({"name": "one of ten"}))
            .await
            .expect(201);
        assert_eq!(answer.header("x-ratelimit-limit"), "10");
        assert_eq!(answer.header("x-ratelimit-remaining"), left.to_string());
    }
    let refusal = company
        .client
        .post(&path, json!({"name": "the eleventh"}))
        .await
        .expect_error(429, "RATE_LIMIT_EXCEEDED");
    assert!(
        refusal
            .header("retry-after")
            .parse::<u64>()
            .is_ok_and(|wait| (1..=3600).contains(&wait))
    );
    assert_eq!(refusal.at("/error/details/scope"), "operation");
    company.client.get(&path).await.expect(200);
}

/// Anyone may ask how the host is; the OpenAPI document names the operations.
#[tokio::test]
async fn the_system_routes_answer_without_a_key() {
    let anonymous = host().await.anonymous();
    anonymous.get("/healthz").await.expect(200);
    anonymous.get("/readyz").await.expect(200);
    let document = anonymous.get("/openapi.json").await.expect(200);
    assert!(
        document
            .at("/paths/~1companies~1{company_id}~1assets~1{asset_id}~1execute/post")
            .is_object()
    );
}
