//! Activations take as long as sources do: whom that keeps waiting, and for how many there is room.

use std::time::{Duration, Instant};

use serde_json::json;
use souk_tests::talking_server::TalkingServer;
use souk_tests::{Company, guests};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{FOLLOWED_WITHIN, versions};
use crate::{host, unique};

/// A company whose own connector is off work, with a data connection that worked on it and whose source says nothing any more: trying it takes as long as
/// a source is waited for.
async fn slow_to_try(handle: &str) -> (Company, TalkingServer) {
    let company = host().await.company(&unique(handle)).await;
    let server = TalkingServer::start().await;
    company.connector(guests::TALKER).await;
    let fields = json!({"credential_type": "NONE", "credentials": "{}", "host": "127.0.0.1", "port": server.address.port(),
        "ssl_mode": "disable"});
    let connection = company.connection("talker", fields).await;
    let test = company.path(&format!("/connections/{connection}/test"));
    company.client.post(&test, json!({})).await.expect(200);
    let off = company.path("/connectors/talker/deactivate");
    company.client.post(&off, json!({})).await.expect(200);
    server.fall_silent();
    (company, server)
}

/// A company whose source says nothing waits for its own connector to be tried there; others' are put to work meanwhile.
#[tokio::test]
async fn a_slow_activation_keeps_nobody_waiting() {
    let quick = host().await.company(&unique("quick")).await;
    let (slow, server) = slow_to_try("slow").await;
    quick.connector(guests::MOODY).await;
    let off = quick.path("/connectors/moody/deactivate");
    quick.client.post(&off, json!({})).await.expect(200);
    let activate = async |company: &Company, name: &str| {
        let on = company.path(&format!("/connectors/{name}/activate"));
        let version = json!({"version": "1.0.0"});
        company.client.post(&on, version).await.expect(200);
    };
    let mut activated = std::pin::pin!(activate(&slow, "talker"));
    let others = async {
        // Its source is asked, and says nothing.
        server.wait(|seen| seen.unanswered > 0).await;
        activate(&quick, "moody").await;
    };
    tokio::select! {
        () = &mut activated => panic!("it did not wait for its source"),
        () = others => {}
    }
    // That its source says nothing is no fault of the connector's.
    activated.await;
}

/// An activation that has begun ends, and is remembered, although its client has hung up meanwhile.
#[tokio::test]
async fn an_activation_whose_client_hangs_up_ends() {
    let (company, server) = slow_to_try("leaving").await;
    let address = host().await.base_url.trim_start_matches("http://");
    let path = company.path("/connectors/talker/activate");
    let body = json!({"version": "1.0.0"}).to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nx-api-key: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        company.key,
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("sent");
    // It is being tried: its source is asked, and says nothing.
    server.wait(|seen| seen.unanswered > 0).await;
    drop(stream);
    let begun = Instant::now();
    while versions(&company.client, "talker").await != ["1.0.0: active"] {
        let waited = begun.elapsed();
        assert!(waited < FOLLOWED_WITHIN, "it was given up");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Of one company eight activations are under way or wait; more are refused at once, and told that they may come again.
#[tokio::test]
async fn activations_that_wait_are_bounded() {
    let (company, _server) = slow_to_try("many-at-once").await;
    let on = company.path("/connectors/talker/activate");
    let activate = || company.client.post(&on, json!({"version": "1.0.0"}));
    let answers = futures_util::future::join_all((0..12).map(|_| activate())).await;
    let (done, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!((done.len(), refused.len()), (8, 4), "{refused:?}");
    for one in refused {
        let one = one.expect_error(429, "CONCURRENCY_LIMIT_EXCEEDED");
        assert_eq!(one.at("/error/details/exhausted"), "activations_exhausted");
    }
}
