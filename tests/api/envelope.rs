//! What holds for every answer (`host/api/tests/edge/envelope.rs`) holds for what is no request at all, too.

use reqwest::Method;
use souk_tests::Answer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{host, unique};

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
    // Other tests of this run share the address: they may have spent more, and been given back what they had spent before.
    let after = host.anonymous().get("/companies/me").await;
    let after: u64 = after.header("x-ratelimit-remaining").parse().expect("left");
    assert!(after + 4 <= before, "{before} were left, {after} are");

    // What a client can see of a long head that is not too long, and of an ordinary refusal, is as it was.
    let long = company
        .client
        .request(Method::GET, &company.path("/api-keys"));
    let long = long.header("x-long", "y".repeat(30_000));
    assert_headers(&Answer::of(long).await.expect(200));
}
