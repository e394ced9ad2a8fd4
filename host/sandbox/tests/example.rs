//! The connector that the SDK's documentation shows, as the component that its author would upload: it runs in the sandbox.

mod common;

use std::sync::Arc;

use common::*;
use souk_sandbox::{FaultKind, Grant, PoolLimits, Source, Value};
use souk_tests::guests;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A score board: one player has no points, and a league that is not `north` is not served.
async fn score_board() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            let (status, body) = match head.contains("x-league: north") {
                false => ("403 Forbidden", String::new()),
                true if head.starts_with("get /scores?player=ada ") => {
                    ("200 OK", r#"[["Ada", 7]]"#.to_owned())
                }
                true => ("200 OK", r#"[["Ada", 7], ["Bob", null]]"#.to_owned()),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            client.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    format!("http://{address}")
}

fn scores(base_url: &str, settings: &str) -> Arc<Source> {
    let mut source = Arc::unwrap_or_clone(source_with("hello", settings, PoolLimits::default()));
    source.grant = Grant::Http {
        base_url: base_url.into(),
        attach: Vec::new(),
        ca_pem: None,
    };
    Arc::new(source)
}

/// Statement, parameter, settings, columns, NULL and failure: all that the example shows works.
#[tokio::test]
async fn the_documented_connector_runs() {
    let sandbox = with_guest(guests::HELLO).await;
    let board = score_board().await;
    let north = scores(&board, r#"{"league":"north"}"#);
    let all = sandbox.run(&north, query("/scores"), within(10)).await;
    assert_eq!(
        rows(&all.unwrap()),
        r#"[{"player":"Ada","points":7},{"player":"Bob","points":null}]"#
    );
    let one = query_with("/scores", vec![Value::Text("Ada".into())]);
    let one = sandbox.run(&north, one, within(10)).await.unwrap();
    assert_eq!(rows(&one), r#"[{"player":"Ada","points":7}]"#);

    let mut south = Arc::unwrap_or_clone(scores(&board, r#"{"league":"south"}"#));
    south.connection = "con_2".into();
    let south = Arc::new(south);
    let refused = sandbox.run(&south, query("/scores"), within(10)).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind, FaultKind::SourceError, "{refused:?}");
    assert_eq!(refused.source_code.as_deref(), Some("403"));
}
