//! What only shows over a real connection.

use crate::world::World;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn serve(world: &World) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = world.router.clone();
    tokio::spawn(async move {
        axum::serve(
            listener,
            axum::ServiceExt::<axum::extract::Request>::into_make_service(router),
        )
        .await
    });
    address
}

/// Sends everything, then reads until the host closes.
async fn exchange(address: std::net::SocketAddr, request: Vec<u8>) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&request).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// A client that sends a far too large body to its end still gets to read why it was refused, whoever refused it.
#[tokio::test]
async fn a_client_that_is_still_sending_reads_its_refusal() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let address = serve(&world).await;
    let body = json!({"name": "x".repeat(4 << 20)}).to_string();
    for (key, path, status) in [
        (acme.key.as_str(), acme.path("/api-keys"), "413"),
        ("", acme.path("/api-keys"), "413"),
        ("nonsense", acme.path("/connectors"), "401"),
        (acme.key.as_str(), "/no/such/route".to_owned(), "404"),
    ] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: souk\r\nConnection: close\r\nx-api-key: {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let answer = exchange(address, [head.as_bytes(), body.as_bytes()].concat()).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{path}: {answer}"
        );
        assert!(
            answer.contains("x-ratelimit-remaining: ") && answer.contains("\"request_id\":\"req_"),
            "{answer}"
        );
    }
}

/// A HEAD gets the headers of its refusal and no body.
#[tokio::test]
async fn a_head_is_refused_without_a_body() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let address = serve(&world).await;
    let head = format!(
        "HEAD /analyze/acme/assets/nothing HTTP/1.1\r\nHost: souk\r\nConnection: close\r\nx-api-key: {}\r\n\r\n",
        acme.key
    );
    let answer = exchange(address, head.into_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 405 ")
            && answer.contains("allow: POST, GET")
            && answer.ends_with("\r\n\r\n"),
        "{answer}"
    );
}
